/* A data set by leases as a Python object: muster/shards.h.
 *
 * Layer: Python glue. The GIL guards the object; it is released in everything that may wait. One
 * thread at a time uses it; close() while another is inside is an error.
 */
#include "native.h"

#include <stdlib.h>

struct native_shards {
    PyObject head;
    struct muster_shards *shards; /* NULL once closed */
    uint32_t sum_count;
    bool busy;
};

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"records",    "shard",   "epochs",      "dataset", "task",
                            "seed",       "shuffle", "coordinator", "token",   "name",
                            "connect_ms", "sums",    "set_aside",   NULL};
    struct muster_shards_options o = MUSTER_SHARDS_OPTIONS_INIT;
    unsigned long long records, seed = 0;
    unsigned int shard, epochs = 1, task = 0, shuffle = 0;
    long long connect_ms = o.connect_ms;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KI|IzIKIzzzLzI", names, &records, &shard,
                                     &epochs, &o.dataset, &task, &seed, &shuffle, &o.coordinator,
                                     &o.token, &o.name, &connect_ms, &o.sums, &o.set_aside)) {
        return NULL;
    }
    o.records = records;
    o.shard = shard;
    o.epochs = epochs;
    o.task = (enum muster_shards_task)task;
    o.seed = seed;
    o.shuffle = shuffle;
    o.connect_ms = connect_ms;
    o.interrupted = native_elastic_interrupted;
    struct muster_shards *shards = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards_info info = MUSTER_SHARDS_INFO_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_open(&o, &shards, &err);
    r = r < 0 ? r : muster_shards_query(shards, &info, &err);
    Py_END_ALLOW_THREADS;
    struct native_shards *self =
        r < 0 ? NULL : (struct native_shards *)PyType_GenericAlloc(type, 0);
    if (!self) {
        muster_shards_close(shards);
        return r < 0 ? native_raise(PyType_GetModuleState(type), &err) : NULL;
    }
    self->shards = shards;
    self->sum_count = info.sum_count;
    return (PyObject *)self;
}

static struct native_shards *enter(PyObject *object)
{
    struct native_shards *self = (struct native_shards *)object;
    if (!self->shards || self->busy) {
        PyErr_SetString(PyExc_ValueError, self->busy
                                              ? "this data set is in a call of another thread"
                                              : "this data set is closed");
        return NULL;
    }
    self->busy = true;
    return self;
}

/* Ends a call: returns None, or NULL with the exception for its error. */
static PyObject *leave(struct native_shards *self, int r, const struct muster_err *err)
{
    self->busy = false;
    if (r < 0) {
        return native_raise(native_state_of((PyObject *)self), err);
    }
    Py_RETURN_NONE;
}

static PyObject *records_of(const struct muster_shard *shard)
{
    PyObject *list = PyList_New((Py_ssize_t)shard->record_count);
    for (size_t i = 0; list && i < shard->record_count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(shard->records[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *fetch(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct muster_shard shard = MUSTER_SHARD_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct native_shards *self = enter(object);
    int r;
    if (!self) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_fetch(self->shards, &shard, &err);
    Py_END_ALLOW_THREADS;
    self->busy = false;
    if (r < 0) {
        return native_raise(native_state_of(object), &err);
    }
    if (r == 0) {
        Py_RETURN_NONE;
    }
    PyObject *records = records_of(&shard);
    return records ? Py_BuildValue("(KKKN)", (unsigned long long)shard.number,
                                   (unsigned long long)shard.epoch, (unsigned long long)shard.first,
                                   records)
                   : NULL;
}

static int read_sums(PyObject *given, uint32_t count, double *ret)
{
    if (given && PySequence_Size(given) != (Py_ssize_t)count) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "the data set sums up %u values of a shard", count);
        }
        return -1;
    }
    for (uint32_t i = 0; given && i < count; i++) {
        PyObject *item = PySequence_GetItem(given, (Py_ssize_t)i);
        ret[i] = item ? PyFloat_AsDouble(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static PyObject *report(PyObject *object, PyObject *args)
{
    unsigned long long number;
    double sums[MUSTER_SHARDS_SUMS_MAX] = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    PyObject *given = NULL;
    if (!PyArg_ParseTuple(args, "K|O", &number, &given)) {
        return NULL;
    }
    given = given == Py_None ? NULL : given;
    struct native_shards *self = enter(object);
    if (!self) {
        return NULL;
    }
    int r = read_sums(given, self->sum_count, sums);
    if (r < 0) {
        self->busy = false;
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_report(self->shards, number, sums, &err);
    Py_END_ALLOW_THREADS;
    return leave(self, r, &err);
}

static PyObject *fail(PyObject *object, PyObject *args)
{
    unsigned long long number;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    if (!PyArg_ParseTuple(args, "K", &number)) {
        return NULL;
    }
    struct native_shards *self = enter(object);
    if (!self) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_fail(self->shards, number, &err);
    Py_END_ALLOW_THREADS;
    return leave(self, r, &err);
}

static PyObject *wait(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct muster_err err = MUSTER_ERR_INIT;
    struct native_shards *self = enter(object);
    int r;
    if (!self) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_wait(self->shards, &err);
    Py_END_ALLOW_THREADS;
    return leave(self, r, &err);
}

static PyObject *query(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct muster_shards_info info = MUSTER_SHARDS_INFO_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct native_shards *self = enter(object);
    if (!self) {
        return NULL;
    }
    int r = muster_shards_query(self->shards, &info, &err);
    self->busy = false;
    if (r < 0) {
        return native_raise(native_state_of(object), &err);
    }
    PyObject *sums = PyList_New((Py_ssize_t)info.sum_count);
    for (uint32_t i = 0; sums && i < info.sum_count; i++) {
        PyObject *value = PyFloat_FromDouble(info.sums[i]);
        if (!value || PyList_SetItem(sums, (Py_ssize_t)i, value) < 0) {
            Py_CLEAR(sums);
        }
    }
    return sums ? Py_BuildValue(
                      "{sKsKsKsKsKsKsOsN}", "incarnation", (unsigned long long)info.incarnation,
                      "fetched", (unsigned long long)info.fetched, "reported",
                      (unsigned long long)info.reported, "records_done",
                      (unsigned long long)info.records_done, "epoch",
                      (unsigned long long)info.epoch, "left_out", (unsigned long long)info.left_out,
                      "ended", info.ended ? Py_True : Py_False, "sums", sums)
                : NULL;
}

/* ---- Where it is ---- */

static PyObject *list_ranges(const struct muster_shards_range *ranges, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("(KK)", (unsigned long long)ranges[i].first,
                                       (unsigned long long)(ranges[i].first + ranges[i].count));
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *position(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct muster_shards_position p = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    struct native_shards *self = enter(object);
    int r;
    if (!self) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_position(self->shards, &p, &err);
    Py_END_ALLOW_THREADS;
    PyObject *result = NULL;
    if (r < 0) {
        native_raise(native_state_of(object), &err);
    } else {
        PyObject *to_do = list_ranges(p.to_do, p.to_do_count);
        PyObject *held = to_do ? list_ranges(p.held, p.held_count) : NULL;
        result = held ? Py_BuildValue("(KNN)", (unsigned long long)p.epoch, to_do, held) : NULL;
        if (!held) {
            Py_XDECREF(to_do);
        }
    }
    self->busy = false;
    return result;
}

static struct muster_shards_range *read_ranges(PyObject *given, size_t *ret_count)
{
    Py_ssize_t count = PySequence_Size(given);
    struct muster_shards_range *ranges =
        count < 0 ? NULL : calloc((size_t)count + 1, sizeof *ranges);
    if (count >= 0 && !ranges) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; ranges && i < count; i++) {
        PyObject *pair = PySequence_GetItem(given, i);
        unsigned long long first = 0, end = 0;
        bool good = pair && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "KK", &first, &end);
        Py_XDECREF(pair);
        if (!good || end <= first) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a range is a pair: first, and end after it");
            }
            free(ranges);
            return NULL;
        }
        ranges[i] = (struct muster_shards_range){first, end - first};
    }
    *ret_count = (size_t)count;
    return ranges;
}

static PyObject *begin(PyObject *object, PyObject *args)
{
    unsigned long long epoch;
    PyObject *given;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_shards_position p = {0};
    int r;
    if (!PyArg_ParseTuple(args, "KO", &epoch, &given)) {
        return NULL;
    }
    struct muster_shards_range *ranges = read_ranges(given, &p.to_do_count);
    struct native_shards *self = ranges ? enter(object) : NULL;
    if (!self) {
        free(ranges);
        return NULL;
    }
    p.epoch = epoch;
    p.to_do = ranges;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_shards_begin(self->shards, &p, &err);
    Py_END_ALLOW_THREADS;
    free(ranges);
    self->busy = false;
    return r < 0 ? native_raise(native_state_of(object), &err) : PyBool_FromLong(r);
}

/* ---- The type ---- */

static PyObject *close_shards(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_shards *self = (struct native_shards *)object;
    if (self->busy) {
        PyErr_SetString(PyExc_ValueError, "this data set is in a call of another thread");
        return NULL;
    }
    struct muster_shards *shards = self->shards;
    self->shards = NULL;
    Py_BEGIN_ALLOW_THREADS;
    muster_shards_close(shards);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(close_shards(object, NULL));
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

static PyMethodDef methods[] = {
    {"fetch", fetch, METH_NOARGS,
     "fetch(): (number, epoch, first position, [records]) of the next shard; None: all is done."},
    {"report", report, METH_VARARGS,
     "report(number, sums=None): the shard is done, with the sums of its records."},
    {"fail", fail, METH_VARARGS, "fail(number): it could not be done, and goes to another."},
    {"wait", wait, METH_NOARGS, "wait(): until all that was reported is in the journal."},
    {"query", query, METH_NOARGS, "query(): what struct muster_shards_info says, as a dict."},
    {"position", position, METH_NOARGS,
     "position(): (epoch, [(first, end)] to do, [(first, end)] held by workers)."},
    {"begin", begin, METH_VARARGS,
     "begin(epoch, [(first, end)]): the data set begins there, with these to do. True: it does."},
    {"close", close_shards, METH_NOARGS, "Leaves. What was not reported goes to others."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Shards(records, shard, epochs=1, dataset=None, task=0, seed=0, shuffle=0, coordinator=None, "
     "token=None, name=None, connect_ms=60000, sums=None, set_aside=0): a data set by leases, "
     "as muster/shards.h has it."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec native_shards_spec = {
    .name = "muster._muster.Shards",
    .basicsize = sizeof(struct native_shards),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
