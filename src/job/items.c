/* See items.h. */
#include "job/items.h"

#include "base/doc.h"

#include <stdio.h>

enum { PATH_BYTES = 256 };

int job_each_item(const json_t *job, const char *list, job_item_fn *each, void *context)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        size_t i;
        json_t *item;
        json_array_foreach (json_object_get(doc_at(replica, "template.spec"), list), i, item) {
            char path[PATH_BYTES];
            (void)snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s.template.spec.%s[%zu]",
                           role, list, i);
            int r = each(context, item, role, path);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}
