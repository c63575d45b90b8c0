/* See place.h. */
#include "cli/place.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int place_get(struct cli *cli, const char *namespace, const char *pod, const char *container,
              json_t **ret)
{
    muster_auto(free) char *path = NULL;
    if (asprintf(&path, "/muster/v1/namespaces/%s/pods/%s/container/%s", namespace, pod,
                 container) < 0) {
        path = NULL;
        return muster_fail(&cli->err, MUSTER_ENOMEM, "out of memory");
    }
    return kube_call(cli->kube, "GET", path, NULL, ret, &cli->err);
}

/* How much of `path` the mount path covers, whole parts only; 0: none. */
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
    const char *host = doc_text(best, "hostPath", "");
    return *rest ? file_join(host, rest) : strdup(host);
}

char *place_resolve(const json_t *place, const char *path)
{
    if (*path == '/') {
        return resolve_absolute(place, path);
    }
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(place, "mounts"), i, mount) {
        char *inside = file_join(doc_text(mount, "hostPath", ""), path);
        if (inside && file_exists(inside)) {
            return inside;
        }
        free(inside);
    }
    return file_join(doc_text(place, "cwd", "/"), path);
}
