/* The progress thread. There is one per process, from the first started call on. It steps the
 * lanes of those communicators for which no thread of the user waits, and otherwise sleeps on
 * their doorbells, or without a limit.
 *
 * Waking the thread for a call whose starter waits for it at once costs more than a short call, and
 * takes a processor from another rank. If the last calls were of this kind, the thread is not woken
 * for the next: it naps, and looks after each nap whether a call was left without a waiting thread.
 * If so, it is woken again from then on.
 *
 * Layer: comm. Memory: none; it pins the communicators that it uses. Thread: as said.
 */
#include "comm/progress/background.h"

#include "comm/progress/lane.h"
#include "comm/progress/wait.h"
#include "comm/shm/futex.h"
#include "comm/shm/line.h"
#include "comm/tcp/link.h"
#include "core/thread.h"

#include <assert.h>
#include <string.h>
#include <time.h>

enum {
    BACKGROUND_SPINS = 64,
    HELPED_ENOUGH = 16, /* after this many calls in a row that their starter ended, the thread
                           naps */
    NAP_MS = 1,         /* length of a nap, and so the longest delay of a call, … */
    LOOK_NS = 50000,    /* … unless a thread comes to wait in each interval of this length */
    MAX_NAPS = 100,     /* naps without any new call before the communicator is no longer active */
};

static struct {
    pthread_mutex_t mutex; /* guards process, active, and pins of all communicators */
    pthread_cond_t work;
    pthread_cond_t released;
    uint32_t process; /* the process in which the thread runs */
    struct muster_comm *active;
    _Atomic bool asleep;
    _Atomic uint32_t bell; /* rung when there is something to do */
} background = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                .work = PTHREAD_COND_INITIALIZER,
                .released = PTHREAD_COND_INITIALIZER};

/* Whether the thread that starts this communicator's calls waits for them at once. */
static bool is_helped(struct muster_comm *comm)
{
    return comm->all_local &&
           atomic_load_explicit(&comm->helped, memory_order_relaxed) >= HELPED_ENOUGH;
}

/* Whether calls are under way that no thread waits for, now or soon. */
static bool has_work(struct muster_comm *comm)
{
    return !comm->attended && lane_in_flight(comm) > 0 && atomic_load(&comm->helpers) == 0;
}

static unsigned visits(const struct muster_comm *comm)
{
    return atomic_load_explicit(&comm->visits, memory_order_relaxed);
}

/* A thread that waits steps all calls, so a thread that starts many calls and then waits for them
 * does the work itself. */
static void look_who_attends(struct muster_comm *const *comms, int num)
{
    unsigned before[FUTEX_MAX_WORDS];
    bool any = false;
    for (int i = 0; i < num; i++) {
        before[i] = visits(comms[i]);
        bool visited = before[i] != comms[i]->visits_seen;
        comms[i]->attended = (is_helped(comms[i]) || visited) && lane_in_flight(comms[i]) > 0;
        any |= comms[i]->attended;
    }
    if (any) {
        (void)nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
    for (int i = 0; i < num; i++) {
        comms[i]->visits_seen = visits(comms[i]);
        comms[i]->attended = comms[i]->attended && comms[i]->visits_seen != before[i];
    }
}

/* Rotates the list so that this communicator is its last. */
static void rotate(struct muster_comm *new_last)
{
    struct muster_comm *first = background.active, *old_last = new_last;
    while (old_last->next_active) {
        old_last = old_last->next_active;
    }
    background.active = new_last->next_active;
    old_last->next_active = first;
    new_last->next_active = NULL;
}

/* Waits for work, and pins the communicators that have it; if they are too many, it takes others
 * each time. */
static int take_active(struct muster_comm **ret)
{
    int num = 0;
    pthread_mutex_lock(&background.mutex);
    while (!background.active) {
        pthread_cond_wait(&background.work, &background.mutex);
    }
    for (struct muster_comm *c = background.active; c && num < FUTEX_MAX_WORDS - 1;
         c = c->next_active) {
        c->pins++;
        ret[num++] = c;
    }
    assert(num > 0);
    if (ret[num - 1]->next_active) {
        rotate(ret[num - 1]);
    }
    pthread_mutex_unlock(&background.mutex);
    return num;
}

static void give_back(struct muster_comm *const *comms, int num)
{
    pthread_mutex_lock(&background.mutex);
    for (int i = 0; i < num; i++) {
        assert(comms[i]->pins > 0);
        comms[i]->pins--;
    }
    for (struct muster_comm **at = &background.active; *at;) {
        struct muster_comm *comm = *at;
        assert(comm->active);
        if (lane_in_flight(comm) > 0) {
            comm->naps = 0;
            at = &comm->next_active;
        } else if (is_helped(comm) && comm->naps++ < MAX_NAPS) {
            at = &comm->next_active;
        } else {
            comm->active = false;
            /* The communicator's thread appends a call and then looks at `active`: either it sees
             * that we have left, or we see its call. The loads of the look below are acquire loads,
             * which may go before an earlier store; the append is one atomic addition in the order
             * of this fence, and so is that thread's look at `active`. */
            atomic_thread_fence(memory_order_seq_cst);
            if (lane_in_flight(comm) > 0) {
                comm->active = true;
                at = &comm->next_active;
            } else {
                *at = comm->next_active;
            }
        }
    }
    pthread_cond_broadcast(&background.released);
    pthread_mutex_unlock(&background.mutex);
}

/* Returns true if something moved. */
static bool step_all(struct muster_comm *const *comms, int num, bool check)
{
    bool moved = false;
    for (int i = 0; i < num; i++) {
        if (has_work(comms[i]) && lane_try_all(comms[i], check)) {
            atomic_store_explicit(&comms[i]->helped, 0, memory_order_relaxed);
            moved = true;
        }
    }
    return moved;
}

static void sleep_on_bells(struct muster_comm *const *comms, int num, uint32_t seen)
{
    _Atomic uint32_t *words[FUTEX_MAX_WORDS] = {&background.bell};
    uint32_t values[FUTEX_MAX_WORDS] = {seen};
    struct muster_comm *listed[FUTEX_MAX_WORDS], *remote[FUTEX_MAX_WORDS];
    int num_words = 1, num_remote = 0;
    for (int i = 0; i < num; i++) {
        if (has_work(comms[i])) { /* others' bells would only cost the threads that ring them a
                                     system call each */
            listed[num_words - 1] = comms[i];
            words[num_words] = &comms[i]->control->bell;
            values[num_words] = atomic_load(words[num_words]);
            atomic_fetch_add(&comms[i]->control->sleepers, 1);
            num_words++;
            if (!comms[i]->all_local) {
                remote[num_remote++] = comms[i];
            }
        }
    }
    atomic_store(&background.asleep, true);
    if (!step_all(comms, num, true)) {
        if (num_remote > 0) {
            link_wait(remote, num_remote, 1); /* a bell does not wake a thread that waits on
                                                 sockets */
        } else {
            futex_wait_any(words, values, num_words, num_words > 1 ? WAIT_SLICE_MS : NAP_MS);
        }
    }
    atomic_store(&background.asleep, false);
    for (int i = 0; i < num_words - 1; i++) {
        uint32_t sleepers = atomic_fetch_sub(&listed[i]->control->sleepers, 1);
        assert(sleepers > 0);
    }
}

static void *run(void *unused)
{
    (void)unused;
    struct muster_comm *comms[FUTEX_MAX_WORDS];
    for (;;) {
        int num = take_active(comms);
        uint32_t seen = atomic_load(&background.bell);
        look_who_attends(comms, num);
        for (int idle = 0; idle <= BACKGROUND_SPINS && !step_all(comms, num, false); idle++) {
            if (idle == BACKGROUND_SPINS) {
                sleep_on_bells(comms, num, seen);
            }
            line_pause();
        }
        give_back(comms, num);
    }
    return NULL;
}

static void lock_before_fork(void)
{
    pthread_mutex_lock(&background.mutex);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&background.mutex);
}

/* The parent's progress thread may have been waiting. A condition that remembers it would lose the
 * signals for the child's thread. */
static void reset_in_child(void)
{
    pthread_cond_init(&background.work, NULL);
    pthread_cond_init(&background.released, NULL);
    background.active = NULL;
    atomic_store(&background.asleep, false);
    pthread_mutex_unlock(&background.mutex);
}

static void register_fork(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_after_fork, reset_in_child);
}

static int start_thread(struct muster_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_fork);
    pthread_t thread;
    int r = thread_start(&thread, NULL, run, NULL);
    if (r != 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start the progress thread: %s", strerror(r));
    }
    pthread_detach(thread);
    background.process = heartbeat_process();
    return 0;
}

static void wake(void)
{
    atomic_fetch_add(&background.bell, 1);
    if (atomic_load(&background.asleep)) {
        futex_wake_all(&background.bell);
    }
}

void background_helped(struct muster_comm *comm, bool ended)
{
    if (ended && atomic_load_explicit(&comm->helped, memory_order_relaxed) < HELPED_ENOUGH) {
        atomic_fetch_add_explicit(&comm->helped, 1, memory_order_relaxed);
    }
    atomic_fetch_sub(&comm->helpers, 1);
    atomic_fetch_add_explicit(&comm->visits, 1, memory_order_relaxed);
    if (lane_in_flight(comm) > 0 && !is_helped(comm)) {
        wake();
    }
}

int background_add(struct muster_comm *comm, struct muster_err *err)
{
    if (is_helped(comm) && atomic_load(&comm->active)) {
        return 0;
    }
    pthread_mutex_lock(&background.mutex);
    int r = background.process == heartbeat_process() ? 0 : start_thread(err);
    bool naps = r == 0 && comm->active && is_helped(comm);
    if (r == 0 && !comm->active) {
        comm->active = true;
        comm->next_active = background.active;
        background.active = comm;
        pthread_cond_signal(&background.work);
    }
    pthread_mutex_unlock(&background.mutex);
    if (r == 0 && !naps) {
        wake();
    }
    return r;
}

void background_forget(struct muster_comm *comm)
{
    pthread_mutex_lock(&background.mutex);
    for (struct muster_comm **at = &background.active; *at; at = &(*at)->next_active) {
        if (*at == comm) {
            *at = comm->next_active;
            break;
        }
    }
    while (comm->pins > 0) {
        wake();
        pthread_cond_wait(&background.released, &background.mutex);
    }
    pthread_mutex_unlock(&background.mutex);
}
