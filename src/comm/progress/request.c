/* A started call: who holds it, and the queries that do not wait.
 *
 * Layer: comm. Memory: see request.h; each thread keeps some freed requests for its next calls.
 * Thread: any.
 */
#include "comm/progress/request.h"

#include "comm/system/sized.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

enum { MAX_SPARE = 64 };

/* The spare requests of this thread. */
static _Thread_local struct spare {
    struct muster_request *first;
    int num;
    bool listed; /* free_spare will be called when the thread ends */
} spare;

static pthread_key_t spare_key;
static bool has_spare_key;

static void request_free(struct muster_request *request)
{
    pthread_mutex_destroy(&request->mutex);
    free(request);
}

static void free_spare(void *of_thread)
{
    struct spare *s = of_thread;
    while (s->first) {
        struct muster_request *next = atomic_load_explicit(&s->first->next, memory_order_relaxed);
        request_free(s->first);
        s->first = next;
    }
    s->num = 0;
    s->listed = false;
}

static void make_spare_key(void)
{
    has_spare_key = pthread_key_create(&spare_key, free_spare) == 0;
}

/* Keeps a request as a spare. Returns false if it must be freed. */
static bool keep(struct muster_request *request)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!spare.listed) {
        (void)pthread_once(&once, make_spare_key);
        spare.listed = has_spare_key && pthread_setspecific(spare_key, &spare) == 0;
    }
    if (!spare.listed || spare.num >= MAX_SPARE) {
        return false;
    }
    atomic_store_explicit(&request->next, spare.first, memory_order_relaxed);
    spare.first = request;
    spare.num++;
    return true;
}

struct muster_request *request_alloc(void)
{
    struct muster_request *request = spare.first;
    if (request) {
        spare.first = atomic_load_explicit(&request->next, memory_order_relaxed);
        spare.num--;
        return request;
    }
    request = malloc(sizeof *request);
    if (request) {
        pthread_mutex_init(&request->mutex, NULL);
        atomic_init(&request->notify, NULL);
        atomic_init(&request->notify_context, NULL);
    }
    return request;
}

void request_drop(struct muster_request *request)
{
    if (!keep(request)) {
        request_free(request);
    }
}

struct muster_request *request_sent(void)
{
    static struct muster_request sent = {
        .state = REQUEST_DONE, .err = MUSTER_ERR_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER};
    return &sent;
}

/* notify is read before the call ends, because the request may be gone after that. If notify was
 * changed meanwhile, so was the state. */
void request_end(struct muster_request *request, int end)
{
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    void (*notify)(void *, int) = NULL;
    void *context = NULL;
    assert(!request_state_is_pending(end));
    do {
        assert(request_state_is_pending(state) && "it ends once");
        if (state & REQUEST_TELLS) {
            notify = atomic_load_explicit(&request->notify, memory_order_acquire);
            context = atomic_load_explicit(&request->notify_context, memory_order_acquire);
        }
    } while (!atomic_compare_exchange_weak_explicit(&request->state, &state, end,
                                                    memory_order_acq_rel, memory_order_acquire));
    if (state & REQUEST_TELLS) {
        notify(context, end > 0 ? 0 : end);
    }
    if (state & REQUEST_LEFT) {
        request_drop(request);
    }
}

/* Changes the state of a pending request. Returns the state before the change, or the state with
 * which the request has ended. */
static int change(struct muster_request *request, int off, int on)
{
    int state = atomic_load_explicit(&request->state, memory_order_acquire), next;
    do {
        next = (int)(((unsigned)((state & ~off) | on) + REQUEST_TURN) & INT_MAX);
    } while (request_state_is_pending(state) &&
             !atomic_compare_exchange_weak_explicit(&request->state, &state, next,
                                                    memory_order_acq_rel, memory_order_acquire));
    return state;
}

int muster_request_test(struct muster_request *request, struct muster_err *err)
{
    int r = sized_check_err(err);
    if (r < 0) {
        return r;
    }
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    if (request_state_is_pending(state)) {
        return comm_check_own(request->comm, err);
    }
    if (state < 0) {
        sized_copy_err(err, &request->err);
    }
    return state;
}

int muster_request_message(const struct muster_request *request, struct muster_message *ret,
                           struct muster_err *err)
{
    int r = sized_check_err(err);
    r = r < 0 ? r : sized_check(&sized_message, ret, err);
    if (r == 0) {
        sized_write(&sized_message, ret, &request->task.transfer.message);
    }
    return r;
}

void muster_request_notify(struct muster_request *request, void (*done)(void *, int), void *context)
{
    pthread_mutex_lock(&request->mutex);
    int state = change(request, REQUEST_TELLS, 0);
    if (request_state_is_pending(state)) {
        atomic_store_explicit(&request->notify, done, memory_order_relaxed);
        atomic_store_explicit(&request->notify_context, context, memory_order_relaxed);
        state = change(request, 0, REQUEST_TELLS);
    }
    pthread_mutex_unlock(&request->mutex);
    if (!request_state_is_pending(state)) {
        done(context, state < 0 ? state : 0);
    }
}

void muster_request_free(struct muster_request *request)
{
    if (!request || request == request_sent()) {
        return;
    }
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    if (request_state_is_pending(state)) {
        state = change(request, 0, REQUEST_LEFT);
        assert(!(request_state_is_pending(state) && state & REQUEST_LEFT) && "it is freed once");
    }
    if (!request_state_is_pending(state)) {
        request_drop(request);
    }
}
