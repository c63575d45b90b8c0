/* A call under way.
 *
 * From its start to its end a request holds a reference to itself, and so its owner (the tensors):
 * nothing can free a buffer in use, whatever Python drops.
 *
 * Layer: Python glue. Everything here runs with the GIL.
 */
#include "request.h"

#include <stdlib.h>
#include <time.h>

static int clear(PyObject *object)
{
    Py_CLEAR(((struct native_request *)object)->owner);
    return 0;
}

/* Drops requests that ended and that nobody waited for: they refer to their owners, and these to
 * them. */
static void drop_quiet(struct native_queue *queue)
{
    struct native_request *first = native_queue_take_quiet(queue);
    while (first) {
        PyObject *request = (PyObject *)first;
        first = first->next;
        clear(request);
        Py_DECREF(request);
    }
}

/* Starts a call, and waits while too many are under way: torch's callers start as many as they
 * like. Some of them end, or the communicator's timeout ends them all. */
static int start_with_room(struct native_comm *comm, const struct muster_call *call,
                           struct muster_request **ret, struct muster_err *err)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int r;
    while ((r = muster_start(comm->comm, call, ret, err)) == MUSTER_EAGAIN) {
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&nap, NULL);
        Py_END_ALLOW_THREADS;
        if (native_interrupted(NULL)) {
            return MUSTER_EINTERRUPTED;
        }
    }
    return r;
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
        native_queue_count(self);
    }
    Py_INCREF((PyObject *)self);
    muster_request_notify(self->request, native_queue_push, self);
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
    int r = muster_request_test(self->request, &err);
    return r < 0 ? native_raise(native_state_of(object), &err) : PyBool_FromLong(r);
}

/* Waits in slices, so that a signal's handler runs soon. */
static int wait_sliced(struct native_request *self, int64_t timeout_ms, struct muster_err *err)
{
    int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : native_now_ms() + timeout_ms;
    for (;;) {
        int64_t left_ms = timeout_ms < 0 ? NATIVE_SLICE_MS : deadline_ms - native_now_ms();
        int64_t slice_ms = left_ms < 0 ? 0 : left_ms < NATIVE_SLICE_MS ? left_ms : NATIVE_SLICE_MS;
        int r;
        Py_BEGIN_ALLOW_THREADS;
        r = muster_request_wait(self->request, slice_ms, err);
        Py_END_ALLOW_THREADS;
        if (r != MUSTER_ETIMEDOUT || muster_request_test(self->request, NULL) != 0 ||
            native_now_ms() >= deadline_ms) {
            return r;
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
    bool inside = native_comm_try_enter(self->comm); /* so close() leaves the freeing to us */
    int r = wait_sliced(self, limit_ms, &err);
    if (inside) {
        native_comm_leave(self->comm);
    }
    if (r < 0) {
        return native_raise(native_state_of(object), &err);
    }
    Py_RETURN_NONE;
}

static PyObject *notify(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(native_queue_want((struct native_request *)object));
}

/* Drops the reference to the owner, which also refers to the request: only the garbage collector
 * would find the cycle. */
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
