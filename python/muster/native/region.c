/* Regions as Python objects: memory that others read, and reading it.
 *
 * Layer: Python glue. The GIL guards the object. The memory is held by a memoryview, so that it
 * neither moves nor ends before the region does.
 */
#include "native.h"

struct native_region {
    PyObject head;
    struct muster_region *region; /* NULL once closed */
    struct native_buffer memory;
};

static struct native_region *open_one(PyObject *object)
{
    struct native_region *self = (struct native_region *)object;
    if (!self->region) {
        PyErr_SetString(PyExc_ValueError, "this region is closed");
        return NULL;
    }
    return self;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"memory", "host", NULL};
    PyObject *memory;
    const char *host = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|z", names, &memory, &host)) {
        return NULL;
    }
    struct native_region *self = (struct native_region *)PyType_GenericAlloc(type, 0);
    if (!self || native_buffer_get(memory, false, &self->memory) < 0) {
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_region *region = NULL;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_region_open(host, self->memory.bytes, (size_t)self->memory.size_bytes, &region,
                           &err);
    Py_END_ALLOW_THREADS;
    if (r < 0) {
        Py_DECREF((PyObject *)self);
        return native_raise(PyType_GetModuleState(type), &err);
    }
    self->region = region;
    return (PyObject *)self;
}

static PyObject *close_region(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_region *self = (struct native_region *)object;
    struct muster_region *region = self->region;
    struct native_buffer memory = self->memory;
    self->region = NULL;
    self->memory = (struct native_buffer){0};
    Py_BEGIN_ALLOW_THREADS; /* the call waits for the region's thread */
    muster_region_close(region);
    Py_END_ALLOW_THREADS;
    native_buffer_done(&memory);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(close_region(object, NULL));
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

static PyObject *set(PyObject *object, PyObject *args)
{
    unsigned long long generation, version;
    struct native_region *self = open_one(object);
    if (!self || !PyArg_ParseTuple(args, "KK", &generation, &version)) {
        return NULL;
    }
    muster_region_set(self->region, generation, version);
    Py_RETURN_NONE;
}

static PyObject *hide(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_region *self = open_one(object);
    if (!self) {
        return NULL;
    }
    muster_region_hide(self->region);
    Py_RETURN_NONE;
}

static PyObject *get_member(PyObject *object, void *unused)
{
    (void)unused;
    struct native_region *self = open_one(object);
    if (!self) {
        return NULL;
    }
    struct muster_member member;
    muster_region_member(self->region, &member);
    return PyBytes_FromStringAndSize((const char *)member.bytes, sizeof member.bytes);
}

PyObject *native_region_read(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"owners", "generation", "version", "to", "timeout_ms", NULL};
    PyObject *owners, *to;
    unsigned long long generation, version;
    long long timeout_ms;
    struct muster_member members[MUSTER_MAX_RANKS];
    struct native_buffer buffer;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OKKOL", names, &owners, &generation, &version,
                                     &to, &timeout_ms)) {
        return NULL;
    }
    int num = native_members_get(owners, members);
    if (num < 0 || native_buffer_get(to, true, &buffer) < 0) {
        return NULL;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_region_read(members, num, generation, version, buffer.bytes,
                           (size_t)buffer.size_bytes, timeout_ms, &err);
    Py_END_ALLOW_THREADS;
    native_buffer_done(&buffer);
    if (r < 0) {
        return native_raise(PyModule_GetState(module), &err);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set", set, METH_VARARGS, "set(generation, version): what the memory holds from now on."},
    {"hide", hide, METH_NOARGS,
     "To be called before the memory is written: reads under way become invalid."},
    {"close", close_region, METH_NOARGS, "Ends it; the memory is let go."},
    {0},
};

static PyGetSetDef properties[] = {
    {"member", get_member, NULL, "Bytes by which others reach it: for region_read().", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Region(memory, host=None): lets others read this buffer, from the first set() on; "
                "a thread of libmuster answers them."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0},
};

PyType_Spec native_region_spec = {
    .name = "muster._muster.Region",
    .basicsize = sizeof(struct native_region),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
