/* A pod's /etc/hosts, as a kubelet makes one: what the machine's file has, and a loopback address
 * for the names that the pod goes by. Without it, a program that looks up the machine's own name
 * (torchrun does) waits for a name server to say no, where neither file nor server has it. The
 * Services of its job, which a cluster's name server knows, stand there as well: they are all on
 * this machine.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stddef.h>

enum { HOSTS_BYTES_MAX = 1 << 20 };

/* The text: `machine` (NULL: there is no such file), each name that it has not, and a line for each
 * of `services` ({"namespace", "names"}; NULL: none), under all the names that a cluster has for
 * one. Names that are none ("", spaces …) are left out. The caller frees; NULL when out of memory.
 */
char *hosts_text(const char *machine, const char *const *names, size_t count,
                 const json_t *services);

/* Writes FOLDER/hosts for a pod of that name ("" for none); *ret_path is the caller's.
 * MUSTER_ETOOBIG: the machine's file is over HOSTS_BYTES_MAX. */
int hosts_write(const char *folder, const char *pod_name, const json_t *services, char **ret_path,
                struct muster_err *err);
