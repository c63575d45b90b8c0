/* Checks hostPath volumes: what must be at the path, by the type that the volume names.
 *
 * The types are Kubernetes'. Without a type a kubelet checks nothing and leaves it to the container
 * runtime: docker makes a folder, containerd fails. Here the path must exist: a misspelt path would
 * otherwise be an empty folder.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include <muster/err.h>

/* Returns what is wrong with the path, or NULL if nothing is; borrowed, static. *ret_hint: what to
 * do about it, or NULL. Creates nothing. */
const char *host_path_fault(const char *path, const char *type, const char **ret_hint);

/* Checks the path, and creates it for DirectoryOrCreate and FileOrCreate. MUSTER_ENOENT. */
int host_path_prepare(const char *path, const char *type, struct muster_err *err);
