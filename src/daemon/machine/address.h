/* The addresses of a job's ranks on this machine.
 *
 * On a cluster the ranks find each other by service names (<job>-master-0:23456). Here they share
 * one host: the names become 127.0.0.1 and the ports become leased ones, so that two jobs never
 * collide. Only the environment at exec changes; the Pod objects keep the cluster's bytes
 * (reference: training-operator v1.9.4, envvar.go, master.go, elastic.go).
 *
 * Layer: program (daemon), no I/O. Ownership: address_map borrows from the job.
 */
#pragma once

#include "job/job.h"

struct address_map {
    const struct job *job;
    int master_port; /* the leased port; 0 keeps the cluster's port (for a private network) */
    int rdzv_port;
    const char *socket; /* the coordinator's: by it the coordinator notices at once, and with
                           proof, that a worker's process has ended; NULL: it is reached over TCP */
};

/* Returns the value that a rank gets for a variable which the operator set; the caller frees it.
 * NULL: the value stays as it is. */
char *address_localize(const struct address_map *map, const char *name, const char *value);
