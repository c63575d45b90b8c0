/* C errors as Python exceptions: one class per exception named in include/muster/err.def.
 *
 * muster.Error is a RuntimeError, because that is what torch's users catch; each class is also the
 * builtin of its name (muster.TimeoutError is a TimeoutError). They carry code, name and rank.
 *
 * Layer: Python glue. Runs with the GIL.
 */
#include "native.h"

#include <string.h>

static const int codes[] = {
#define MUSTER_ERROR(name, code, exit, python, text) (code),
#include <muster/err.def>
#undef MUSTER_ERROR
};

static PyObject *find_class(const struct native_state *state, const char *name)
{
    for (int i = 0; i < state->num_classes; i++) {
        if (strcmp(state->classes[i].name, name) == 0) {
            return state->classes[i].type;
        }
    }
    return NULL;
}

/* Returns a new reference to class muster.NAME(Error, builtins.NAME). KeyboardInterrupt is not an
 * Exception, and is returned unchanged, so that `except Exception` does not catch it. */
static PyObject *make_class(PyObject *error, const char *name)
{
    if (strcmp(name, "RuntimeError") == 0) {
        Py_INCREF(error);
        return error;
    }
    PyObject *builtin = PyDict_GetItemString(PyEval_GetBuiltins(), name);
    if (!builtin) {
        return PyErr_Format(PyExc_SystemError, "no builtin exception %s", name);
    }
    if (PyObject_IsSubclass(builtin, PyExc_Exception) != 1) {
        Py_INCREF(builtin);
        return builtin;
    }
    PyObject *bases = PyTuple_Pack(2, error, builtin);
    if (!bases) {
        return NULL;
    }
    char full_name[64];
    PyOS_snprintf(full_name, sizeof full_name, "muster.%s", name);
    PyObject *type = PyErr_NewException(full_name, bases, NULL);
    Py_DECREF(bases);
    return type;
}

static int add_class(PyObject *module, struct native_state *state, const char *name)
{
    if (find_class(state, name)) {
        return 0;
    }
    if (state->num_classes == NATIVE_MAX_CLASSES) {
        PyErr_SetString(PyExc_SystemError, "err.def names more exceptions than there is room for");
        return -1;
    }
    PyObject *type = make_class(state->error, name);
    if (!type) {
        return -1;
    }
    state->classes[state->num_classes++] = (struct native_class){name, type};
    return type == state->error ? 0 : PyModule_AddObjectRef(module, name, type);
}

int native_errors_init(PyObject *module, struct native_state *state)
{
    state->error = PyErr_NewExceptionWithDoc(
        "muster.Error",
        "What libmuster reports. code: negative, of include/muster/err.def; name: its name; "
        "rank: the peer it is about, or -1.",
        PyExc_RuntimeError, NULL);
    if (!state->error || PyModule_AddObjectRef(module, "Error", state->error) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (add_class(module, state, muster_code_python(codes[i])) < 0) {
            return -1;
        }
    }
    return 0;
}

static int set_number(PyObject *object, const char *name, long value)
{
    PyObject *number = PyLong_FromLong(value);
    int r = number ? PyObject_SetAttrString(object, name, number) : -1;
    Py_XDECREF(number);
    return r;
}

static int set_text(PyObject *object, const char *name, const char *value)
{
    PyObject *text = PyUnicode_FromString(value);
    int r = text ? PyObject_SetAttrString(object, name, text) : -1;
    Py_XDECREF(text);
    return r;
}

PyObject *native_raise(struct native_state *state, const struct muster_err *err)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *type = find_class(state, muster_code_python(err->code));
    /* Callers of torch search the text for the word "timeout". */
    const char *suffix = err->code == MUSTER_ETIMEDOUT ? " (the timeout of the group)" : "";
    PyObject *text = PyUnicode_FromFormat("%s%s", err->text, suffix);
    PyObject *exception =
        text ? PyObject_CallFunctionObjArgs(type ? type : state->error, text, NULL) : NULL;
    Py_XDECREF(text);
    if (!exception) {
        return NULL;
    }
    if (set_number(exception, "code", err->code) == 0 &&
        set_number(exception, "rank", err->rank) == 0 &&
        set_text(exception, "name", muster_code_name(err->code)) == 0) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_DECREF(exception);
    return NULL;
}
