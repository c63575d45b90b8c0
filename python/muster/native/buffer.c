/* Memory of Python's objects, by the buffer protocol. Layer: Python glue; see native.h. */
#include "native.h"

/* These functions belong to the stable ABI of every Python 3, though new headers omit or deprecate
 * them: their replacement is in the limited API only from 3.11 on. They do not hold the memory; the
 * view does. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
PyAPI_FUNC(int) PyObject_AsReadBuffer(PyObject *, const void **, Py_ssize_t *);
PyAPI_FUNC(int) PyObject_AsWriteBuffer(PyObject *, void **, Py_ssize_t *);

/* The object cannot change its size while the view lives. */
int native_buffer_get(PyObject *object, bool writable, struct native_buffer *ret)
{
    const void *bytes = NULL;
    void *writable_bytes = NULL;
    ret->view = PyMemoryView_FromObject(object);
    if (!ret->view) {
        return -1;
    }
    int r = writable ? PyObject_AsWriteBuffer(ret->view, &writable_bytes, &ret->size_bytes)
                     : PyObject_AsReadBuffer(ret->view, &bytes, &ret->size_bytes);
    if (r < 0) {
        Py_CLEAR(ret->view);
        return -1;
    }
    ret->bytes = writable ? writable_bytes : (void *)(uintptr_t)bytes;
    return 0;
}

void native_buffer_done(struct native_buffer *buffer)
{
    Py_CLEAR(buffer->view);
}

static int get_member(PyObject *object, struct muster_member *ret)
{
    char *bytes;
    Py_ssize_t size_bytes;
    if (PyBytes_AsStringAndSize(object, &bytes, &size_bytes) < 0) {
        return -1;
    }
    if (size_bytes != (Py_ssize_t)sizeof *ret) {
        PyErr_Format(PyExc_ValueError, "a member has %d bytes, not %zd", (int)sizeof *ret,
                     size_bytes);
        return -1;
    }
    memcpy(ret, bytes, sizeof *ret);
    return 0;
}

int native_members_get(PyObject *sequence, struct muster_member *ret)
{
    Py_ssize_t num = PySequence_Size(sequence);
    if (num < 1 || num > MUSTER_MAX_RANKS) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "1 to %d members are needed, not %zd", MUSTER_MAX_RANKS,
                         num);
        }
        return -1;
    }
    for (Py_ssize_t i = 0; i < num; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        int r = item ? get_member(item, &ret[i]) : -1;
        Py_XDECREF(item);
        if (r < 0) {
            return -1;
        }
    }
    return (int)num;
}
