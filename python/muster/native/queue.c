/* The queue of requests that have ended.
 *
 * Whichever thread ends a call, with the GIL or without, puts its request on one of two lists:
 * `wanted` ones wake the Python thread that completes futures; the others wait for the next start,
 * which lets them go.
 *
 * Layer: Python glue. The queue has a mutex.
 */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct list {
    struct native_request *first;
    struct native_request **last;
};

struct native_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    uint64_t ended;         /* the number of collectives of all communicators that have ended */
    pthread_cond_t settled; /* signals that a communicator has no collective under way any more */
    struct list wanted;
    struct list quiet;
    bool stopped;
};

static struct native_request *list_take(struct list *list)
{
    struct native_request *first = list->first;
    list->first = NULL;
    list->last = &list->first;
    return first;
}

static struct native_request *list_take_first(struct list *list)
{
    struct native_request *first = list->first;
    if (first) {
        list->first = first->next;
        list->last = list->first ? list->last : &list->first;
    }
    return first;
}

static void list_add(struct list *list, struct native_request *request)
{
    request->next = NULL;
    *list->last = request;
    list->last = &request->next;
}

static void init_monotonic(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct native_queue *native_queue_new(void)
{
    struct native_queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->filled, NULL);
        init_monotonic(&queue->settled);
        list_take(&queue->wanted);
        list_take(&queue->quiet);
    }
    return queue;
}

void native_queue_stop(struct native_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stopped = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

void native_queue_count(struct native_request *self)
{
    pthread_mutex_lock(&self->queue->lock);
    self->comm->under_way++;
    self->counted = true;
    pthread_mutex_unlock(&self->queue->lock);
}

/* Called with the queue's lock held. */
static void discount(struct native_request *self)
{
    assert(self->comm->under_way > 0);
    self->queue->ended++;
    if (--self->comm->under_way == 0) {
        pthread_cond_broadcast(&self->queue->settled);
    }
}

void native_queue_push(void *context, int code)
{
    (void)code;
    struct native_request *self = context;
    struct native_queue *queue = self->queue;
    pthread_mutex_lock(&queue->lock);
    self->ended = true;
    if (self->counted) {
        discount(self);
    }
    list_add(self->wanted ? &queue->wanted : &queue->quiet, self);
    if (self->wanted) {
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->lock);
}

static struct native_request *wait_for_wanted(struct native_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->wanted.first && !queue->stopped) {
        pthread_cond_wait(&queue->filled, &queue->lock);
    }
    struct native_request *first = list_take_first(&queue->wanted);
    pthread_mutex_unlock(&queue->lock);
    return first;
}

/* Takes one request at a time: no other thread can complete a request that this one has taken, and
 * its callbacks may wait for it. */
PyObject *native_queue_take(struct native_queue *queue)
{
    struct native_request *first;
    Py_BEGIN_ALLOW_THREADS;
    first = wait_for_wanted(queue);
    Py_END_ALLOW_THREADS;
    if (!first) {
        Py_RETURN_NONE;
    }
    return (PyObject *)first; /* with the reference that start took */
}

static struct timespec after_ms(int64_t delay_ms)
{
    int64_t at_ms = native_now_ms() + delay_ms;
    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

/* Waits one slice; returns true when nothing is under way. *ended is the number of collectives
 * whose end was seen. */
static bool settle_slice(struct native_queue *queue, struct native_comm *comm, int64_t slice_ms,
                         uint64_t *ended)
{
    struct timespec until = after_ms(slice_ms);
    pthread_mutex_lock(&queue->lock);
    while (comm->under_way > 0 &&
           pthread_cond_timedwait(&queue->settled, &queue->lock, &until) != ETIMEDOUT) {
    }
    bool settled = comm->under_way == 0;
    *ended = queue->ended;
    pthread_mutex_unlock(&queue->lock);
    return settled;
}

int native_queue_settle(struct native_queue *queue, struct native_comm *comm, int64_t limit_ms)
{
    bool settled;
    int64_t left_ms = limit_ms;
    uint64_t ended = 0;
    do {
        int64_t slice_ms = left_ms < NATIVE_SLICE_MS ? left_ms : NATIVE_SLICE_MS;
        uint64_t before = ended;
        Py_BEGIN_ALLOW_THREADS;
        settled = settle_slice(queue, comm, slice_ms, &ended);
        Py_END_ALLOW_THREADS;
        left_ms = ended != before ? limit_ms : left_ms - slice_ms;
        if (PyErr_CheckSignals() < 0) {
            return -1;
        }
    } while (!settled && left_ms > 0);
    return 0;
}

bool native_queue_want(struct native_request *self)
{
    pthread_mutex_lock(&self->queue->lock);
    self->wanted = true;
    bool ended = self->ended;
    pthread_mutex_unlock(&self->queue->lock);
    return !ended;
}

struct native_request *native_queue_take_quiet(struct native_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct native_request *first = list_take(&queue->quiet);
    pthread_mutex_unlock(&queue->lock);
    return first;
}
