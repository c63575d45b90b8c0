/* See end_all.h. */
#include "daemon/route/end_all.h"

#include "base/doc.h"
#include "daemon/object/leases.h"

#include <stdbool.h>

static int end_job(struct store *store, json_t *job, struct muster_err *err)
{
    return leases_stop_job(store, job, "muster down was given", err);
}

/* Deletes a pod that has no job (kubectl run); other pods end with their jobs. */
static int end_lone_pod(struct store *store, json_t *pod, struct muster_err *err)
{
    struct store_key key = {"pods", doc_text(pod, "metadata.namespace", ""),
                            doc_text(pod, "metadata.name", "")};
    bool lone = json_array_size(doc_at(pod, "metadata.ownerReferences")) == 0;
    return lone ? store_delete(store, key, NULL, NULL, err) : 0;
}

static int end_each(struct store *store, const char *resource,
                    int (*end)(struct store *store, json_t *object, struct muster_err *err),
                    struct muster_err *err)
{
    struct store_page page = {0};
    const struct store_query query = {.resource = resource};
    int r = store_list(store, &query, &page, err);
    size_t i;
    json_t *object;
    json_array_foreach (page.items, i, object) {
        int one = end(store, object, err);
        r = r < 0 || one == MUSTER_ENOENT ? r : one;
    }
    store_page_done(&page);
    return r;
}

int end_all(struct store *store, struct muster_err *err)
{
    int r = end_each(store, "pytorchjobs", end_job, err);
    return r < 0 ? r : end_each(store, "pods", end_lone_pod, err);
}
