/* See place.h. */
#include "cli/pod/place.h"

#include "base/err.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Asks by the pod's uid, by which the pod is found also after it was deleted together with its job.
 */
int place_get(struct cli *cli, const json_t *pod, const char *container, json_t **ret)
{
    muster_auto(free) char *path = NULL;
    if (cli_on_cluster(cli)) {
        return MUSTER_EUNSUPPORTED; /* the container is on another machine */
    }
    muster_auto(free) char *place =
        kube_muster_path("namespaces", doc_text(pod, "metadata.namespace", "default"), "pods",
                         doc_text(pod, "metadata.name", ""), "container", container, NULL);
    if (!place || asprintf(&path, "%s?uid=%s", place, doc_text(pod, "metadata.uid", "")) < 0) {
        path = NULL;
        return err_no_memory(&cli->err);
    }
    return kube_call(cli->kube, "GET", path, NULL, ret, &cli->err);
}

/* The length of the part of `path` that the mount path covers, whole names only; 0: none. */
static size_t covered(const char *mount, const char *path)
{
    size_t length = strlen(mount);
    while (length > 1 && mount[length - 1] == '/') {
        length--;
    }
    bool inside = length > 0 && strncmp(path, mount, length) == 0 &&
                  (path[length] == '/' || path[length] == '\0');
    return inside ? length : 0;
}

/* Joins the part of the volume that is mounted and `path` in it. */
static char *join(const json_t *mount, const char *path)
{
    const char *host = doc_text(mount, "hostPath", "");
    const char *part = doc_text(mount, "subPath", "");
    muster_auto(free) char *root = *part ? file_join(host, part) : strdup(host);
    return !root ? NULL : *path ? file_join(root, path) : muster_take(root);
}

static char *resolve_absolute(const json_t *place, const char *path)
{
    const json_t *best = NULL;
    size_t best_length = 0;
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(place, "mounts"), i, mount) {
        size_t length = covered(doc_text(mount, "mountPath", ""), path);
        if (length > best_length) {
            best = mount;
            best_length = length;
        }
    }
    if (!best) {
        return strdup(path);
    }
    const char *rest = path + best_length;
    rest += strspn(rest, "/");
    return join(best, rest);
}

char *place_resolve(const json_t *place, const char *path)
{
    if (*path == '/') {
        return resolve_absolute(place, path);
    }
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(place, "mounts"), i, mount) {
        char *inside = join(mount, path);
        if (inside && file_exists(inside)) {
            return inside;
        }
        free(inside);
    }
    return file_join(doc_text(place, "cwd", "/"), path);
}
