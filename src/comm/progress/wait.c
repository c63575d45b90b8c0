/* How a thread waits for other ranks: it spins for some tens of microseconds (a sleeping core takes
 * as long to wake), then yields (ranks that share a core move at the speed of a context switch),
 * then sleeps on this rank's doorbell. Ranks that outnumber the processors yield at once.
 *
 * A bell may be missed when its ringer's store is still in flight while it looks for sleepers;
 * sleeps therefore last WAIT_SLICE_MS, which is also how fast deaths are seen.
 *
 * Layer: comm. Thread: the one that waits.
 */
#include "comm/progress/wait.h"

#include "comm/health/failure.h"
#include "comm/progress/inside.h"
#include "comm/shm/futex.h"
#include "comm/shm/line.h"
#include "comm/system/deadline.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <sched.h>

enum {
    SPINS = 1000,
    SPINS_REMOTE = 64, /* each spin is a system call for each peer */
    YIELDS = 200,
    CHECK_EVERY = 32,
    LONG_YIELD_NS = 500 * 1000,
    INTERRUPT_EVERY_NS = 50 * 1000 * 1000,
};

/* Without a task, this thread waits for a task that another thread runs. */
static bool user_has_enough(struct muster_comm *comm, const struct task *task)
{
    struct inside place;
    if (!task) {
        return comm->interrupted(comm->interrupted_context);
    }
    inside_enter(&place, comm, INSIDE_CALL);
    bool enough = comm->interrupted(comm->interrupted_context);
    inside_leave(&place);
    return enough;
}

static int ask_user(struct waiter *w, struct muster_comm *comm, const struct task *task,
                    int64_t now, struct muster_err *err)
{
    if (!comm->interrupted || now - w->polled_ns < INTERRUPT_EVERY_NS) {
        return 0;
    }
    w->polled_ns = now;
    bool open = phase_code(&comm->life) == 0;
    if (user_has_enough(comm, task)) {
        return muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while waiting for other ranks");
    }
    /* If the user aborted in that callback, no step of this call may still complete it. */
    return task && open && phase_code(&comm->life) != 0
               ? muster_fail(err, MUSTER_EABORTED, "this communicator was closed")
               : 0;
}

int wait_check(struct waiter *w, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err)
{
    int r = task ? failure_check(comm, task, err) : 0;
    if (r < 0) {
        return r;
    }
    int64_t now = deadline_now_ns();
    if (w->since_ns == 0) {
        w->since_ns = w->polled_ns = now;
    }
    int64_t waited_ms = (now - w->since_ns) / 1000000;
    if (task && waited_ms >= atomic_load_explicit(&comm->timeout_ms, memory_order_relaxed)) {
        return failure_timeout(comm, task, waited_ms, err);
    }
    if (task && !w->noticed && comm->notice_ms > 0 && waited_ms >= comm->notice_ms) {
        w->noticed = true;
        failure_notice(comm, task, waited_ms);
    }
    return may_interrupt ? ask_user(w, comm, task, now, err) : 0;
}

/* Whether no socket can wake the thread, because all ranks that matter are on this host. */
static bool waits_here(const struct muster_comm *comm, const struct task *task)
{
    return comm->all_local || (task && task->lane != LANE_MESSAGES && task->waiting >= 0 &&
                               comm->peers[task->waiting].local >= 0);
}

/* The first turn only registers as a sleeper, so that the caller looks once more before the next
 * turn sleeps. */
static void sleep_turn(struct waiter *w, struct muster_comm *comm, const struct task *task)
{
    if (!w->sleepy) {
        w->bell = atomic_load(&comm->control->bell);
        atomic_fetch_add(&comm->control->sleepers, 1);
        w->sleepy = true;
        return;
    }
    if (waits_here(comm, task)) {
        _Atomic uint32_t *word = &comm->control->bell;
        futex_wait_any(&word, &w->bell, 1, WAIT_SLICE_MS);
    } else {
        link_wait(&comm, 1, comm->local_size > 1 ? 1 : WAIT_SLICE_MS);
    }
    w->bell = atomic_load(&comm->control->bell);
}

static unsigned spins_of(const struct muster_comm *comm)
{
    return comm->oversubscribed ? 0 : comm->all_local ? SPINS : SPINS_REMOTE;
}

/* A yield that takes long gave the processor to other programs. It is then better to check for
 * failures at once, and to sleep soon, because the scheduler prefers a thread that wakes up to one
 * that yields. */
static int yield_turn(struct waiter *w, struct muster_comm *comm, const struct task *task,
                      struct muster_err *err)
{
    int64_t before = deadline_now_ns();
    sched_yield();
    bool late = deadline_now_ns() - before > LONG_YIELD_NS;
    w->turns += late ? CHECK_EVERY : 0;
    return late || w->turns % CHECK_EVERY == 0 ? wait_check(w, comm, task, true, err) : 0;
}

int wait_turn(struct waiter *w, struct muster_comm *comm, const struct task *task,
              struct muster_err *err)
{
    bool here = waits_here(comm, task);
    unsigned spins = spins_of(comm);
    unsigned yields = here ? YIELDS : 0;
    unsigned turn = w->turns++;
    if (turn < spins && comm->all_local) {
        line_pause();
        return 0;
    }
    if (turn < spins + yields) { /* the rank that this thread waits for may need this core */
        return yield_turn(w, comm, task, err);
    }
    sleep_turn(w, comm, task);
    return wait_check(w, comm, task, true, err);
}

bool wait_is_slow(const struct waiter *w, const struct muster_comm *comm)
{
    return w->turns > spins_of(comm);
}

int wait_moved(struct waiter *w, struct muster_comm *comm, const struct task *task,
               struct muster_err *err)
{
    wait_end(w, comm);
    w->turns = 0;
    /* A long call that never waits for long must still see that it was aborted. */
    return ++w->moves % CHECK_EVERY == 0 ? wait_check(w, comm, task, true, err) : 0;
}

void wait_end(struct waiter *w, struct muster_comm *comm)
{
    if (w->sleepy) {
        uint32_t sleepers = atomic_fetch_sub(&comm->control->sleepers, 1);
        assert(sleepers > 0);
        w->sleepy = false;
    }
}
