/* A rank that a debugger holds is silent, and is neither suspected nor killed: on the same host the
 * kernel is asked, and to other hosts the rank has reported the debugger before it was stopped. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include "comm/state/state.h"
#include "conformance/world.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { HELD_MS = 3000, MAX_THREADS = 16 };

/* What the ranks and the debugger tell each other. */
struct meeting {
    _Atomic int ready;    /* ranks that have computed once */
    _Atomic int attached; /* the debugger is attached, and everything runs on */
    _Atomic int told;     /* the other rank knows of it, or need not */
    _Atomic int released; /* the debugger has let go */
};

struct debugger {
    pid_t threads[MAX_THREADS];
    int num;
};

static bool holds(const struct debugger *d, pid_t thread)
{
    int i = 0;
    while (i < d->num && d->threads[i] != thread) {
        i++;
    }
    return i < d->num;
}

static void attach_thread(struct debugger *d, pid_t thread)
{
    assert_true(d->num < MAX_THREADS);
    assert_int_equal(ptrace(PTRACE_SEIZE, thread, NULL, NULL), 0);
    d->threads[d->num++] = thread;
}

static void stop(const struct debugger *d)
{
    for (int i = 0; i < d->num; i++) {
        int status;
        assert_int_equal(ptrace(PTRACE_INTERRUPT, d->threads[i], NULL, NULL), 0);
        assert_int_equal(waitpid(d->threads[i], &status, __WALL), d->threads[i]);
        assert_true(WIFSTOPPED(status));
    }
}

static void wait_until(const _Atomic int *number, int least)
{
    for (int64_t end = 0; atomic_load(number) < least;) {
        assert_true(test_turn(&end));
    }
}

/* Attaches to all threads, as gdb does: repeats this until there is no new thread. */
static void attach(struct debugger *d, pid_t pid)
{
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    for (int before = -1; before < d->num;) {
        before = d->num;
        DIR *tasks = opendir(path);
        assert_non_null(tasks);
        for (struct dirent *task; (task = readdir(tasks));) {
            pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
            if (thread > 0 && !holds(d, thread)) {
                attach_thread(d, thread);
            }
        }
        (void)closedir(tasks);
    }
}

static void detach(const struct debugger *d)
{
    for (int i = 0; i < d->num; i++) {
        assert_int_equal(ptrace(PTRACE_DETACH, d->threads[i], NULL, NULL), 0);
    }
}

static void hold_rank_1(const pid_t *pids, int size, void *context)
{
    struct meeting *m = context;
    struct debugger d = {0};
    wait_until(&m->ready, size);
    attach(&d, pids[1]);
    assert_true(d.num >= 2); /* its heartbeat thread, too */
    atomic_store(&m->attached, 1);
    wait_until(&m->told, 1);
    stop(&d); /* at a breakpoint */
    test_let_pass(HELD_MS);
    detach(&d);
    atomic_store(&m->released, 1);
}

/* Waits until the rank knows of the debugger; on the same host it need not be told. */
static bool is_told(const struct muster_comm *comm, const struct meeting *m)
{
    bool remote = comm->peers[1].local < 0;
    for (int64_t end = 0;
         !atomic_load(&m->attached) || (remote && !atomic_load(&comm->peers[1].traced));) {
        if (!test_turn(&end)) {
            return false;
        }
    }
    return true;
}

static int wait_for_the_other(struct muster_comm *comm, void *context)
{
    struct meeting *m = context;
    struct muster_err err = MUSTER_ERR_INIT;
    float one = 1;
    int r = muster_all_reduce(comm, &one, &one, 1, MUSTER_F32, MUSTER_SUM, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    atomic_fetch_add(&m->ready, 1);
    if (muster_comm_rank(comm) == 0) {
        WORLD_CHECK(is_told(comm, m), "rank 1 did not say that it is in a debugger");
        atomic_store(&m->told, 1);
    }
    for (int64_t end = 0; muster_comm_rank(comm) == 1 && !atomic_load(&m->released);) {
        WORLD_CHECK(test_turn(&end), "the debugger did not let go");
    }
    r = muster_barrier(comm, &err); /* rank 0 waits in this call meanwhile */
    WORLD_CHECK(r == 0, "%s", err.text);
    WORLD_CHECK(atomic_load(&m->released), "the barrier did not wait for rank 1");
    return 0;
}

static void a_rank_in_a_debugger_counts_as_alive(void **state)
{
    struct meeting *m =
        mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(m, MAP_FAILED);
    struct world w = {
        .kind = WORLD_PROCESSES, .size = 2, .transport = *state, .meanwhile = hold_rank_1};
    assert_int_equal(world_run(&w, wait_for_the_other, m), 0);
    (void)munmap(m, sizeof *m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_rank_in_a_debugger_counts_as_alive, "shm"),
        cmocka_unit_test_prestate(a_rank_in_a_debugger_counts_as_alive, "tcp"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
