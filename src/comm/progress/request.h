/* A call that was started. Layer: comm.
 *
 * Memory: a request belongs to its lane until the call ends, then to the user, who may have given
 * it up before. One word holds this state, because it is changed once for each message.
 */
#pragma once

#include "comm/progress/wait.h"

/* The state of a request: one of these, or an error's code. While it is pending, any of the flags
 * below are set in it, and the bits above them count how often its notify was changed. */
enum {
    REQUEST_PENDING = 0,
    REQUEST_DONE = 1,
    REQUEST_TELLS = 2, /* there is a function to notify */
    REQUEST_LEFT = 4,  /* the user has freed it */
    REQUEST_TURN = 8,
};

struct muster_request {
    struct task task;
    struct muster_comm *comm; /* valid while pending */
    struct muster_request *_Atomic next;
    struct muster_request *before; /* in the lane; only the lane's holder uses it */
    struct waiter waiter;          /* for the progress thread: how long the request has waited */
    _Atomic int state;
    struct muster_err err;
    pthread_mutex_t mutex; /* held to change the fields that follow */
    void (*_Atomic notify)(void *context, int code);
    void *_Atomic notify_context;
};

static inline bool request_state_is_pending(int state)
{
    return state >= 0 && state != REQUEST_DONE;
}

static inline bool request_is_pending(const struct muster_request *request)
{
    return request_state_is_pending(atomic_load_explicit(&request->state, memory_order_acquire));
}

/* Returns a request with its mutex; the caller sets all other fields. NULL: no memory. */
struct muster_request *request_alloc(void);
/* Frees a request that no other thread has seen. */
void request_drop(struct muster_request *request);
/* Ends a request, with REQUEST_DONE or its error's code; it does not belong to the lane any more.
 */
void request_end(struct muster_request *request, int state);
/* Returns the request that stands for all sends that ended before their start returned. */
struct muster_request *request_sent(void);
