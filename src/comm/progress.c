/* Who steps tasks. A blocking call runs on its own thread, at once when its lane is idle. A started
 * call is queued on its lane and stepped by whoever holds the lane: the thread that waits for it,
 * or else the progress thread, one per process, which sleeps on the doorbells of the communicators
 * that have work.
 *
 * Layer: comm. Memory: requests (request.h). Thread: as said.
 */
#include "comm/internal.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "comm/link.h"
#include "comm/request.h"

enum { BACKGROUND_SPINS = 64, INLINE_BYTES = 16 * 1024 };

static struct {
    pthread_mutex_t mutex; /* guards process, active, and pins of all communicators */
    pthread_cond_t work;
    pthread_cond_t released;
    uint32_t process; /* in which the thread runs */
    struct muster_comm *active;
    _Atomic bool asleep;
    _Atomic uint32_t bell; /* rung when there is something new */
} background = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                .work = PTHREAD_COND_INITIALIZER,
                .released = PTHREAD_COND_INITIALIZER};

void request_unref(struct muster_request *request)
{
    if (request && atomic_fetch_sub(&request->refs, 1) == 1) {
        pthread_mutex_destroy(&request->mutex);
        free(request);
    }
}

/* ---- a lane's queue ---- */

static struct muster_request *first_of(struct lane *lane)
{
    pthread_mutex_lock(&lane->queue);
    struct muster_request *first = lane->first;
    pthread_mutex_unlock(&lane->queue);
    return first;
}

static struct muster_request *after(struct lane *lane, const struct muster_request *request)
{
    pthread_mutex_lock(&lane->queue);
    struct muster_request *next = request->next;
    pthread_mutex_unlock(&lane->queue);
    return next;
}

static void append(struct lane *lane, struct muster_request *request)
{
    pthread_mutex_lock(&lane->queue);
    if (lane->last) {
        lane->last->next = request;
    } else {
        lane->first = request;
    }
    lane->last = request;
    atomic_fetch_add(&lane->in_flight, 1);
    pthread_mutex_unlock(&lane->queue);
}

static void take_out(struct lane *lane, struct muster_request *request)
{
    pthread_mutex_lock(&lane->queue);
    struct muster_request *before = NULL;
    for (struct muster_request *r = lane->first; r != request; r = r->next) {
        before = r;
    }
    if (before) {
        before->next = request->next;
    } else {
        lane->first = request->next;
    }
    if (lane->last == request) {
        lane->last = before;
    }
    atomic_fetch_sub(&lane->in_flight, 1);
    pthread_mutex_unlock(&lane->queue);
}

static void note_end(struct muster_comm *comm, const struct task *task, int rc)
{
    if (rc > 0) {
        if (task->lane != LANE_MESSAGES) {
            atomic_store_explicit(&comm->completed, task->number, memory_order_release);
        }
        return;
    }
    bool in_place = task->call.in == task->call.out || task->call.kind == MUSTER_BROADCAST;
    bool usable = rc == MUSTER_ETOOBIG && task->call.kind == MUSTER_RECV;
    if (!usable) {
        atomic_store(&comm->input_touched, task->begun && in_place);
        failure_close(comm, rc);
    }
}

/* By the holder of the lane. */
static void finish(struct muster_comm *comm, struct lane *lane, struct muster_request *request,
                   int rc)
{
    note_end(comm, &request->task, rc);
    take_out(lane, request);
    pthread_mutex_lock(&request->mutex);
    atomic_store_explicit(&request->state, rc > 0 ? REQUEST_DONE : rc, memory_order_release);
    void (*notify)(void *, int) = request->notify;
    pthread_mutex_unlock(&request->mutex);
    if (notify) {
        notify(request->notify_context, rc > 0 ? 0 : rc);
    }
    wait_wake(comm->control);
    request_unref(request);
}

/* The peer that the task waits for is gone, but what it had sent before counts: a step more. 0:
 * after it the task waits for someone else. */
static int last_step(struct muster_comm *comm, struct task *task, int failure)
{
    bool peers = failure == MUSTER_EPEERDEAD || failure == MUSTER_EABORTED;
    if (!peers || atomic_load(&comm->closed)) {
        return failure;
    }
    int rc = task->step(comm, task, NULL);
    return rc > 0 ? 1 : rc == 0 && !failure_is_gone(comm, task) ? 0 : failure;
}

static int step_request(struct muster_comm *comm, struct muster_request *request, bool check)
{
    struct task *task = &request->task;
    if (atomic_load_explicit(&comm->closed, memory_order_acquire)) {
        return failure_check(comm, task, &request->err);
    }
    int rc = task->step(comm, task, &request->err);
    if (rc == 0 && check) {
        rc = wait_check(&request->waiter, comm, task, false, &request->err);
        rc = rc < 0 ? last_step(comm, task, rc) : 0;
    }
    return rc;
}

/* Steps a lane, if nobody else does: its first requests until one must wait, or, where order does
 * not matter, all. The number that ended. */
static int try_lane(struct muster_comm *comm, struct lane *lane, bool check)
{
    if (atomic_load_explicit(&lane->in_flight, memory_order_acquire) == 0 ||
        pthread_mutex_trylock(&lane->running) != 0) {
        return 0;
    }
    int ended = 0;
    for (struct muster_request *r = first_of(lane), *next; r; r = next) {
        next = after(lane, r);
        int rc = step_request(comm, r, check);
        if (rc != 0) {
            finish(comm, lane, r, rc);
            /* What was started meanwhile must not wait for the next turn. */
            next = next ? next : first_of(lane);
            ended++;
        } else if (lane->index != LANE_MESSAGES) {
            break;
        }
    }
    pthread_mutex_unlock(&lane->running);
    return ended;
}

/* ---- the progress thread ---- */

static int in_flight(struct muster_comm *comm)
{
    int sum = 0;
    for (int l = 0; l < LANES; l++) {
        sum += atomic_load_explicit(&comm->lanes[l].in_flight, memory_order_acquire);
    }
    return sum;
}

static bool is_busy(struct muster_comm *comm)
{
    return in_flight(comm) > 0;
}

/* Waits for work, and pins the communicators that have it. */
static int take_active(struct muster_comm **ret)
{
    int num = 0;
    pthread_mutex_lock(&background.mutex);
    while (!background.active) {
        pthread_cond_wait(&background.work, &background.mutex);
    }
    for (struct muster_comm *c = background.active; c && num < WAIT_MAX_WORDS - 1;
         c = c->next_active) {
        c->pins++;
        ret[num++] = c;
    }
    pthread_mutex_unlock(&background.mutex);
    return num;
}

static void give_back(struct muster_comm *const *comms, int num)
{
    pthread_mutex_lock(&background.mutex);
    for (int i = 0; i < num; i++) {
        comms[i]->pins--;
    }
    for (struct muster_comm **at = &background.active; *at;) {
        struct muster_comm *comm = *at;
        if (is_busy(comm)) {
            at = &comm->next_active;
        } else {
            comm->active = false;
            *at = comm->next_active;
        }
    }
    pthread_cond_broadcast(&background.released);
    pthread_mutex_unlock(&background.mutex);
}

/* A lane that a user's thread steps while it waits is left to it. */
static int step_all(struct muster_comm *const *comms, int num, bool check)
{
    int ended = 0;
    for (int i = 0; i < num; i++) {
        for (int l = 0; l < LANES; l++) {
            struct lane *lane = &comms[i]->lanes[l];
            if (atomic_load(&lane->helpers) == 0) {
                ended += try_lane(comms[i], lane, check);
            }
        }
    }
    return ended;
}

static void sleep_on_bells(struct muster_comm *const *comms, int num, uint32_t seen)
{
    _Atomic uint32_t *words[WAIT_MAX_WORDS] = {&background.bell};
    uint32_t values[WAIT_MAX_WORDS] = {seen};
    struct muster_comm *remote = NULL;
    for (int i = 0; i < num; i++) {
        words[i + 1] = &comms[i]->control->bell;
        values[i + 1] = atomic_load(words[i + 1]);
        atomic_fetch_add(&comms[i]->control->sleepers, 1);
        remote = comms[i]->all_local ? remote : comms[i];
    }
    atomic_store(&background.asleep, true);
    if (step_all(comms, num, true) == 0) {
        if (remote) {
            link_wait(remote, 1);
        } else {
            wait_on_words(words, values, num + 1, WAIT_SLICE_MS);
        }
    }
    atomic_store(&background.asleep, false);
    for (int i = 0; i < num; i++) {
        atomic_fetch_sub(&comms[i]->control->sleepers, 1);
    }
}

static void *run(void *unused)
{
    (void)unused;
    struct muster_comm *comms[WAIT_MAX_WORDS];
    for (;;) {
        int num = take_active(comms);
        uint32_t seen = atomic_load(&background.bell);
        for (int idle = 0; idle <= BACKGROUND_SPINS && step_all(comms, num, false) == 0; idle++) {
            if (idle == BACKGROUND_SPINS) {
                sleep_on_bells(comms, num, seen);
            }
            comm_relax();
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

/* The parent's progress thread may have been waiting: a condition that remembers it would lose
 * ours. */
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
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start the progress thread: %s", strerror(rc));
    }
    pthread_detach(thread);
    background.process = life_process();
    return 0;
}

static void wake_background(void)
{
    atomic_fetch_add(&background.bell, 1);
    if (atomic_load(&background.asleep)) {
        wait_wake_word(&background.bell);
    }
}

static int activate(struct muster_comm *comm, struct muster_err *err)
{
    pthread_mutex_lock(&background.mutex);
    int rc = background.process == life_process() ? 0 : start_thread(err);
    if (rc == 0 && !comm->active) {
        comm->active = true;
        comm->next_active = background.active;
        background.active = comm;
        pthread_cond_signal(&background.work);
    }
    pthread_mutex_unlock(&background.mutex);
    if (rc == 0) {
        wake_background();
    }
    return rc;
}

/* ---- blocking calls ---- */

static int run_here(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    struct waiter waiter = {0};
    int rc;
    while ((rc = task->step(comm, task, err)) == 0) {
        rc = wait_turn(&waiter, comm, task, err);
        rc = rc < 0 ? last_step(comm, task, rc) : 0;
        if (rc != 0) {
            break;
        }
    }
    wait_end(&waiter, comm);
    return rc;
}

int progress_run(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    atomic_store_explicit(&comm->in_call, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* with the membarrier of progress_drain */
    int rc = MUSTER_EABORTED;
    if (atomic_load_explicit(&comm->closed, memory_order_relaxed) == 0) {
        rc = run_here(comm, task, err);
        note_end(comm, task, rc);
    } else {
        muster_fail(err, rc, "this communicator was closed");
    }
    atomic_store_explicit(&comm->in_call, 0, memory_order_release);
    return rc < 0 ? rc : 0;
}

void progress_drain(struct muster_comm *comm)
{
    /* Orders our store of `closed` against the plain store of `in_call` on the thread that calls.
     */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0) {
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    while (atomic_load_explicit(&comm->in_call, memory_order_acquire)) {
        wait_ring(comm->control);
        sched_yield();
    }
    for (int l = 0; l < LANES; l++) {
        struct lane *lane = &comm->lanes[l];
        pthread_mutex_lock(&lane->running);
        struct muster_request *request;
        while ((request = first_of(lane))) {
            finish(comm, lane, request, failure_check(comm, &request->task, &request->err));
        }
        pthread_mutex_unlock(&lane->running);
    }
}

void progress_forget(struct muster_comm *comm)
{
    pthread_mutex_lock(&background.mutex);
    for (struct muster_comm **at = &background.active; *at; at = &(*at)->next_active) {
        if (*at == comm) {
            *at = comm->next_active;
            break;
        }
    }
    while (comm->pins > 0) {
        pthread_cond_wait(&background.released, &background.mutex);
    }
    pthread_mutex_unlock(&background.mutex);
}

/* ---- started calls ---- */

static struct muster_request *request_new(struct muster_comm *comm, const struct muster_call *call,
                                          struct muster_err *err)
{
    struct muster_request *request = calloc(1, sizeof *request);
    if (!request) {
        muster_fail(err, MUSTER_ENOMEM, "no memory for a request");
        return NULL;
    }
    request->comm = comm;
    request->err.rank = -1;
    atomic_init(&request->refs, 2);
    pthread_mutex_init(&request->mutex, NULL);
    if (call_prepare(comm, call, &request->task, err) < 0) {
        atomic_store(&request->refs, 1);
        request_unref(request);
        return NULL;
    }
    return request;
}

int muster_start(struct muster_comm *comm, const struct muster_call *call,
                 struct muster_request **ret, struct muster_err *err)
{
    if (in_flight(comm) >= MUSTER_MAX_IN_FLIGHT) {
        return muster_fail(err, MUSTER_EAGAIN, "%d calls are under way: wait for some",
                           MUSTER_MAX_IN_FLIGHT);
    }
    struct muster_err reason = {0};
    struct muster_request *request = request_new(comm, call, &reason);
    if (!request) {
        if (err) {
            *err = reason;
        }
        return reason.code;
    }
    struct lane *lane = &comm->lanes[request->task.lane];
    append(lane, request);
    *ret = request;
    /* Small calls leave at once; large ones must not hold up the caller. */
    if (call->count * request->task.unit <= INLINE_BYTES) {
        (void)try_lane(comm, lane, false);
    }
    if (atomic_load_explicit(&request->state, memory_order_acquire) == REQUEST_PENDING) {
        int rc = activate(comm, err);
        if (rc < 0) {
            failure_close(comm, rc);
            progress_drain(comm);
        }
    }
    return 0;
}

/* Nothing is under way that this call would have to follow. */
static bool is_idle(struct muster_comm *comm, const struct muster_call *call)
{
    if (call->kind == MUSTER_SEND || call->kind == MUSTER_RECV) {
        return atomic_load_explicit(&comm->lanes[LANE_MESSAGES].in_flight, memory_order_acquire) ==
               0;
    }
    return atomic_load_explicit(&comm->lanes[LANE_MAIN].in_flight, memory_order_acquire) == 0 &&
           atomic_load_explicit(&comm->lanes[LANE_SIDE].in_flight, memory_order_acquire) == 0;
}

static int run_queued(struct muster_comm *comm, const struct muster_call *call,
                      struct muster_message *ret, struct muster_err *err)
{
    struct muster_request *request;
    int rc = muster_start(comm, call, &request, err);
    if (rc < 0) {
        return rc;
    }
    rc = muster_request_wait(request, -1, err);
    if (rc == MUSTER_EINTERRUPTED) {
        failure_close(comm, rc);
        progress_drain(comm);
    }
    if (rc == 0 && ret) {
        muster_request_message(request, ret);
    }
    muster_request_free(request);
    return rc;
}

static int run_call(struct muster_comm *comm, const struct muster_call *call,
                    struct muster_message *ret, struct muster_err *err)
{
    if (!is_idle(comm, call)) {
        return run_queued(comm, call, ret, err);
    }
    if (small_fits(comm, call)) {
        return small_run(comm, call, err);
    }
    struct task task;
    int rc = call_prepare(comm, call, &task, err);
    rc = rc < 0 ? rc : progress_run(comm, &task, err);
    if (rc == 0 && ret) {
        *ret = task.transfer.message;
    }
    return rc;
}

int muster_run(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err)
{
    return run_call(comm, call, NULL, err);
}

int muster_recv(struct muster_comm *comm, void *out, size_t count, enum muster_type type, int from,
                int tag, struct muster_message *ret, struct muster_err *err)
{
    struct muster_call call = {
        .kind = MUSTER_RECV, .type = type, .peer = from, .tag = tag, .out = out, .count = count};
    return run_call(comm, &call, ret, err);
}

int muster_request_test(struct muster_request *request, struct muster_err *err)
{
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    if (state < 0 && err) {
        *err = request->err;
    }
    return state;
}

/* Waits as a helper of the lane: steps it, instead of waiting for the progress thread to. */
static int help(struct muster_request *request, int64_t timeout_ms, struct muster_err *err)
{
    struct muster_comm *comm = request->comm;
    struct lane *lane = &comm->lanes[request->task.lane];
    struct waiter waiter = {0};
    int64_t end_ns = timeout_ms < 0 ? INT64_MAX : wait_now_ns() + timeout_ms * 1000000;
    int rc = 0;
    atomic_fetch_add(&lane->helpers, 1);
    while (rc == 0) {
        (void)try_lane(comm, lane, wait_is_slow(&waiter, comm));
        if (atomic_load_explicit(&request->state, memory_order_acquire) != REQUEST_PENDING) {
            break;
        }
        rc = wait_turn(&waiter, comm, NULL, err);
        if (rc == 0 && wait_is_slow(&waiter, comm) && wait_now_ns() >= end_ns) {
            rc = muster_fail(err, MUSTER_ETIMEDOUT, "still under way after %lld ms",
                             (long long)timeout_ms);
        }
    }
    wait_end(&waiter, comm);
    atomic_fetch_sub(&lane->helpers, 1);
    wake_background();
    return rc;
}

int muster_request_wait(struct muster_request *request, int64_t timeout_ms, struct muster_err *err)
{
    if (atomic_load_explicit(&request->state, memory_order_acquire) == REQUEST_PENDING) {
        int rc = help(request, timeout_ms, err);
        if (rc < 0) {
            return rc;
        }
    }
    int state = muster_request_test(request, err);
    return state < 0 ? state : 0;
}

void muster_request_message(const struct muster_request *request, struct muster_message *ret)
{
    *ret = request->task.transfer.message;
}

void muster_request_notify(struct muster_request *request, void (*done)(void *, int), void *context)
{
    pthread_mutex_lock(&request->mutex);
    int state = atomic_load(&request->state);
    if (state == REQUEST_PENDING) {
        request->notify = done;
        request->notify_context = context;
    }
    pthread_mutex_unlock(&request->mutex);
    if (state != REQUEST_PENDING) {
        done(context, state < 0 ? state : 0);
    }
}

void muster_request_free(struct muster_request *request)
{
    request_unref(request);
}
