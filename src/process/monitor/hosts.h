/* A pod's /etc/hosts, as a kubelet makes one: the content of the machine's file, and a loopback
 * address for the names of the pod. Without it, a program that looks up the machine's own name, as
 * torchrun does, waits for the refusal of a name server if neither the file nor the server has the
 * name. The file also has the Services of the job, which a cluster's name server knows: they are
 * all on this machine.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

enum { HOSTS_BYTES_MAX = 1 << 20 };

/* Returns the text: `machine` (NULL: there is no such file), each name that it does not have, and a
 * line for each of `services` ({"namespace", "names"}; NULL: none), with all names that a service
 * has in a cluster. Names that are not valid ("", spaces …) are left out. The caller frees; NULL
 * when out of memory. */
char *hosts_text(const char *machine, const char *const *names, size_t count,
                 const json_t *services);

/* Writes FOLDER/hosts for a pod of that name ("" for none); the caller frees *ret_path.
 * MUSTER_ETOOBIG: the machine's file is over HOSTS_BYTES_MAX. */
int hosts_write(const char *folder, const char *pod_name, const json_t *services, char **ret_path,
                struct muster_err *err);
