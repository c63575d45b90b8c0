/* What may be asked of a communicator in Python, and said to it, beside its calls.
 *
 * Layer: Python glue. Any thread, at any time, but for set_timeout.
 */
#include "native.h"

PyObject *native_comm_abort(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_comm *self = (struct native_comm *)object;
    if (native_comm_try_enter(self)) {
        Py_BEGIN_ALLOW_THREADS;
        muster_comm_abort(self->comm);
        Py_END_ALLOW_THREADS;
        native_comm_leave(self);
    }
    Py_RETURN_NONE;
}

PyObject *native_comm_set_timeout(PyObject *object, PyObject *timeout_ms)
{
    long long value = PyLong_AsLongLong(timeout_ms);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    struct native_comm *self = native_comm_enter(object);
    if (!self) {
        return NULL;
    }
    muster_comm_set_timeout(self->comm, value);
    native_comm_leave(self);
    Py_RETURN_NONE;
}

PyObject *native_comm_settle(PyObject *object, PyObject *limit_ms)
{
    long long value = PyLong_AsLongLong(limit_ms);
    if (value == -1 && PyErr_Occurred()) {
        return NULL;
    }
    struct native_comm *self = (struct native_comm *)object;
    if (native_queue_settle(native_state_of(object)->queue, self, value) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *native_comm_describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_comm *self = native_comm_enter(object);
    if (!self) {
        return NULL;
    }
    PyObject *text = PyUnicode_FromString(muster_comm_describe(self->comm));
    native_comm_leave(self);
    return text;
}

static PyObject *states(struct native_comm *self, const enum muster_peer_state *peers)
{
    int size = muster_comm_size(self->comm);
    PyObject *list = PyList_New(size);
    for (int r = 0; list && r < size; r++) {
        PyObject *name = PyUnicode_FromString(muster_peer_state_name(peers[r]));
        if (!name || PyList_SetItem(list, r, name) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyObject *native_comm_query(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_comm *self = native_comm_enter(object);
    if (!self) {
        return NULL;
    }
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    enum muster_peer_state peers[MUSTER_MAX_RANKS];
    struct muster_err err = MUSTER_ERR_INIT;
    PyObject *result = NULL;
    if (muster_comm_query(self->comm, &state, peers, &err) < 0) {
        native_raise(native_state_of(object), &err);
    } else {
        result = Py_BuildValue(
            "{s:i,s:i,s:K,s:K,s:K,s:i,s:O,s:N}", "rank", muster_comm_rank(self->comm), "size",
            muster_comm_size(self->comm), "generation", (unsigned long long)state.generation,
            "started", (unsigned long long)state.started, "completed",
            (unsigned long long)state.completed, "closed", state.closed, "input_untouched",
            state.input_untouched ? Py_True : Py_False, "peers", states(self, peers));
    }
    native_comm_leave(self);
    return result;
}
