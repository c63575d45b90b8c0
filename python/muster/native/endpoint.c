/* An endpoint as a Python object: communicators are formed with it from lists of members.
 *
 * Layer: Python glue. The GIL guards the object; it is released while a communicator forms. close()
 * while another thread forms one cancels that, and the last one out closes.
 */
#include "native.h"

struct native_endpoint {
    PyObject head;
    struct muster_endpoint *endpoint; /* NULL once closed */
    bool forming;                     /* a thread is inside form() */
    bool closing;
};

static struct native_endpoint *open_one(PyObject *object)
{
    struct native_endpoint *self = (struct native_endpoint *)object;
    if (!self->endpoint || self->closing) {
        PyErr_SetString(PyExc_ValueError, "this endpoint is closed");
        return NULL;
    }
    return self;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"host", NULL};
    const char *host = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z", names, &host)) {
        return NULL;
    }
    struct muster_endpoint *endpoint = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS; /* the call may resolve a host name */
    r = muster_endpoint_open(host, &endpoint, &err);
    Py_END_ALLOW_THREADS;
    if (r < 0) {
        return native_raise(PyType_GetModuleState(type), &err);
    }
    struct native_endpoint *self = (struct native_endpoint *)PyType_GenericAlloc(type, 0);
    if (!self) {
        muster_endpoint_close(endpoint);
        return NULL;
    }
    self->endpoint = endpoint;
    return (PyObject *)self;
}

static void close_if_asked(struct native_endpoint *self)
{
    if (self->closing && !self->forming) {
        muster_endpoint_close(self->endpoint);
        self->endpoint = NULL;
    }
}

static PyObject *close_endpoint(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_endpoint *self = (struct native_endpoint *)object;
    if (self->endpoint) {
        self->closing = true;
        muster_endpoint_cancel(self->endpoint, UINT64_MAX);
        close_if_asked(self);
    }
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(close_endpoint(object, NULL));
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *get_member(PyObject *object, void *unused)
{
    (void)unused;
    struct native_endpoint *self = open_one(object);
    if (!self) {
        return NULL;
    }
    struct muster_member member;
    muster_endpoint_member(self->endpoint, &member);
    return PyBytes_FromStringAndSize((const char *)member.bytes, sizeof member.bytes);
}

struct form {
    struct muster_member members[MUSTER_MAX_RANKS];
    int num_members;
    int index;
    uint64_t generation;
    int64_t timeout_ms;
    struct muster_comm_options options;
};

/* Returns 0, or -1 with an exception set. */
static int parse_form(PyObject *args, PyObject *kwargs, struct form *ret)
{
    static char *names[] = {"members",    "index",           "generation",
                            "timeout_ms", "call_timeout_ms", "heartbeat_timeout_ms",
                            "transport",  "notice_ms",       NULL};
    PyObject *members;
    unsigned long long generation;
    struct muster_comm_options *o = &ret->options;
    *o = (struct muster_comm_options)MUSTER_COMM_OPTIONS_INIT;
    long long timeout_ms, call_timeout_ms = o->timeout_ms, notice_ms = 0;
    long long heartbeat_timeout_ms = o->heartbeat_timeout_ms;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiKL|LLzL", names, &members, &ret->index,
                                     &generation, &timeout_ms, &call_timeout_ms,
                                     &heartbeat_timeout_ms, &o->transport, &notice_ms)) {
        return -1;
    }
    ret->num_members = native_members_get(members, ret->members);
    ret->generation = generation;
    ret->timeout_ms = timeout_ms;
    o->timeout_ms = call_timeout_ms;
    o->heartbeat_timeout_ms = heartbeat_timeout_ms;
    o->notice_ms = notice_ms;
    o->interrupted = native_interrupted;
    return ret->num_members < 0 ? -1 : 0;
}

static PyObject *form(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct form form;
    if (parse_form(args, kwargs, &form) < 0) {
        return NULL;
    }
    struct native_endpoint *self = open_one(object);
    if (!self) {
        return NULL;
    }
    if (self->forming) {
        PyErr_SetString(PyExc_ValueError, "another thread forms a communicator with this endpoint");
        return NULL;
    }
    struct native_state *state = native_state_of(object);
    struct muster_comm *comm = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    self->forming = true;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_comm_form(self->endpoint, form.members, form.num_members, form.index,
                         form.generation, form.timeout_ms, &form.options, &comm, &err);
    Py_END_ALLOW_THREADS;
    self->forming = false;
    close_if_asked(self);
    if (r < 0 || PyErr_Occurred()) {
        muster_comm_free(comm);
        return native_raise(state, &err);
    }
    return native_comm_wrap(state->comm_type, comm);
}

static PyObject *cancel(PyObject *object, PyObject *generation)
{
    unsigned long long value = PyLong_AsUnsignedLongLong(generation);
    if (PyErr_Occurred()) {
        return NULL;
    }
    struct native_endpoint *self = open_one(object);
    if (!self) {
        return NULL;
    }
    muster_endpoint_cancel(self->endpoint, value);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"form", (PyCFunction)(void (*)(void))form, METH_VARARGS | METH_KEYWORDS,
     "form(members, index, generation, timeout_ms, call_timeout_ms=…, heartbeat_timeout_ms=900, "
     "transport=None, notice_ms=0): the Comm of exactly these members (of their `member`), in this "
     "order; all of them call it alike. ConnectionError with `rank`: that one is gone."},
    {"cancel", cancel, METH_O,
     "cancel(generation): forming it or a lower one ends with ConnectionError, in any thread."},
    {"close", close_endpoint, METH_NOARGS,
     "Closes it; communicators formed with it stay. Later calls raise ValueError."},
    {0},
};

static PyGetSetDef properties[] = {
    {"member", get_member, NULL, "Bytes by which others reach this process: for form().", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Endpoint(host=None): the sockets by which this process can become a member of "
                "communicators. host: the address that others reach it by."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

PyType_Spec native_endpoint_spec = {
    .name = "muster._muster.Endpoint",
    .basicsize = sizeof(struct native_endpoint),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
