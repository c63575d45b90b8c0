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
    int master_port; /* the leased one; 0 keeps the cluster's (a private network) */
    int rdzv_port;
    const char *socket; /* of the coordinator: that a worker's process has ended is seen by it at
                           once, and proven; NULL: over TCP */
};

/* The value that a rank sees for a variable the operator set; the caller frees. NULL when it stays
 * as it is. */
char *address_localize(const struct address_map *map, const char *name, const char *value);
