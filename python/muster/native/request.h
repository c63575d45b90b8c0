/* A request as its two files see it: request.c, the Python object; queue.c, those that have ended.
 *
 * Layer: Python glue.
 */
#pragma once

#include "native.h"

enum { NATIVE_SLICE_MS = 50 }; /* the longest time for which a wait does not check for signals */

struct native_request {
    PyObject head;
    struct muster_request *request;
    struct native_comm *comm; /* keeps the communicator while the call is under way */
    struct native_queue *queue;
    struct native_request *next; /* the next request in a list of the queue */
    size_t *counts;
    PyObject *owner;
    bool ended;   /* the queue's lock guards these two */
    bool wanted;  /* a future waits for it */
    bool counted; /* whether it is counted in the communicator's under_way */
};

/* Counts the call as one for which settling waits, until it is pushed. */
void native_queue_count(struct native_request *self);

/* A muster_request_notify callback, on any thread, with the GIL or without: `context` is the
 * request; the reference that start took moves into the queue. */
void native_queue_push(void *context, int code);

/* Asks native_queue_take to return the request when it ends; false if it has ended already. */
bool native_queue_want(struct native_request *self);

/* Returns the list, by `next`, of requests that have ended and that nobody waited for, with their
 * references. */
struct native_request *native_queue_take_quiet(struct native_queue *queue);
