/* What a wait asks between its slices: what time it is, and whether a signal has come.
 *
 * Layer: Python glue.
 */
#include "native.h"

#include <time.h>

int64_t native_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int native_interrupted(void *context)
{
    (void)context;
    PyGILState_STATE gil = PyGILState_Ensure();
    int r = PyErr_Occurred() ? -1 : 0;
    if (r == 0 && PyOS_InterruptOccurred()) { /* this call also clears the signal */
        PyErr_SetInterrupt();
        r = PyErr_CheckSignals();
    }
    PyGILState_Release(gil);
    return r < 0;
}
