/* How a thread waits for other ranks: it spins for some tens of microseconds (a sleeping core takes
 * as long to wake), then yields (ranks that share a core move at the speed of a context switch),
 * then sleeps on this rank's doorbell. Ranks that outnumber the processors yield at once.
 *
 * A bell may be missed when its ringer's store is still in flight while it looks for sleepers;
 * sleeps therefore last WAIT_SLICE_MS, which is also how fast deaths are seen.
 *
 * Layer: comm. Thread: the one that waits.
 */
#include "comm/internal.h"

#include "comm/link.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS = 1000,
    SPINS_REMOTE = 64, /* each is a system call for each peer */
    YIELDS = 200,
    CHECK_EVERY = 32,
    LONG_YIELD_NS = 500 * 1000,
    INTERRUPT_EVERY_NS = 50 * 1000 * 1000,
};

int64_t wait_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t wait_deadline_ns(int64_t timeout_ms)
{
    int64_t left_ns, deadline_ns;
    bool fits = !__builtin_mul_overflow(timeout_ms, 1000000, &left_ns) &&
                !__builtin_add_overflow(wait_now_ns(), left_ns, &deadline_ns);
    return fits ? deadline_ns : timeout_ms < 0 ? 0 : INT64_MAX;
}

int wait_ms_until(int64_t deadline_ns)
{
    int64_t left = (deadline_ns - wait_now_ns()) / 1000000;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

void wait_wake_word(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void wait_ring(struct control *control)
{
    atomic_fetch_add(&control->bell, 1);
    wait_wake_word(&control->bell);
}

#ifdef SYS_futex_waitv
static int wait_many(_Atomic uint32_t *const *words, const uint32_t *values, int num,
                     int timeout_ms)
{
    struct futex_waitv list[WAIT_MAX_WORDS];
    for (int i = 0; i < num; i++) {
        list[i] =
            (struct futex_waitv){.val = values[i], .uaddr = (uintptr_t)words[i], .flags = FUTEX_32};
    }
    int64_t end = wait_now_ns() + timeout_ms * INT64_C(1000000);
    struct timespec until = {end / 1000000000, end % 1000000000};
    return (int)syscall(SYS_futex_waitv, list, num, 0, &until, CLOCK_MONOTONIC);
}
#else
static int wait_many(_Atomic uint32_t *const *words, const uint32_t *values, int num,
                     int timeout_ms)
{
    (void)words, (void)values, (void)num, (void)timeout_ms;
    errno = ENOSYS;
    return -1;
}
#endif

void wait_on_words(_Atomic uint32_t *const *words, const uint32_t *values, int num, int timeout_ms)
{
    assert(num > 0 && num <= WAIT_MAX_WORDS);
    if (num > 1 && (wait_many(words, values, num, timeout_ms) >= 0 || errno != ENOSYS)) {
        return;
    }
    /* One word, or a kernel before 5.16: the others are seen at the next slice. */
    struct timespec most = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    (void)syscall(SYS_futex, words[0], FUTEX_WAIT, values[0], &most, NULL, 0);
}

static int ask_user(struct waiter *w, struct muster_comm *comm, int64_t now, struct muster_err *err)
{
    if (!comm->interrupted || now - w->polled_ns < INTERRUPT_EVERY_NS) {
        return 0;
    }
    w->polled_ns = now;
    if (comm->interrupted(comm->interrupted_context)) {
        return muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while waiting for other ranks");
    }
    return 0;
}

int wait_check(struct waiter *w, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err)
{
    int rc = task ? failure_check(comm, task, err) : 0;
    if (rc < 0) {
        return rc;
    }
    int64_t now = wait_now_ns();
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
    return may_interrupt ? ask_user(w, comm, now, err) : 0;
}

/* For ranks of this host only: no socket can wake it. */
static bool waits_here(const struct muster_comm *comm, const struct task *task)
{
    return comm->all_local || (task && task->lane != LANE_MESSAGES && task->waiting >= 0 &&
                               comm->peers[task->waiting].local >= 0);
}

/* The first turn registers, so that the caller looks once more before the next turn sleeps. */
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
        wait_on_words(&word, &w->bell, 1, WAIT_SLICE_MS);
    } else {
        link_wait(comm, comm->local_size > 1 ? 1 : WAIT_SLICE_MS);
    }
    w->bell = atomic_load(&comm->control->bell);
}

static unsigned spins_of(const struct muster_comm *comm)
{
    return comm->crowded ? 0 : comm->all_local ? SPINS : SPINS_REMOTE;
}

/* A yield that takes long gave the processor to strangers: it is better then to look for failures
 * at once, and to sleep soon, for who wakes up is preferred to who yields. */
static int yield_turn(struct waiter *w, struct muster_comm *comm, const struct task *task,
                      struct muster_err *err)
{
    int64_t before = wait_now_ns();
    sched_yield();
    bool late = wait_now_ns() - before > LONG_YIELD_NS;
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
        comm_relax();
        return 0;
    }
    if (turn < spins + yields) { /* what we wait for may need this very core */
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
        atomic_fetch_sub(&comm->control->sleepers, 1);
        w->sleepy = false;
    }
}
