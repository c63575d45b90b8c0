/* Who is inside a communicator: the last one out frees it, when it was closed meanwhile.
 *
 * Layer: Python glue. Everything here runs with the GIL.
 */
#include "native.h"

bool native_comm_try_enter(struct native_comm *self)
{
    bool open = self->comm && !self->closing;
    self->inside += open;
    return open;
}

struct native_comm *native_comm_enter(PyObject *object)
{
    struct native_comm *self = (struct native_comm *)object;
    if (!native_comm_try_enter(self)) {
        PyErr_SetString(PyExc_ValueError, "this communicator is closed");
        return NULL;
    }
    return self;
}

void native_comm_leave(struct native_comm *self)
{
    if (--self->inside == 0 && self->closing) {
        struct muster_comm *comm = self->comm;
        self->comm = NULL;
        Py_BEGIN_ALLOW_THREADS;
        muster_comm_free(comm);
        Py_END_ALLOW_THREADS;
    }
}
