/* See server_check.h. */
#include "cli/submit/server_check.h"

#include "base/err.h"
#include "cli/submit/objects.h"
#include "cli/submit/refusal.h"
#include "cli/submit/sources.h"

/* Tries to create the object, or to change it if it exists already. */
static int try_object(struct cli *cli, const json_t *object)
{
    const struct kube_ref ref = objects_ref(cli, object);
    if (!ref.resource || !ref.name) {
        return 0; /* muster creates no such object */
    }
    int r = kube_create(cli->kube, &ref, object, NULL, &cli->err);
    return r == MUSTER_EEXIST ? kube_patch(cli->kube, &ref, object, NULL, &cli->err) : r;
}

/* Whether the error is about the object, not about us or the server. */
static bool is_refusal(int code)
{
    return code == MUSTER_EDATA || code == MUSTER_EINVAL || code == MUSTER_ENOENT ||
           code == MUSTER_EPERM || code == MUSTER_ECONFLICT || code == MUSTER_ETOOBIG;
}

static int check_all(struct cli *cli, const json_t *objects, struct job_problems *problems)
{
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        int r = try_object(cli, object);
        if (is_refusal(r)) {
            refusal_add(cli, object, problems);
        } else if (r < 0) {
            return r;
        }
    }
    return 0;
}

int server_check(struct cli *cli, const char *path, struct job_file *file,
                 struct job_problems *problems)
{
    muster_auto(doc) json_t *objects = json_array();
    for (size_t i = 0; i < file->object_count; i++) {
        json_array_append(objects, file->objects[i]);
    }
    if (json_array_size(objects) != file->object_count ||
        sources_keep(&cli->sources, path, file) < 0) {
        return err_no_memory(&cli->err);
    }
    int r = cli_connect(cli, KUBE_START);
    if (r == 0) {
        kube_set_dry_run(cli->kube, true);
        r = check_all(cli, objects, problems);
        kube_set_dry_run(cli->kube, false);
    }
    return r;
}
