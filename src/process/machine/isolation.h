/* What keeps a job's processes together, so that none outlives its supervisor.
 *
 *     NAMESPACE       a PID namespace (as root): the kernel kills what is in it when its init dies
 *     USER_NAMESPACE  the same inside a user namespace (unprivileged)
 *     SUBREAPER       neither is permitted: each container's monitor reaps and kills what descends
 *                     from it; a guard (guard.h) ends what killed monitors leave
 *
 * One PID namespace per job, never per pod: ranks kill by pid who was evicted (`killable` in
 * src/comm), and may do so only within one.
 *
 * Layer: services. Thread: a single-threaded process, which enters the namespaces itself.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <sys/types.h>

enum isolation_mode {
    ISOLATION_SUBREAPER,
    ISOLATION_NAMESPACE,
    ISOLATION_USER_NAMESPACE,
    ISOLATION_AUTO, /* a request: the best that is permitted */
};

struct isolation {
    enum isolation_mode mode;
    pid_t init;         /* of the PID namespace; 0 without one */
    int lifeline_fd;    /* init dies when it closes; readable (end of file) when init died */
    char why_not[160];  /* SUBREAPER: why no namespace */
    bool loopback_down; /* no rank can reach another at 127.0.0.1 */
};

/* Finds what is permitted (in a child that tries), and enters it; with network_private also a
 * network namespace, with its loopback up. MUSTER_EUNSUPPORTED: a private network cannot be had;
 * MUSTER_EOS. */
int isolation_enter(struct isolation *ret, enum isolation_mode wanted, bool network_private,
                    struct muster_err *err);

/* Kills what is left in the namespace and waits for its init. */
void isolation_leave(struct isolation *isolation);

const char *isolation_name(enum isolation_mode mode);
