/* Limits of memory and cpu through control groups, version 1 or 2, where this machine permits them.
 *
 * A job has one group, muster-NAME, beside or below that of its supervisor, and a group in it per
 * container. The root is a parameter, so that tests bring their own.
 *
 * Layer: services. Ownership: init/done; done removes the groups. Thread: any.
 */
#pragma once

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

/* Descriptors into which a process writes "0" to enter; -1 where there is no group. The caller
 * closes. */
void cgroup_entrances(const struct cgroup *group, int ret_fds[CGROUP_KINDS]);

/* How many processes the memory limit has killed. */
int64_t cgroup_oom_kills(const struct cgroup *group);
/* 0: not known. */
int64_t cgroup_peak_bytes(const struct cgroup *group);
