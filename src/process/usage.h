/* What a container that runs uses of the machine, now: read from /proc and its control group, by
 * anyone who may read its job's folder.
 *
 * Layer: services (reads /proc, files). Thread: any. Ownership: usage_table_done.
 */
#pragma once

#include "process/machine/descendants.h"

#include <muster/err.h>
#include <stdint.h>
#include <sys/types.h>

enum { USAGE_PROCESSES_MAX = 1024 }; /* of a container; further ones are not counted */

/* All processes of the machine at one moment. */
struct usage_table {
    struct descendant *list;
    size_t count;
};

struct usage {
    pid_t processes[USAGE_PROCESSES_MAX];
    size_t process_count;
    double cpu_s;         /* processor time so far, of these and of children that they waited for */
    int64_t memory_bytes; /* of its control group, without cached files that no process uses; else
                             the sum of the proportional set sizes */
    int64_t peak_bytes;   /* of its control group; else of the largest process, or memory_bytes */
    int64_t limit_bytes;  /* 0: none */
};

void usage_table_init(struct usage_table *table);
void usage_table_done(struct usage_table *table);

/* container_folder: JOB/containers/POD/CONTAINER. Commands of `muster exec` do not count.
 * MUSTER_ENOENT: no attempt runs. */
int usage_read(const struct usage_table *table, const char *container_folder, struct usage *ret,
               struct muster_err *err);
