/* A call under way, and the queue of those that have ended.
 *
 * From its start to its end a request holds a reference to itself, and so its owner (the tensors):
 * nothing can free a buffer in use, whatever Python drops. Whichever thread ends a call, with the
 * GIL or without, puts its request on one of two lists: `wanted` ones wake the Python thread that
 * completes futures; the others wait for the next start, which lets them go.
 *
 * Layer: Python glue. The queue has a mutex; everything else runs with the GIL.
 */
#include "native.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { SLICE_MS = 50 }; /* how long a wait may be blind to signals */

struct native_request {
    PyObject head;
    struct muster_request *request;
    struct native_comm *comm; /* keeps the communicator while the call is under way */
    struct native_queue *queue;
    struct native_request *next; /* in a list of the queue */
    size_t *counts;
    PyObject *owner;
    bool ended;   /* the queue's lock guards these two */
    bool wanted;  /* a future waits for it */
    bool counted; /* in the communicator's under_way */
};

struct list {
    struct native_request *first;
    struct native_request **last;
};

struct native_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    uint64_t ended;         /* collectives of all communicators */
    pthread_cond_t settled; /* a communicator has no collective under way any more */
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

static void count(struct native_request *self)
{
    pthread_mutex_lock(&self->queue->lock);
    self->comm->under_way++;
    self->counted = true;
    pthread_mutex_unlock(&self->queue->lock);
}

/* With the queue's lock held. */
static void discount(struct native_request *self)
{
    assert(self->comm->under_way > 0);
    self->queue->ended++;
    if (--self->comm->under_way == 0) {
        pthread_cond_broadcast(&self->queue->settled);
    }
}

/* On any thread, with the GIL or without: the reference taken by start moves into the queue. */
static void push(void *context, int code)
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

/* One at a time: what a thread holds no other can complete, and its callbacks may wait for it. */
PyObject *native_queue_take(struct native_queue *queue)
{
    struct native_request *first;
    Py_BEGIN_ALLOW_THREADS;
    first = wait_for_wanted(queue);
    Py_END_ALLOW_THREADS;
    if (!first) {
        Py_RETURN_NONE;
    }
    return (PyObject *)first; /* the reference taken by start */
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec after_ms(int64_t delay_ms)
{
    int64_t at_ms = now_ms() + delay_ms;
    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

/* Waits one slice; true when nothing is under way. *ended: of how many collectives the end was
 * seen. */
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
        int64_t slice_ms = left_ms < SLICE_MS ? left_ms : SLICE_MS;
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

static int clear(PyObject *object)
{
    Py_CLEAR(((struct native_request *)object)->owner);
    return 0;
}

/* Those that nobody waited for keep their owner, which keeps them. */
static void drop_quiet(struct native_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct native_request *first = list_take(&queue->quiet);
    pthread_mutex_unlock(&queue->lock);
    while (first) {
        PyObject *request = (PyObject *)first;
        first = first->next;
        clear(request);
        Py_DECREF(request);
    }
}

/* Waits while too many calls are under way: torch's callers start as many as they like. Some of
 * them end, or the communicator's timeout ends them all. */
static int start_with_room(struct native_comm *comm, const struct muster_call *call,
                           struct muster_request **ret, struct muster_err *err)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int rc;
    while ((rc = muster_start(comm->comm, call, ret, err)) == MUSTER_EAGAIN) {
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&nap, NULL);
        Py_END_ALLOW_THREADS;
        if (native_interrupted(NULL)) {
            return MUSTER_EINTERRUPTED;
        }
    }
    return rc;
}

PyObject *native_request_start(struct native_state *state, struct native_comm *comm,
                               struct native_call *call, PyObject *owner)
{
    struct native_request *self = PyObject_GC_New(struct native_request, state->request_type);
    if (!self) {
        return NULL;
    }
    self->request = NULL;
    self->queue = state->queue;
    self->next = NULL;
    self->ended = self->wanted = self->counted = false;
    self->counts = call->counts;
    call->counts = NULL;
    Py_INCREF((PyObject *)comm);
    self->comm = comm;
    Py_INCREF(owner);
    self->owner = owner;
    PyObject_GC_Track((PyObject *)self);
    drop_quiet(state->queue);
    struct muster_err err = MUSTER_ERR_INIT;
    if (start_with_room(comm, &call->call, &self->request, &err) < 0) {
        self->request = NULL;
        Py_DECREF((PyObject *)self);
        return native_raise(state, &err);
    }
    if (call->call.kind != MUSTER_SEND && call->call.kind != MUSTER_RECV) {
        count(self);
    }
    Py_INCREF((PyObject *)self);
    muster_request_notify(self->request, push, self);
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    struct native_request *self = (struct native_request *)object;
    Py_VISIT(self->owner);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static void dealloc(PyObject *object)
{
    struct native_request *self = (struct native_request *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    muster_request_free(self->request);
    free(self->counts);
    Py_DECREF((PyObject *)self->comm);
    PyObject_GC_Del(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *test(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_request *self = (struct native_request *)object;
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = muster_request_test(self->request, &err);
    return rc < 0 ? native_raise(native_state_of(object), &err) : PyBool_FromLong(rc);
}

/* Waits in slices, so that a signal's handler runs soon. */
static int wait_sliced(struct native_request *self, int64_t timeout_ms, struct muster_err *err)
{
    int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
    for (;;) {
        int64_t left_ms = timeout_ms < 0 ? SLICE_MS : deadline_ms - now_ms();
        int64_t slice_ms = left_ms < 0 ? 0 : left_ms < SLICE_MS ? left_ms : SLICE_MS;
        int rc;
        Py_BEGIN_ALLOW_THREADS;
        rc = muster_request_wait(self->request, slice_ms, err);
        Py_END_ALLOW_THREADS;
        if (rc != MUSTER_ETIMEDOUT || muster_request_test(self->request, NULL) != 0 ||
            now_ms() >= deadline_ms) {
            return rc;
        }
        if (PyErr_CheckSignals() < 0) {
            return MUSTER_EINTERRUPTED;
        }
    }
}

static PyObject *wait_for(PyObject *object, PyObject *timeout_ms)
{
    struct native_request *self = (struct native_request *)object;
    long long limit_ms = PyLong_AsLongLong(timeout_ms);
    if (limit_ms == -1 && PyErr_Occurred()) {
        return NULL;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    bool inside = native_comm_try_enter(self->comm); /* who closes it now leaves freeing to us */
    int rc = wait_sliced(self, limit_ms, &err);
    if (inside) {
        native_comm_leave(self->comm);
    }
    if (rc < 0) {
        return native_raise(native_state_of(object), &err);
    }
    Py_RETURN_NONE;
}

static PyObject *notify(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_request *self = (struct native_request *)object;
    pthread_mutex_lock(&self->queue->lock);
    self->wanted = true;
    bool ended = self->ended;
    pthread_mutex_unlock(&self->queue->lock);
    return PyBool_FromLong(!ended);
}

/* The owner refers to the request, too: a cycle that only the collector would find. */
static PyObject *let_go(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct muster_message got = MUSTER_MESSAGE_INIT;
    (void)muster_request_message(((struct native_request *)object)->request, &got, NULL);
    clear(object);
    return PyLong_FromLong(got.source);
}

static PyObject *get_owner(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *owner = ((struct native_request *)object)->owner;
    owner = owner ? owner : Py_None;
    Py_INCREF(owner);
    return owner;
}

static PyMethodDef methods[] = {
    {"test", test, METH_NOARGS, "True once it has ended well; raises what it failed with."},
    {"wait", wait_for, METH_O,
     "wait(timeout_ms): until it has ended; negative: as long as the communicator's timeout."},
    {"notify", notify, METH_NOARGS,
     "True: take_ended() will return it when it ends; False: it has ended already."},
    {"let_go", let_go, METH_NOARGS,
     "To be called when it has ended: owner is None then; the source of a receive, else -1."},
    {0},
};

static PyGetSetDef properties[] = {
    {"owner", get_owner, NULL, "What was given to start: it lives until let_go, or the end.", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A collective or message under way (Comm.start)."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

PyType_Spec native_request_spec = {
    .name = "muster._muster.Request",
    .basicsize = sizeof(struct native_request),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
