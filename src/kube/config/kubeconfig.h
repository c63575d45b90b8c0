/* Kubeconfig files: clusters, users, and the contexts that put the two together.
 *
 * Several files become one configuration, as with kubectl: if two files have the same name, the
 * entry of the first one counts, and so does the first current-context.
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
    char *names;                         /* names of the files that were read, for messages */
};

int kubeconfig_init(struct kubeconfig *config, struct muster_err *err);
void kubeconfig_done(struct kubeconfig *config);

/* Adds a file's content. Messages call it `file`; paths in the text are relative to `folder`. */
int kubeconfig_add(struct kubeconfig *config, const char *text, const char *file,
                   const char *folder, struct muster_err *err);

/* Makes the target of the context of that name; NULL: of the current context. Its files are not
 * read yet: call target_load. The error of MUSTER_ECONFIG says what is missing in which file. */
int kubeconfig_target(const struct kubeconfig *config, const char *context, struct target *ret,
                      struct muster_err *err);

/* Loads a target from `path`; NULL: from the files of KUBECONFIG (separated by colons; missing
 * files are skipped), or else from ~/.kube/config. */
int kubeconfig_load(const char *path, const char *context, struct target *ret,
                    struct muster_err *err);

/* Searches in client-go's order: a kubeconfig that was named (by an argument or KUBECONFIG), the
 * service account if this is a pod, the usual files. */
int kubeconfig_find(const char *path, const char *context, struct target *ret, bool *ret_in_pod,
                    struct muster_err *err);
