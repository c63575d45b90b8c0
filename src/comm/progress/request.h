/* A call that was started. Layer: comm.
 *
 * Memory: two owners, the user and its lane; the last to let go frees it.
 */
#pragma once

#include "comm/progress/wait.h"

enum { REQUEST_PENDING = 0, REQUEST_DONE = 1 }; /* else the error's code */

struct muster_request {
    struct task task;
    struct muster_comm *comm; /* valid while pending */
    struct muster_request *_Atomic next;
    struct muster_request *before; /* in the lane; the lane's holder's */
    struct waiter waiter;          /* of the progress thread: how long it has waited */
    _Atomic int refs;
    _Atomic int state;
    struct muster_err err;
    pthread_mutex_t mutex; /* guards what follows, and the change of state */
    void (*notify)(void *context, int code);
    void *notify_context;
};

/* Room for a request, with its mutex; all else is the caller's to set. NULL: no memory. */
struct muster_request *request_alloc(void);
/* Of one that nobody else has seen. */
void request_drop(struct muster_request *request);
void request_unref(struct muster_request *request);
/* One for all sends that ended before their start returned. */
struct muster_request *request_sent(void);
