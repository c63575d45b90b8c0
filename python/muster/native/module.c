/* The module muster._muster: its constants, types and the queue of ended requests.
 *
 * Layer: Python glue. Multi-phase initialisation: each interpreter has its own state.
 */
#include "native.h"

static PyObject *take_ended(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct native_state *state = PyModule_GetState(module);
    return native_queue_take(state->queue);
}

static PyObject *stop_taking(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct native_state *state = PyModule_GetState(module);
    native_queue_stop(state->queue);
    Py_RETURN_NONE;
}

/* Gives a forked child a new queue: it has no completion thread, and the old queue may have been
 * locked at the fork. */
static PyObject *after_fork(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct native_state *state = PyModule_GetState(module);
    struct native_queue *queue = native_queue_new();
    if (!queue) {
        return PyErr_NoMemory();
    }
    state->queue = queue;
    Py_RETURN_NONE;
}

static PyObject *digest(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long address, seed;
    Py_ssize_t size_bytes;
    if (!PyArg_ParseTuple(args, "KnK", &address, &size_bytes, &seed)) {
        return NULL;
    }
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)address;
    uint64_t sum = native_digest(bytes, size_bytes > 0 ? (size_t)size_bytes : 0, seed);
    return PyLong_FromUnsignedLongLong(sum);
}

static PyMethodDef functions[] = {
    {"take_ended", take_ended, METH_NOARGS,
     "Waits for a request that was asked to notify; None after stop_taking()."},
    {"stop_taking", stop_taking, METH_NOARGS, "Lets the thread in take_ended() go."},
    {"after_fork", after_fork, METH_NOARGS, "To be called in a forked child."},
    {"region_read", (PyCFunction)(void (*)(void))native_region_read, METH_VARARGS | METH_KEYWORDS,
     "region_read(owners, generation, version, to, timeout_ms): fills the buffer `to` in pieces "
     "from all owners (of their Region.member). RuntimeError ECONFLICT: one has moved on."},
    {"digest", digest, METH_VARARGS,
     "digest(address, size_bytes, seed): 64 bits that differ when the bytes differ (not against an "
     "adversary)."},
    {0},
};

static const struct constant {
    const char *name;
    int value;
} constants[] = {
    {"ALL_REDUCE", MUSTER_ALL_REDUCE},
    {"REDUCE", MUSTER_REDUCE},
    {"REDUCE_SCATTER", MUSTER_REDUCE_SCATTER},
    {"ALL_GATHER", MUSTER_ALL_GATHER},
    {"BROADCAST", MUSTER_BROADCAST},
    {"GATHER", MUSTER_GATHER},
    {"SCATTER", MUSTER_SCATTER},
    {"ALL_TO_ALL", MUSTER_ALL_TO_ALL},
    {"BARRIER", MUSTER_BARRIER},
    {"SEND", MUSTER_SEND},
    {"RECV", MUSTER_RECV},
    {"BOOL", MUSTER_BOOL},
    {"U8", MUSTER_U8},
    {"I8", MUSTER_I8},
    {"I16", MUSTER_I16},
    {"I32", MUSTER_I32},
    {"I64", MUSTER_I64},
    {"F16", MUSTER_F16},
    {"BF16", MUSTER_BF16},
    {"F32", MUSTER_F32},
    {"F64", MUSTER_F64},
    {"SUM", MUSTER_SUM},
    {"AVG", MUSTER_AVG},
    {"PROD", MUSTER_PROD},
    {"MIN", MUSTER_MIN},
    {"MAX", MUSTER_MAX},
    {"BAND", MUSTER_BAND},
    {"BOR", MUSTER_BOR},
    {"BXOR", MUSTER_BXOR},
    {"ANY_SOURCE", MUSTER_ANY_SOURCE},
    {"ANY_TAG", MUSTER_ANY_TAG},
};

static int add_constants(PyObject *module)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0) {
            return -1;
        }
    }
    return PyModule_AddStringConstant(module, "VERSION", MUSTER_VERSION_STRING);
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddObjectRef(module, name, type) < 0) {
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

static int execute(PyObject *module)
{
    struct native_state *state = PyModule_GetState(module);
    state->queue = native_queue_new();
    if (!state->queue) {
        PyErr_NoMemory();
        return -1;
    }
    if (native_errors_init(module, state) < 0 || add_constants(module) < 0) {
        return -1;
    }
    state->comm_type = add_type(module, &native_comm_spec, "Comm");
    state->request_type = add_type(module, &native_request_spec, "Request");
    state->endpoint_type = add_type(module, &native_endpoint_spec, "Endpoint");
    state->region_type = add_type(module, &native_region_spec, "Region");
    state->elastic_type = add_type(module, &native_elastic_spec, "Elastic");
    state->shards_type = add_type(module, &native_shards_spec, "Shards");
    bool all = state->shards_type && state->comm_type && state->request_type &&
               state->endpoint_type && state->region_type && state->elastic_type;
    return all ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct native_state *state = PyModule_GetState(module);
    for (int i = 0; i < state->num_classes; i++) {
        Py_VISIT(state->classes[i].type);
    }
    Py_VISIT(state->error);
    Py_VISIT(state->comm_type);
    Py_VISIT(state->request_type);
    Py_VISIT(state->endpoint_type);
    Py_VISIT(state->region_type);
    Py_VISIT(state->elastic_type);
    Py_VISIT(state->shards_type);
    return 0;
}

static int clear(PyObject *module)
{
    struct native_state *state = PyModule_GetState(module);
    for (int i = 0; i < state->num_classes; i++) {
        Py_CLEAR(state->classes[i].type);
    }
    state->num_classes = 0;
    Py_CLEAR(state->error);
    Py_CLEAR(state->comm_type);
    Py_CLEAR(state->request_type);
    Py_CLEAR(state->endpoint_type);
    Py_CLEAR(state->region_type);
    Py_CLEAR(state->elastic_type);
    Py_CLEAR(state->shards_type);
    return 0;
}

/* The queue is not freed: a request that ends while the interpreter ends still writes to it. */
static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "muster._muster",
    .m_doc = "libmuster for Python: communicators over addresses of buffers.",
    .m_size = sizeof(struct native_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__muster(void)
{
    return PyModuleDef_Init(&definition);
}
