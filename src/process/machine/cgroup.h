/* Limits of memory and cpu through control groups, version 1 or 2, where this machine permits them.
 *
 * A job has one group, muster-NAME, beside or below that of its supervisor, and a group in it per
 * container. The root is a parameter, so that tests bring their own.
 *
 * Layer: services. Ownership: init/done; done removes the groups. Thread: any.
 */
#pragma once

#include "base/system/cgroup_path.h" /* for CGROUP_ROOT */

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

enum cgroup_kind { CGROUP_MEMORY, CGROUP_CPU, CGROUP_KINDS };

/* The groups of a job. */
struct cgroup_job {
    char *folder[CGROUP_KINDS]; /* NULL: this kind cannot be limited here */
    bool v2[CGROUP_KINDS];
    char why_not[256]; /* why a folder is NULL */
};

/* The groups of a container. */
struct cgroup {
    char *folder[CGROUP_KINDS];
    bool v2[CGROUP_KINDS];
};

struct cgroup_limits {
    int64_t memory_bytes; /* 0: none */
    int64_t cpu_millis;   /* 0: none */
};

/* Never fails: the folder of a kind that cannot be used is NULL. `own` is the text of
 * /proc/self/cgroup. Groups of the same name that a killed supervisor left are taken over. */
void cgroup_job_init(struct cgroup_job *job, const char *root, const char *own, const char *name);
void cgroup_job_done(struct cgroup_job *job);

/* Makes a container's group with the limits that are set. MUSTER_EUNSUPPORTED: one limit cannot be
 * set; the others were applied. */
int cgroup_init(struct cgroup *group, const struct cgroup_job *job, const char *name,
                const struct cgroup_limits *limits, struct muster_err *err);
/* Removes the group, which must hold no process any more. */
void cgroup_done(struct cgroup *group);

/* A limit applies only to processes in its group, so errors of these two functions must not be
 * ignored. Both return MUSTER_EUNSUPPORTED if this machine does not permit it, with a text that
 * says that the limit is not enforced; MUSTER_EOS if it is permitted and failed all the same. */

/* Opens a descriptor by which a process enters one of the groups; -1: there is no group. The caller
 * closes it. */
int cgroup_entrance(const struct cgroup *group, enum cgroup_kind kind, int *ret_fd,
                    struct muster_err *err);
/* Moves the calling process into the group of an entrance; -1: into no group. */
int cgroup_enter(enum cgroup_kind kind, int entrance_fd, struct muster_err *err);

/* Returns how many processes the kernel has killed for want of memory since the machine started: on
 * the whole machine, or in a group. */
int64_t cgroup_machine_kills(void);
int64_t cgroup_oom_kills(const struct cgroup *group);
/* Whether a process was short of memory because of the group's own limit, not of the machine's
 * memory. */
bool cgroup_limit_reached(const struct cgroup *group);
/* Returns 0 if it is not known. Includes the kernel's cache of files. */
int64_t cgroup_peak_bytes(const struct cgroup *group);

/* The memory that a container's group uses now. */
struct cgroup_memory {
    int64_t used_bytes;  /* without cached files that no process uses */
    int64_t peak_bytes;  /* 0: not known */
    int64_t limit_bytes; /* 0: none */
    bool limit_reached;  /* as cgroup_limit_reached */
    int64_t kills;       /* as cgroup_oom_kills */
};

/* Reads the memory of the group of a process whose /proc/PID/cgroup has the text `own`. Returns
 * false if it is not in a container's group, of muster or of podman, or the group is gone. */
bool cgroup_read_memory(const char *root, const char *own, struct cgroup_memory *ret);
