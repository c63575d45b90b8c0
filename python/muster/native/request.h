/* A request as its two files see it: request.c, the Python object; queue.c, those that have ended.
 *
 * Layer: Python glue.
 */
#pragma once

#include "native.h"

enum { NATIVE_SLICE_MS = 50 }; /* how long a wait may be blind to signals */

struct native_request {
    PyObject head;
    struct muster_request *request;
    struct native_comm *comm; /* keeps the communicator while the call is under way */
    struct native_queue *queue;
    struct native_request *next; /* in a list of the queue */
    size_t *counts;
    PyObject *owner;
    bool ended;   /* the queue's lock guards these two */
    bool wanted;  /* a future waits for it */
    bool counted; /* in the communicator's under_way */
};

/* The call is one that settling waits for: it counts until it is pushed. */
void native_queue_count(struct native_request *self);

/* A muster_request_notify callback, on any thread, with the GIL or without: `context` is the
 * request; the reference that start took moves into the queue. */
void native_queue_push(void *context, int code);

/* native_queue_take will return it when it ends; false: it has ended already. */
bool native_queue_want(struct native_request *self);

/* The list, by `next`, of those that have ended and that nobody waited for; their references with
 * it. */
struct native_request *native_queue_take_quiet(struct native_queue *queue);
