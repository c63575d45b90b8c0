/* Kubeconfig files: clusters, users, and the contexts that put the two together.
 *
 * Several files become one configuration, as kubectl has it: of a name that is there twice the
 * first file's entry counts, and so does the first current-context.
 *
 * Layer: services, room kube/config. kubeconfig_add and kubeconfig_target are pure;
 * kubeconfig_load reads files. Ownership: init/done, the caller's struct.
 */
#pragma once

#include "kube/config/target.h"

#include <jansson.h>

struct kubeconfig {
    json_t *clusters, *users, *contexts; /* name -> {at: file, folder:, is: object} */
    char *current;                       /* current-context, or NULL */
    char *names;                         /* of the files that were read, for messages */
};

int kubeconfig_init(struct kubeconfig *config, struct muster_err *err);
void kubeconfig_done(struct kubeconfig *config);

/* `file` is what messages call it; paths in the text are relative to `folder`. */
int kubeconfig_add(struct kubeconfig *config, const char *text, const char *file,
                   const char *folder, struct muster_err *err);

/* The target of the context of that name, or NULL: of the current one. Its files are not read yet:
 * call target_load. MUSTER_ECONFIG says what is missing in which file. */
int kubeconfig_target(const struct kubeconfig *config, const char *context, struct target *ret,
                      struct muster_err *err);

/* One target from `path`; or NULL: from the files of KUBECONFIG (separated by colons; one that is
 * not there is passed over), else ~/.kube/config. Loaded. */
int kubeconfig_load(const char *path, const char *context, struct target *ret,
                    struct muster_err *err);

/* Searches as client-go does: a kubeconfig that was named (by NULLs or KUBECONFIG: none was), the
 * account of the pod that this is, the usual files. */
int kubeconfig_find(const char *path, const char *context, struct target *ret, bool *ret_in_pod,
                    struct muster_err *err);
