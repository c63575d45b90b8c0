/* How a pass or a step of an elastic job ends in Python: its gradient, sums and extras, as buffers.
 *
 * Layer: Python glue. The GIL is released while the workers sum up.
 */
#include "native.h"

struct step {
    struct native_buffer gradient;
    struct native_buffer extra;
    struct native_buffer mean;
    size_t count;
    enum muster_type type;
};

static void step_done(struct step *step)
{
    native_buffer_done(&step->gradient);
    native_buffer_done(&step->extra);
    native_buffer_done(&step->mean);
}

/* Gets a buffer of at least size_bytes; None gives no buffer. */
static int get_sized(PyObject *object, bool writable, size_t size_bytes, const char *what,
                     struct native_buffer *ret)
{
    if (object == Py_None) {
        return 0;
    }
    if (native_buffer_get(object, writable, ret) < 0) {
        return -1;
    }
    if ((size_t)ret->size_bytes < size_bytes) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, %zu are needed", what, ret->size_bytes,
                     size_bytes);
        return -1;
    }
    return 0;
}

static int parse_step(struct native_elastic *self, PyObject *args, PyObject *kwargs,
                      struct step *ret)
{
    static char *names[] = {"gradient", "count", "type", "mean", "extra", NULL};
    PyObject *gradient, *mean, *extra = Py_None;
    unsigned long long count;
    int type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OKiO|O", names, &gradient, &count, &type, &mean,
                                     &extra)) {
        return -1;
    }
    size_t element = muster_type_bytes((enum muster_type)type), size_bytes;
    if (element == 0 || __builtin_mul_overflow((size_t)count, element, &size_bytes)) {
        PyErr_Format(PyExc_ValueError, "%llu elements of type %d are nothing", count, type);
        return -1;
    }
    ret->count = (size_t)count;
    ret->type = (enum muster_type)type;
    if (get_sized(gradient, false, size_bytes, "the gradient", &ret->gradient) < 0 ||
        get_sized(mean, true, size_bytes, "the mean's memory", &ret->mean) < 0 ||
        get_sized(extra, false, self->extra_bytes, "extra", &ret->extra) < 0) {
        return -1;
    }
    return 0;
}

PyObject *native_elastic_step(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    struct step step = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    bool parsed = parse_step(self, args, kwargs, &step) == 0;
    int r = -1;
    if (parsed) {
        Py_BEGIN_ALLOW_THREADS;
        r = muster_elastic_step(self->job, step.gradient.view ? step.gradient.bytes : NULL,
                                step.count, step.type, step.extra.view ? step.extra.bytes : NULL,
                                step.mean.view ? step.mean.bytes : NULL, &err);
        Py_END_ALLOW_THREADS;
    }
    step_done(&step);
    native_elastic_leave(self);
    if (!parsed || PyErr_Occurred()) {
        return NULL;
    }
    return r < 0 ? native_raise(native_state_of(object), &err) : PyBool_FromLong(r);
}

/* Returns the result of muster_elastic_sum or muster_elastic_commit as a Python value. */
static PyObject *result_of(PyObject *object, int r, const struct muster_err *err)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    return r < 0 ? native_raise(native_state_of(object), err) : PyBool_FromLong(r);
}

PyObject *native_elastic_sum(PyObject *object, PyObject *args)
{
    PyObject *gradients, *mean;
    unsigned int passes, count;
    int type;
    if (!PyArg_ParseTuple(args, "OIIiO", &gradients, &passes, &count, &type, &mean)) {
        return NULL;
    }
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    struct step s = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    size_t bytes = (size_t)count * muster_type_bytes((enum muster_type)type);
    int r = get_sized(gradients, false, passes * bytes, "the gradients", &s.gradient);
    r = r < 0 ? r : get_sized(mean, true, bytes, "the mean's memory", &s.mean);
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS;
        r = muster_elastic_sum(self->job, s.gradient.view ? s.gradient.bytes : NULL, count,
                               (enum muster_type)type, s.mean.view ? s.mean.bytes : NULL, &err);
        Py_END_ALLOW_THREADS;
    }
    step_done(&s);
    native_elastic_leave(self);
    return result_of(object, r, &err);
}

PyObject *native_elastic_commit(PyObject *object, PyObject *args)
{
    PyObject *extras;
    unsigned int passes;
    if (!PyArg_ParseTuple(args, "OI", &extras, &passes)) {
        return NULL;
    }
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    struct step s = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = get_sized(extras, false, passes * self->extra_bytes, "extras", &s.extra);
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS;
        r = muster_elastic_commit(self->job, s.extra.view ? s.extra.bytes : NULL, &err);
        Py_END_ALLOW_THREADS;
    }
    step_done(&s);
    native_elastic_leave(self);
    return result_of(object, r, &err);
}

PyObject *native_elastic_extras(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct native_elastic *self = native_elastic_enter(object);
    if (!self) {
        return NULL;
    }
    const char *bytes = muster_elastic_extras(self->job);
    size_t size_bytes = bytes ? self->micro_batches * self->extra_bytes : 0;
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size_bytes);
    native_elastic_leave(self);
    return result;
}
