/* The ranks of a measurement: forked here, or this process as one of a world that someone else
 * started. Forked ranks find each other through a table in shared memory.
 *
 * Layer: program.
 */
#include "perf/perf.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORM_TIMEOUT_MS = 20000 };

struct table {
    _Atomic int present;
    _Atomic bool lost; /* a rank has ended for which the others may wait */
    struct muster_member members[PERF_MAX_RANKS];
    int num_results;
    struct perf_result results[PERF_MAX_SIZES];
    char description[160];
    struct muster_err err;
};

static void pin(int rank)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(rank % (int)sysconf(_SC_NPROCESSORS_ONLN)), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static int form(const struct perf_options *options, struct table *table, int rank,
                struct muster_comm **ret, struct muster_err *err)
{
    struct muster_endpoint *endpoint;
    int r = muster_endpoint_open("127.0.0.1", &endpoint, err);
    if (r < 0) {
        return r;
    }
    muster_endpoint_member(endpoint, &table->members[rank]);
    atomic_fetch_add(&table->present, 1);
    while (atomic_load(&table->present) < options->ranks && !atomic_load(&table->lost)) {
        sched_yield();
    }
    r = atomic_load(&table->present) < options->ranks
            ? muster_fail(err, MUSTER_EUNAVAIL, "another rank ended before all had come")
            : muster_comm_form(endpoint, table->members, options->ranks, rank, 1, FORM_TIMEOUT_MS,
                               NULL, ret, err);
    muster_endpoint_close(endpoint);
    return r;
}

static int be_rank(const struct perf_options *options, struct table *table, int rank)
{
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    struct perf_result results[PERF_MAX_SIZES];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (options->pin) {
        pin(rank);
    }
    int num = form(options, table, rank, &comm, &err);
    if (num == 0) {
        num = perf_measure(comm, options, results, &err);
    }
    if (num < 0 && table->err.code == 0) { /* the rank that failed first knows the reason */
        table->err = err;
    }
    if (num >= 0 && rank == 0) {
        table->num_results = num;
        memcpy(table->results, results, (size_t)num * sizeof *results);
        (void)snprintf(table->description, sizeof table->description, "%s",
                       muster_comm_describe(comm));
    }
    return num < 0;
}

/* Waits for the ranks in the order in which they end, because the others wait for a rank that
 * failed. Returns whether any failed. */
static bool wait_for_ranks(int ranks, pid_t *pids, struct table *table)
{
    bool failed = false;
    for (int left = ranks; left > 0;) {
        for (int i = 0; i < ranks; i++) {
            int status = -1;
            /* pids[i] is 0 if this rank has ended, and -1 if it could not be forked. */
            pid_t ended = pids[i] > 0 ? waitpid(pids[i], &status, WNOHANG) : pids[i];
            if (ended == 0) {
                continue;
            }
            if (ended < 0 || status != 0) {
                failed = true;
                atomic_store(&table->lost, true);
            }
            pids[i] = 0;
            left--;
        }
        siginfo_t any;
        if (left > 0) {
            (void)waitid(P_ALL, 0, &any, WEXITED | WNOWAIT);
        }
    }
    return failed;
}

int perf_run_ranks(const struct perf_options *options, struct perf_result *ret,
                   char *ret_description, size_t description_bytes, struct muster_err *err)
{
    struct table *table =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        return muster_fail(err, MUSTER_ENOMEM, "no shared memory: %s", strerror(errno));
    }
    if (options->transport) {
        (void)setenv("MUSTER_TRANSPORT", options->transport, 1);
    }
    pid_t pids[PERF_MAX_RANKS];
    for (int i = 0; i < options->ranks; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(be_rank(options, table, i));
        }
    }
    bool failed = wait_for_ranks(options->ranks, pids, table);
    int num = table->num_results;
    if (failed) {
        num = muster_fail(err, table->err.code < 0 ? table->err.code : MUSTER_EINTERNAL, "%s",
                          table->err.code < 0 ? table->err.text : "a rank ended early");
    } else {
        memcpy(ret, table->results, (size_t)num * sizeof *ret);
        (void)snprintf(ret_description, description_bytes, "%s", table->description);
    }
    (void)munmap(table, sizeof *table);
    return num;
}
