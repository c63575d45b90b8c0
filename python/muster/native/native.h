/* The extension module muster._muster: communicators and requests for Python, nothing of torch.
 *
 * Layer: Python glue over the public C API. Limited API (abi3, 3.10), multi-phase initialisation,
 * heap types; no PyObject lives outside the module's state. Buffers come as addresses: whoever
 * calls keeps them alive; where it is not tensors that are moved, as objects with the buffer
 * protocol. Every call that may wait releases the GIL and sees signals (region_read: its timeout
 * only).
 */
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <muster/elastic.h>
#include <muster/muster.h>
#include <muster/shards.h>

enum { NATIVE_MAX_CLASSES = 16 };

/* The exception classes, one per name in the table of errors. */
struct native_class {
    const char *name; /* the name of the builtin exception that is its base, too; static */
    PyObject *type;
};

struct native_state {
    PyObject *error; /* muster.Error, the base of them all */
    struct native_class classes[NATIVE_MAX_CLASSES];
    int num_classes;
    PyTypeObject *comm_type;
    PyTypeObject *request_type;
    PyTypeObject *endpoint_type;
    PyTypeObject *region_type;
    PyTypeObject *elastic_type;
    PyTypeObject *shards_type;
    struct native_queue *queue; /* requests that have ended, for the completion thread */
};

/* errors.c */
int native_errors_init(PyObject *module, struct native_state *state);
/* Sets the exception for err->code, unless one is set already (KeyboardInterrupt from a signal's
 * handler). Always returns NULL. */
PyObject *native_raise(struct native_state *state, const struct muster_err *err);

/* comm.c */
struct native_comm {
    PyObject head;
    struct muster_comm *comm; /* NULL once closed */
    int inside;               /* threads inside a call; the GIL guards it */
    pthread_mutex_t order;    /* for collectives: one thread at a time runs or starts one */
    unsigned long turn;       /* the thread whose turn it is, or 0; the GIL guards it */
    bool closing;             /* the last thread that leaves frees comm */
    int under_way;            /* collectives that were started; the queue's lock guards it */
};
extern PyType_Spec native_comm_spec;
/* Takes ownership of comm, also on failure. */
PyObject *native_comm_wrap(PyTypeObject *type, struct muster_comm *comm);

/* inside.c
 * Returns false if it is closed; no exception is set. */
bool native_comm_try_enter(struct native_comm *self);
/* Returns NULL, with an exception set, if it is closed. */
struct native_comm *native_comm_enter(PyObject *object);
void native_comm_leave(struct native_comm *self);

/* wait.c
 * Returns the time by CLOCK_MONOTONIC. */
int64_t native_now_ms(void);
/* Called by a collective under way: non-zero when Ctrl-C's handler raised. Handlers of other
 * signals run after the call, because they may make calls themselves. */
int native_interrupted(void *context);

/* comm_query.c: methods of the type */
PyObject *native_comm_abort(PyObject *object, PyObject *unused);
PyObject *native_comm_set_timeout(PyObject *object, PyObject *timeout_ms);
PyObject *native_comm_settle(PyObject *object, PyObject *limit_ms);
PyObject *native_comm_describe(PyObject *object, PyObject *unused);
PyObject *native_comm_query(PyObject *object, PyObject *unused);

/* call.c: one collective or message, from a Python argument list to struct muster_call */
struct native_call {
    struct muster_call call;
    size_t *counts; /* both arrays; owned */
};
/* The arguments are kind, type, op, peer, tag, in, out, count[, in_counts, out_counts]. */
int native_call_parse(PyObject *const *args, Py_ssize_t num_args, int world_size,
                      struct native_call *ret);
void native_call_done(struct native_call *call);

/* request.c */
extern PyType_Spec native_request_spec;
/* Takes ownership of the call's counts. owner stays alive until the request has ended. */
PyObject *native_request_start(struct native_state *state, struct native_comm *comm,
                               struct native_call *call, PyObject *owner);

/* queue.c */
struct native_queue *native_queue_new(void);
/* Blocks until a request has ended or the queue is stopped; returns None when it is stopped and
 * empty. */
PyObject *native_queue_take(struct native_queue *queue);
void native_queue_stop(struct native_queue *queue);
/* Waits until the collectives that were started on comm have ended, but gives up when no collective
 * of any communicator has ended for limit_ms: slow peers may have others to do before. Returns -1
 * with an exception set when a signal's handler raised. */
int native_queue_settle(struct native_queue *queue, struct native_comm *comm, int64_t limit_ms);

/* buffer.c */
struct native_buffer {
    PyObject *view; /* holds the memory; NULL if nothing is held */
    void *bytes;
    Py_ssize_t size_bytes;
};
/* These return -1 with an exception set on failure. A buffer is contiguous. */
int native_buffer_get(PyObject *object, bool writable, struct native_buffer *ret);
void native_buffer_done(struct native_buffer *buffer);
/* Returns the number of members; ret has room for MUSTER_MAX_RANKS. */
int native_members_get(PyObject *sequence, struct muster_member *ret);

/* endpoint.c */
extern PyType_Spec native_endpoint_spec;

/* region.c */
extern PyType_Spec native_region_spec;
PyObject *native_region_read(PyObject *module, PyObject *args, PyObject *kwargs);

/* elastic.c */
struct native_elastic {
    PyObject head;
    struct muster_elastic *job; /* NULL once closed */
    size_t extra_bytes;
    struct native_buffer *pieces;
    size_t num_pieces;
    uint32_t micro_batches; /* of the step that is under way */
    int inside;             /* threads inside a call */
    bool busy;              /* one of them is the thread that uses the job */
    bool closing;
};
extern PyType_Spec native_elastic_spec;
/* Enters as the job's user, which is one thread at a time; NULL with an exception set when another
 * thread is, or the job is closed. */
struct native_elastic *native_elastic_enter(PyObject *object);
void native_elastic_leave(struct native_elastic *self);
/* Runs Python's signal handlers, so that one may ask to leave while the job waits; non-zero when
 * one raised. Only the main thread runs them. */
int native_elastic_interrupted(void *context);

/* elastic_step.c: methods of the type */
PyObject *native_elastic_step(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *native_elastic_sum(PyObject *object, PyObject *args);
PyObject *native_elastic_commit(PyObject *object, PyObject *args);
PyObject *native_elastic_extras(PyObject *object, PyObject *unused);

/* shards.c */
extern PyType_Spec native_shards_spec;

/* elastic_values.c */
/* 0, or -1 with an exception set. The texts belong to args and kwargs. */
int native_elastic_options(PyObject *args, PyObject *kwargs, struct muster_elastic_options *ret);
PyObject *native_elastic_pass(const struct muster_elastic_pass *pass);
PyObject *native_elastic_info(const struct muster_elastic_info *info);
/* Returns a list of the passes' lists of records, for the counts that fit into num. */
PyObject *native_elastic_lists(const uint64_t *records, size_t num, const size_t *counts,
                               size_t passes);

/* digest.c */
uint64_t native_digest(const unsigned char *bytes, size_t size_bytes, uint64_t seed);

PyMODINIT_FUNC PyInit__muster(void);

static inline struct native_state *native_state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}
