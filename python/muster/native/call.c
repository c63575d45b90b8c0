/* One collective or message: from Python's arguments to struct muster_call.
 *
 * Layer: Python glue. Runs with the GIL. The counts are owned by struct native_call.
 */
#include "native.h"

#include <stdlib.h>

enum { NUM_SCALARS = 8, NUM_ALL = 10 };

static int parse_int(PyObject *object, int *ret)
{
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a rank, tag or type is out of range");
        return -1;
    }
    *ret = (int)value;
    return 0;
}

static int parse_scalars(PyObject *const *args, struct muster_call *ret)
{
    int kind, type, op;
    if (parse_int(args[0], &kind) < 0 || parse_int(args[1], &type) < 0 ||
        parse_int(args[2], &op) < 0 || parse_int(args[3], &ret->peer) < 0 ||
        parse_int(args[4], &ret->tag) < 0) {
        return -1;
    }
    ret->kind = (enum muster_collective)kind;
    ret->type = (enum muster_type)type;
    ret->op = (enum muster_op)op;
    ret->in = PyLong_AsVoidPtr(args[5]);
    ret->out = PyLong_AsVoidPtr(args[6]);
    ret->count = PyLong_AsSize_t(args[7]);
    return PyErr_Occurred() ? -1 : 0;
}

/* Writes a sequence of world_size counts to `counts`. */
static int parse_counts(PyObject *sequence, int world_size, size_t *counts)
{
    if (PySequence_Size(sequence) != world_size) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "one count per rank is wanted, for %d ranks",
                         world_size);
        }
        return -1;
    }
    for (int i = 0; i < world_size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        if (!item) {
            return -1;
        }
        counts[i] = PyLong_AsSize_t(item);
        Py_DECREF(item);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static int parse_both_counts(PyObject *in, PyObject *out, int world_size, struct native_call *ret)
{
    size_t n = (size_t)world_size;
    ret->counts = calloc(2 * n, sizeof(size_t));
    if (!ret->counts) {
        PyErr_NoMemory();
        return -1;
    }
    if (in != Py_None) {
        ret->call.in_counts = ret->counts;
        if (parse_counts(in, world_size, ret->counts) < 0) {
            return -1;
        }
    }
    if (out != Py_None) {
        ret->call.out_counts = ret->counts + n;
        if (parse_counts(out, world_size, ret->counts + n) < 0) {
            return -1;
        }
    }
    return 0;
}

int native_call_parse(PyObject *const *args, Py_ssize_t num_args, int world_size,
                      struct native_call *ret)
{
    *ret = (struct native_call){.call = MUSTER_CALL_INIT};
    if (num_args != NUM_SCALARS && num_args != NUM_ALL) {
        PyErr_SetString(PyExc_TypeError, "arguments: kind, type, op, peer, tag, in, out, count"
                                         "[, in_counts, out_counts]");
        return -1;
    }
    int r = parse_scalars(args, &ret->call);
    if (r == 0 && num_args == NUM_ALL) {
        r = parse_both_counts(args[8], args[9], world_size, ret);
    }
    if (r < 0) {
        native_call_done(ret);
    }
    return r;
}

void native_call_done(struct native_call *call)
{
    free(call->counts);
    call->counts = NULL;
}
