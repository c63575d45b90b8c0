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
    ISOLATION_AUTO, /* as a request: the best mode that is permitted */
};

struct isolation {
    enum isolation_mode mode;
    pid_t init;         /* the init of the PID namespace; 0 without one */
    int lifeline_fd;    /* the init dies when this closes; readable (end of file) after its death */
    char why_not[160];  /* SUBREAPER: why there is no namespace */
    bool loopback_down; /* no rank can reach another at 127.0.0.1 */
};

/* Finds out what is permitted (in a child that tries it), and enters it; with network_private also
 * a network namespace, whose loopback is up. MUSTER_EUNSUPPORTED: a private network is not
 * possible; MUSTER_EOS. */
int isolation_enter(struct isolation *ret, enum isolation_mode wanted, bool network_private,
                    struct muster_err *err);

/* Kills all processes that are left in the namespace and waits for its init. */
void isolation_leave(struct isolation *isolation);

const char *isolation_name(enum isolation_mode mode);
