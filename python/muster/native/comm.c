/* Communicator as a Python object.
 *
 * Layer: Python glue. The GIL guards the object; it is released around everything that may wait.
 * close() while another thread is inside a call aborts, and the last one out frees (inside.c).
 * Python's threads may all use one communicator: collectives take turns (self->order), messages do
 * not, because one thread's receive may wait for what another sends.
 */
#include "native.h"

#include <string.h>

/* The store's callbacks run on the creating thread, which has released the GIL. */
struct store {
    PyObject *set;
    PyObject *get;
};

static int report(PyGILState_STATE gil, bool ok)
{
    PyGILState_Release(gil);
    return ok ? 0 : MUSTER_EUNAVAIL; /* the Python exception stays set, and replaces the code */
}

static int store_set(void *context, const char *key, const void *value, size_t size_bytes)
{
    struct store *store = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result =
        PyObject_CallFunction(store->set, "sy#", key, (const char *)value, (Py_ssize_t)size_bytes);
    Py_XDECREF(result);
    return report(gil, result != NULL);
}

/* Copies the bytes of `value`; false, with an exception set, if it is not bytes, or too long. */
static bool copy_bytes(PyObject *value, void *ret, size_t capacity_bytes, size_t *ret_size)
{
    char *bytes;
    Py_ssize_t size_bytes;
    if (!value || PyBytes_AsStringAndSize(value, &bytes, &size_bytes) < 0) {
        return false;
    }
    if ((size_t)size_bytes > capacity_bytes) {
        PyErr_SetString(PyExc_ValueError, "a value in the store is longer than libmuster wrote it");
        return false;
    }
    memcpy(ret, bytes, (size_t)size_bytes);
    *ret_size = (size_t)size_bytes;
    return true;
}

static int store_get(void *context, const char *key, void *ret, size_t capacity_bytes,
                     size_t *ret_size, int64_t timeout_ms)
{
    struct store *store = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *value = PyObject_CallFunction(store->get, "sL", key, (long long)timeout_ms);
    bool ok = copy_bytes(value, ret, capacity_bytes, ret_size);
    Py_XDECREF(value);
    return report(gil, ok);
}

PyObject *native_comm_wrap(PyTypeObject *type, struct muster_comm *comm)
{
    struct native_comm *self = (struct native_comm *)PyType_GenericAlloc(type, 0);
    if (!self) {
        muster_comm_free(comm);
        return NULL;
    }
    self->comm = comm;
    pthread_mutex_init(&self->order, NULL);
    return (PyObject *)self;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"set",  "get",       "rank",      "size", "timeout_ms",
                            "name", "transport", "notice_ms", NULL};
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct store store;
    long long timeout_ms, notice_ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOiiLs|zL", names, &store.set, &store.get,
                                     &options.rank, &options.size, &timeout_ms, &options.name,
                                     &options.transport, &notice_ms)) {
        return NULL;
    }
    struct muster_store callbacks = {sizeof callbacks, &store, store_set, store_get};
    options.timeout_ms = timeout_ms;
    options.notice_ms = notice_ms;
    options.store = &callbacks;
    options.interrupted = native_interrupted;
    struct muster_comm *comm = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_comm_create(&options, &comm, &err);
    Py_END_ALLOW_THREADS;
    if (r < 0 || PyErr_Occurred()) {
        muster_comm_free(comm);
        return native_raise(PyType_GetModuleState(type), &err);
    }
    return native_comm_wrap(type, comm);
}

static PyObject *close_comm(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_comm *self = (struct native_comm *)object;
    if (native_comm_try_enter(self)) {
        bool others = self->inside > 1;
        self->closing = true; /* no thread enters while this one releases the GIL */
        if (others) {
            Py_BEGIN_ALLOW_THREADS; /* others check for signals with it before they leave */
            muster_comm_abort(self->comm);
            Py_END_ALLOW_THREADS;
        }
        native_comm_leave(self);
    }
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(close_comm(object, NULL));
    pthread_mutex_destroy(&((struct native_comm *)object)->order);
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

static bool is_message(const struct muster_call *call)
{
    return call->kind == MUSTER_SEND || call->kind == MUSTER_RECV;
}

/* False, with an exception set, if a handler of Ctrl-C makes a call inside a call of its own
 * thread. */
static bool take_turn(struct native_comm *self)
{
    unsigned long me = PyThread_get_thread_ident();
    if (self->turn == me) {
        PyErr_SetString(PyExc_RuntimeError,
                        "muster: a signal's handler calls a collective while its thread is inside "
                        "one; let the handler set a flag, and call afterwards");
        return false;
    }
    if (pthread_mutex_trylock(&self->order) != 0) {
        Py_BEGIN_ALLOW_THREADS;
        pthread_mutex_lock(&self->order);
        Py_END_ALLOW_THREADS;
    }
    self->turn = me;
    return true;
}

static void end_turn(struct native_comm *self)
{
    self->turn = 0;
    pthread_mutex_unlock(&self->order);
}

static int run_collective(struct native_comm *self, const struct muster_call *call,
                          struct muster_err *err)
{
    int r;
    if (!take_turn(self)) {
        return MUSTER_EINVAL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_run(self->comm, call, err);
    Py_END_ALLOW_THREADS;
    end_turn(self);
    return r;
}

/* Starts a message and waits for it; several threads may do so at once. */
static int run_message(struct native_comm *self, const struct muster_call *call,
                       struct muster_message *ret, struct muster_err *err)
{
    struct muster_request *request;
    int r = muster_start(self->comm, call, &request, err);
    if (r < 0) {
        return r;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_request_wait(request, -1, err);
    if (r == MUSTER_EINTERRUPTED) {
        muster_comm_abort(self->comm); /* the caller may now free the buffer */
    }
    Py_END_ALLOW_THREADS;
    if (r == 0) {
        (void)muster_request_message(request, ret, NULL);
    }
    muster_request_free(request);
    return r;
}

static PyObject *run(PyObject *object, PyObject *const *args, Py_ssize_t num_args)
{
    struct native_comm *self = native_comm_enter(object);
    if (!self) {
        return NULL;
    }
    struct native_call call;
    if (native_call_parse(args, num_args, muster_comm_size(self->comm), &call) < 0) {
        native_comm_leave(self);
        return NULL;
    }
    struct muster_message message = MUSTER_MESSAGE_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = is_message(&call.call) ? run_message(self, &call.call, &message, &err)
                                   : run_collective(self, &call.call, &err);
    native_call_done(&call);
    native_comm_leave(self);
    if (r < 0 || PyErr_Occurred()) {
        return native_raise(native_state_of(object), &err);
    }
    return PyLong_FromLong(message.source);
}

static PyObject *start(PyObject *object, PyObject *const *args, Py_ssize_t num_args)
{
    if (num_args < 1) {
        PyErr_SetString(PyExc_TypeError, "start(owner, kind, …)");
        return NULL;
    }
    struct native_comm *self = native_comm_enter(object);
    if (!self) {
        return NULL;
    }
    struct native_call call;
    PyObject *request = NULL;
    if (native_call_parse(args + 1, num_args - 1, muster_comm_size(self->comm), &call) == 0) {
        bool ordered = !is_message(&call.call);
        if (!ordered || take_turn(self)) {
            request = native_request_start(native_state_of(object), self, &call, args[0]);
            if (ordered) {
                end_turn(self);
            }
        }
        native_call_done(&call);
    }
    native_comm_leave(self);
    return request;
}

/* The arguments of all_reduce_parts; the sizes of its buffers are checked against the counts. */
struct parts {
    struct native_buffer in, out;
    Py_ssize_t first, num, total, count;
    int type, op;
};

static bool fits(const struct parts *p)
{
    size_t unit = muster_type_bytes((enum muster_type)p->type), bytes;
    return unit > 0 && p->count >= 0 && p->num >= 0 && p->first >= 0 && p->total > 0 &&
           !__builtin_mul_overflow((size_t)p->count, unit, &bytes) &&
           bytes == (size_t)p->out.size_bytes &&
           !__builtin_mul_overflow(bytes, (size_t)p->num, &bytes) &&
           bytes == (size_t)p->in.size_bytes;
}

static int reduce_parts(struct native_comm *self, const struct parts *p, struct muster_err *err)
{
    int r;
    if (!take_turn(self)) {
        return MUSTER_EINVAL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_all_reduce_parts(self->comm, p->in.bytes, (size_t)p->first, (size_t)p->num,
                                (size_t)p->total, p->out.bytes, (size_t)p->count,
                                (enum muster_type)p->type, (enum muster_op)p->op, err);
    Py_END_ALLOW_THREADS;
    end_turn(self);
    return r;
}

static PyObject *all_reduce_parts(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parts", "first_part", "num_parts", "total_parts", "out",
                            "count", "type",       "op",        NULL};
    PyObject *in, *out;
    struct parts p = {.type = MUSTER_F32, .op = MUSTER_SUM};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnnnOn|ii", names, &in, &p.first, &p.num,
                                     &p.total, &out, &p.count, &p.type, &p.op) ||
        native_buffer_get(in, false, &p.in) < 0) {
        return NULL;
    }
    if (native_buffer_get(out, true, &p.out) < 0) {
        native_buffer_done(&p.in);
        return NULL;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    struct native_comm *self = native_comm_enter(object);
    int r = -1;
    if (self && !fits(&p)) {
        PyErr_SetString(PyExc_ValueError,
                        "parts must have num_parts * count elements, out count of them");
    } else if (self) {
        r = reduce_parts(self, &p, &err);
    }
    if (self) {
        native_comm_leave(self);
    }
    native_buffer_done(&p.in);
    native_buffer_done(&p.out);
    if (r < 0 || PyErr_Occurred()) {
        return native_raise(native_state_of(object), &err);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL,
     "run(kind, type, op, peer, tag, in, out, count[, in_counts, out_counts]): blocks until done; "
     "the source of a received message, else -1."},
    {"start", (PyCFunction)(void (*)(void))start, METH_FASTCALL,
     "start(owner, …as run…): a Request; owner lives until the call has ended."},
    {"abort", native_comm_abort, METH_NOARGS, "Ends the calls under way, here and at the peers."},
    {"close", close_comm, METH_NOARGS, "Frees it; later calls raise ValueError."},
    {"settle", native_comm_settle, METH_O,
     "settle(ms): waits until the collectives that were started have ended, at most so "
     "long since the last that did."},
    {"set_timeout", native_comm_set_timeout, METH_O,
     "set_timeout(ms): of every wait for a live peer."},
    {"describe", native_comm_describe, METH_NOARGS, "One line on how it moves data."},
    {"query", native_comm_query, METH_NOARGS,
     "rank, size, generation, started, completed, closed (0 or a code), input_untouched, and peers: "
     "their states by rank. From any thread, at any time."},
    {"all_reduce_parts", (PyCFunction)(void (*)(void))all_reduce_parts,
     METH_VARARGS | METH_KEYWORDS,
     "all_reduce_parts(parts, first_part, num_parts, total_parts, out, count, type=F32, op=SUM): "
     "sums numbered parts over one fixed tree; parts and out are buffers."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Comm(set, get, rank, size, timeout_ms, name, transport=None, notice_ms=0): waits "
     "until all ranks have come; set(key, bytes) and get(key, timeout_ms) reach a shared store."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec native_comm_spec = {
    .name = "muster._muster.Comm",
    .basicsize = sizeof(struct native_comm),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
