/* Finds the kubeconfig files, and makes a target from them. */
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "kube/config/kubeconfig.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 8 << 20 };

static int add_file(struct kubeconfig *config, const char *path, struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    muster_auto(free) char *folder = strdup(path);
    size_t bytes;
    if (!folder) {
        return err_no_memory(err);
    }
    char *slash = strrchr(folder, '/');
    if (!slash) {
        memcpy(folder, ".", *folder ? 2 : 1);
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    int r = file_read(path, CONFIG_BYTES_MAX, &text, &bytes, err);
    return r < 0 ? r : kubeconfig_add(config, text, path, folder, err);
}

static int add_listed(struct kubeconfig *config, const char *list, struct muster_err *err)
{
    int r = 0;
    while (r == 0 && *list) {
        size_t length = strcspn(list, ":");
        muster_auto(free) char *path = strndup(list, length);
        if (!path) {
            return err_no_memory(err);
        }
        if (*path && file_exists(path)) {
            r = add_file(config, path, err);
        }
        list += length + (list[length] == ':');
    }
    return r;
}

static int add_default(struct kubeconfig *config, struct muster_err *err)
{
    const char *home = getenv("HOME");
    muster_auto(free) char *path = file_join(home ? home : "", ".kube/config");
    if (!path) {
        return err_no_memory(err);
    }
    return file_exists(path) ? add_file(config, path, err) : 0;
}

int kubeconfig_load(const char *path, const char *context, struct target *ret,
                    struct muster_err *err)
{
    struct kubeconfig config;
    struct target target = {0};
    const char *list = getenv("KUBECONFIG");
    int r = kubeconfig_init(&config, err);
    if (r < 0) {
        return r;
    }
    r = path            ? add_file(&config, path, err)
        : list && *list ? add_listed(&config, list, err)
                        : add_default(&config, err);
    r = r < 0 ? r : kubeconfig_target(&config, context, &target, err);
    kubeconfig_done(&config);
    r = r < 0 ? r : target_load(&target, err);
    if (r < 0) {
        target_done(&target);
        return r;
    }
    *ret = target;
    return 0;
}

int kubeconfig_find(const char *path, const char *context, struct target *ret, bool *ret_in_pod,
                    struct muster_err *err)
{
    const char *listed = getenv("KUBECONFIG");
    bool named = path || context || (listed && *listed);
    int r = named ? MUSTER_ENOENT : target_in_cluster(NULL, ret, err);
    *ret_in_pod = r == 0;
    return r == MUSTER_ENOENT ? kubeconfig_load(path, context, ret, err) : r;
}
