/* A worker of an elastic job as a Python object: muster/elastic.h over buffers.
 *
 * Layer: Python glue. The GIL guards the object; it is released in everything that may wait. One
 * thread at a time uses a job, but for query(), leave() and close(); close() while another is
 * inside asks that one to leave, and the last one out closes. The state's memory is held by
 * memoryviews until other pieces take its place.
 */
#include "native.h"

#include <stdlib.h>

int native_elastic_interrupted(void *context)
{
    (void)context;
    PyGILState_STATE gil = PyGILState_Ensure();
    int r = PyErr_Occurred() ? -1 : PyErr_CheckSignals();
    PyGILState_Release(gil);
    return r < 0;
}

static void drop_pieces(struct native_buffer *pieces, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        native_buffer_done(&pieces[i]);
    }
    free(pieces);
}

static void leave_call(struct native_elastic *self)
{
    if (--self->inside > 0 || !self->closing) {
        return;
    }
    struct muster_elastic *job = self->job;
    struct native_buffer *pieces = self->pieces;
    size_t num = self->num_pieces;
    self->job = NULL;
    self->pieces = NULL;
    self->num_pieces = 0;
    Py_BEGIN_ALLOW_THREADS;
    muster_elastic_close(job);
    Py_END_ALLOW_THREADS;
    drop_pieces(pieces, num);
}

static struct native_elastic *enter_call(PyObject *object)
{
    struct native_elastic *self = (struct native_elastic *)object;
    if (!self->job || self->closing) {
        PyErr_SetString(PyExc_ValueError, "this elastic job is closed");
        return NULL;
    }
    self->inside++;
    return self;
}

struct native_elastic *native_elastic_enter(PyObject *object)
{
    struct native_elastic *self = enter_call(object);
    if (self && self->busy) {
        leave_call(self);
        PyErr_SetString(PyExc_ValueError, "this elastic job is in a call of another thread, or "
                                          "in the one that this signal handler interrupts");
        return NULL;
    }
    if (self) {
        self->busy = true;
    }
    return self;
}

void native_elastic_leave(struct native_elastic *self)
{
    self->busy = false;
    leave_call(self);
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    if (native_elastic_options(args, kwargs, &options) < 0) {
        return NULL;
    }
    options.interrupted = native_elastic_interrupted;
    struct muster_elastic *job = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_elastic_open(&options, &job, &err);
    Py_END_ALLOW_THREADS;
    struct native_elastic *self = NULL;
    if (r >= 0 && !PyErr_Occurred()) {
        self = (struct native_elastic *)PyType_GenericAlloc(type, 0);
    } else {
        native_raise(PyType_GetModuleState(type), &err);
    }
    if (!self) {
        muster_elastic_close(job);
        return NULL;
    }
    self->job = job;
    self->extra_bytes = options.extra_bytes;
    return (PyObject *)self;
}

static PyObject *close_job(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_elastic *self = enter_call(object);
    if (!self) {
        PyErr_Clear(); /* the error says that it is closed already */
        Py_RETURN_NONE;
    }
    self->closing = true;
    if (self->busy) {
        muster_elastic_leave(self->job);
    }
    leave_call(self);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(close_job(object, NULL));
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

/* Gets the buffers of a sequence; NULL with an exception set. */
static struct native_buffer *hold_pieces(PyObject *sequence, size_t *ret_num)
{
    Py_ssize_t num = PySequence_Size(sequence);
    if (num < 0) {
        return NULL;
    }
    struct native_buffer *pieces = calloc((size_t)num + 1, sizeof *pieces);
    if (!pieces) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < num; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        int r = item ? native_buffer_get(item, true, &pieces[i]) : -1;
        Py_XDECREF(item);
        if (r < 0) {
            drop_pieces(pieces, (size_t)i);
            return NULL;
        }
    }
    *ret_num = (size_t)num;
    return pieces;
}

static int register_pieces(struct native_elastic *self, const struct native_buffer *pieces,
                           size_t num, struct muster_err *err)
{
    struct muster_elastic_piece *list = calloc(num + 1, sizeof *list);
    if (!list) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a list of %zu pieces", num);
    }
    for (size_t i = 0; i < num; i++) {
        list[i] = (struct muster_elastic_piece){.memory = pieces[i].bytes,
                                                .size_bytes = (size_t)pieces[i].size_bytes};
    }
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_elastic_state(self->job, list, num, err);
    Py_END_ALLOW_THREADS;
    free(list);
    return r;
}

static PyObject *state(PyObject *object, PyObject *sequence)
{
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    size_t num = 0;
    struct native_buffer *pieces = hold_pieces(sequence, &num);
    struct muster_err err = MUSTER_ERR_INIT;
    int r = pieces ? register_pieces(self, pieces, num, &err) : -1;
    if (r >= 0) {
        struct native_buffer *old = self->pieces;
        size_t num_old = self->num_pieces;
        self->pieces = pieces;
        self->num_pieces = num;
        drop_pieces(old, num_old);
    } else if (pieces) {
        drop_pieces(pieces, num);
    }
    native_elastic_leave(self);
    if (!pieces || r < 0) {
        return pieces ? native_raise(native_state_of(object), &err) : NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *next(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_elastic_next(self->job, &pass, &err);
    Py_END_ALLOW_THREADS;
    self->micro_batches = r == 1 ? pass.micro_batches : self->micro_batches;
    PyObject *result = NULL;
    if (r == 1 && !PyErr_Occurred()) {
        result = native_elastic_pass(&pass);
    }
    native_elastic_leave(self);
    if (r < 0 || PyErr_Occurred()) {
        Py_XDECREF(result);
        return native_raise(native_state_of(object), &err);
    }
    if (r == 0) {
        Py_RETURN_NONE;
    }
    return result;
}

enum { AHEAD_MAX_PASSES = 1024, AHEAD_MAX_RECORDS = 1 << 20 };

static PyObject *ahead(PyObject *object, PyObject *args)
{
    unsigned int passes, room;
    if (!PyArg_ParseTuple(args, "II", &passes, &room)) {
        return NULL;
    }
    if (passes > AHEAD_MAX_PASSES || room > AHEAD_MAX_RECORDS) {
        return PyErr_Format(PyExc_ValueError, "at most %d passes and %d records at once",
                            AHEAD_MAX_PASSES, AHEAD_MAX_RECORDS);
    }
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    uint64_t *records = calloc((size_t)room + 1, sizeof *records);
    size_t *counts = calloc((size_t)passes + 1, sizeof *counts);
    PyObject *lists = NULL;
    if (records && counts) {
        /* Counts that the function does not fill stay larger than any room. */
        memset(counts, 0xff, passes * sizeof *counts);
        size_t num = muster_elastic_ahead(self->job, passes, records, room, counts);
        lists = native_elastic_lists(records, num, counts, passes);
    } else {
        PyErr_NoMemory();
    }
    free(records);
    free(counts);
    native_elastic_leave(self);
    return lists;
}

static PyObject *leave(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_elastic *self = enter_call(object);
    if (!self) {
        return NULL;
    }
    muster_elastic_leave(self->job);
    leave_call(self);
    Py_RETURN_NONE;
}

static PyObject *fail(PyObject *object, PyObject *why)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(why, &size);
    struct native_elastic *self = text ? native_elastic_enter(object) : NULL;
    if (!self) {
        return NULL;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = muster_elastic_fail(self->job, text, &err);
    Py_END_ALLOW_THREADS;
    native_elastic_leave(self);
    if (r < 0 || PyErr_Occurred()) {
        return native_raise(native_state_of(object), &err);
    }
    Py_RETURN_NONE;
}

static PyObject *query(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_elastic *self = enter_call(object);
    if (!self) {
        return NULL;
    }
    struct muster_elastic_info info = MUSTER_ELASTIC_INFO_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = muster_elastic_query(self->job, &info, &err);
    leave_call(self);
    return r < 0 ? native_raise(native_state_of(object), &err) : native_elastic_info(&info);
}

static PyMethodDef methods[] = {
    {"state", state, METH_O,
     "state(buffers): the worker's state, writable buffers of the same sizes in the same order on "
     "every worker. They are held until others take their place."},
    {"next", next, METH_NOARGS,
     "next(): the pass that is to be computed, as a dict (version, epoch, micro_batch, "
     "micro_batches, records, share, generation, rank, size), or None: done, or left."},
    {"ahead", ahead, METH_VARARGS,
     "ahead(passes, room): the records of this worker's next passes, one list each, room records "
     "at most, as they will be while nobody comes or goes."},
    {"step", (PyCFunction)(void (*)(void))native_elastic_step, METH_VARARGS | METH_KEYWORDS,
     "step(gradient, count, type, mean, extra=None): brings a pass's gradient, or None. True: the "
     "step is committed, and `mean` has the step's mean; False: there are more passes."},
    {"sum", native_elastic_sum, METH_VARARGS,
     "sum(gradients, passes, count, type, mean): within a step: `mean` becomes the mean of all "
     "workers' gradients, of which these are this worker's, or None. False: workers came or went; "
     "the state is to be put back, and next() is called again."},
    {"commit", native_elastic_commit, METH_VARARGS,
     "commit(extras, passes): ends a step of such sums. True: it is committed; False: as sum()."},
    {"extras", native_elastic_extras, METH_NOARGS,
     "extras(): the extras of the step that was committed last, by micro-batch, as bytes."},
    {"leave", leave, METH_NOARGS, "leave(): to be left out at the end of the step; any thread."},
    {"fail", fail, METH_O,
     "fail(why): the job ends, for all workers; why: a line, and more lines for the log."},
    {"query", query, METH_NOARGS, "query(): what struct muster_elastic_info says, as a dict."},
    {"close", close_job, METH_NOARGS, "Leaves the job. Later calls raise ValueError."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Elastic(records, batch, epochs=1, micro_batches=0, dataset=None, seed=0, shuffle=0, "
     "coordinator=None, token=None, host=None, name=None, environment=0, extra_bytes=0, "
     "connect_ms=60000, peer_ms=0, checkpoint=None, checkpoint_steps=0, checkpoint_seconds=0, "
     "checkpoint_keep=0): a worker of an elastic job, as muster/elastic.h has it."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0},
};

PyType_Spec native_elastic_spec = {
    .name = "muster._muster.Elastic",
    .basicsize = sizeof(struct native_elastic),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
