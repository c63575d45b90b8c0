/* A started call: who holds it, and what may be asked of it without waiting. Layer: comm. Memory:
 * request.h. Thread: any. */
#include "comm/progress/request.h"

#include "comm/system/sized.h"

#include <assert.h>
#include <stdlib.h>

void request_unref(struct muster_request *request)
{
    int refs = request ? atomic_fetch_sub(&request->refs, 1) : 0;
    assert(!request || refs > 0);
    if (refs == 1) {
        pthread_mutex_destroy(&request->mutex);
        free(request);
    }
}

int muster_request_test(struct muster_request *request, struct muster_err *err)
{
    int rc = sized_check_err(err);
    if (rc < 0) {
        return rc;
    }
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    if (state == REQUEST_PENDING) {
        return comm_check_own(request->comm, err);
    }
    if (state < 0) {
        sized_copy_err(err, &request->err);
    }
    return state;
}

int muster_request_message(const struct muster_request *request, struct muster_message *ret,
                           struct muster_err *err)
{
    int rc = sized_check_err(err);
    rc = rc < 0 ? rc : sized_check(&sized_message, ret, err);
    if (rc == 0) {
        sized_write(&sized_message, ret, &request->task.transfer.message);
    }
    return rc;
}

void muster_request_notify(struct muster_request *request, void (*done)(void *, int), void *context)
{
    pthread_mutex_lock(&request->mutex);
    int state = atomic_load(&request->state);
    if (state == REQUEST_PENDING) {
        request->notify = done;
        request->notify_context = context;
    }
    pthread_mutex_unlock(&request->mutex);
    if (state != REQUEST_PENDING) {
        done(context, state < 0 ? state : 0);
    }
}

void muster_request_free(struct muster_request *request)
{
    request_unref(request);
}
