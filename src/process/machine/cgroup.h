/* Limits of memory and cpu through control groups, version 1 or 2, where this machine permits them.
 *
 * A job has one group, muster-NAME, beside or below that of its supervisor, and a group in it per
 * container. The root is a parameter, so that tests bring their own.
 *
 * Layer: services. Ownership: init/done; done removes the groups. Thread: any.
 */
#pragma once

#include "base/system/cgroup_path.h" /* CGROUP_ROOT */

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

enum cgroup_kind { CGROUP_MEMORY, CGROUP_CPU, CGROUP_KINDS };

/* A job's groups. */
struct cgroup_job {
    char *folder[CGROUP_KINDS]; /* NULL: this kind cannot be limited here */
    bool v2[CGROUP_KINDS];
    char why_not[256]; /* when a folder is NULL */
};

/* A container's. */
struct cgroup {
    char *folder[CGROUP_KINDS];
    bool v2[CGROUP_KINDS];
};

struct cgroup_limits {
    int64_t memory_bytes; /* 0: none */
    int64_t cpu_millis;   /* 0: none */
};

/* Never fails: what cannot be had is NULL. `own` is the text of /proc/self/cgroup. Groups of the
 * same name that a killed supervisor left are taken over. */
void cgroup_job_init(struct cgroup_job *job, const char *root, const char *own, const char *name);
void cgroup_job_done(struct cgroup_job *job);

/* Makes a container's group with the limits that are set. MUSTER_EUNSUPPORTED: one cannot be had;
 * the others were applied. */
int cgroup_init(struct cgroup *group, const struct cgroup_job *job, const char *name,
                const struct cgroup_limits *limits, struct muster_err *err);
/* Removes the group, which holds no process any more. */
void cgroup_done(struct cgroup *group);

/* A limit holds for no one outside its group, so that neither of these may be ignored. Both give
 * MUSTER_EUNSUPPORTED where this machine does not permit it, and say that the limit is not
 * enforced; MUSTER_EOS where it does and it failed all the same. */

/* A descriptor by which a process enters one of the groups; -1: there is none. The caller closes.
 */
int cgroup_entrance(const struct cgroup *group, enum cgroup_kind kind, int *ret_fd,
                    struct muster_err *err);
/* Puts the calling process into the group of an entrance; into none by -1. */
int cgroup_enter(enum cgroup_kind kind, int entrance_fd, struct muster_err *err);

/* How many processes the kernel has killed for want of memory since the machine started: on all of
 * it, and of a group. */
int64_t cgroup_machine_kills(void);
int64_t cgroup_oom_kills(const struct cgroup *group);
/* Its own memory limit was in the way, not the machine's memory. */
bool cgroup_limit_reached(const struct cgroup *group);
/* 0: not known. Includes what the kernel keeps of files. */
int64_t cgroup_peak_bytes(const struct cgroup *group);

/* What a container's group uses now. */
struct cgroup_memory {
    int64_t used_bytes;  /* without files in the cache that nobody uses */
    int64_t peak_bytes;  /* 0: not known */
    int64_t limit_bytes; /* 0: none */
    bool limit_reached;  /* as cgroup_limit_reached */
    int64_t kills;       /* as cgroup_oom_kills */
};

/* The memory of the process whose /proc/PID/cgroup has the text `own`. False: it is in no
 * container's group, ours or podman's, or that is gone. */
bool cgroup_read_memory(const char *root, const char *own, struct cgroup_memory *ret);
