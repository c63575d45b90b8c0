/* Communicators: collectives and messages between the ranks of a parallel program.
 *
 *     struct muster_comm *comm;
 *     struct muster_err err = MUSTER_ERR_INIT;
 *     if (muster_comm_from_env(&comm, &err) < 0) { … err.text says why … }
 *     muster_all_reduce(comm, gradient, gradient, n, MUSTER_F32, MUSTER_SUM, &err);
 *     muster_comm_free(comm);
 *
 * Buffers. They belong to the caller and must not be changed from the start of a call to its end.
 * Counts are in elements. A call is in place if `in == out`, where a function permits it; other
 * overlapping buffers are an error of the caller. Out of place the input is never written. After an
 * error the contents of `out` are undefined. In place this is also true of the input, unless
 * input_untouched of muster_comm_query says otherwise.
 *
 * Results. Every rank gets the same bits. Elements are reduced in rank order, by any algorithm. If
 * several hosts have several ranks each, they are reduced in this order on each host, and then host
 * after host (by lowest rank). bf16 and f16 are always reduced in rank order, in f32, and rounded
 * once. Integers wrap.
 *
 * Success. After an all-reduce, reduce-scatter, all-gather, all-to-all or barrier, every rank has
 * entered the call. After a reduce, gather, broadcast or scatter (calls with a root) this rank's
 * result is in its buffer, and it may use its buffers again; other ranks may not have entered the
 * call. A rank may be at most 32 such calls ahead of any other; then it waits.
 *
 * Order. All ranks must start the same collectives on a communicator in the same order. A
 * difference in operation, type, count, root or order is MUSTER_EMISMATCH, and the error names both
 * sides. The counts of an all-gatherv and of an all-to-allv are compared, too (for the latter the
 * error does not name the pair). A call with a root may succeed on a rank although another rank
 * calls something else. This is reported within three calls (counted from this one) of the rank
 * that comes later, and at the latest by the next call that all ranks enter. Calls after the last
 * call of that kind are compared by muster_comm_free, which has no result: it prints a line if
 * notice_ms is set. To get an error instead, call a barrier before it.
 *
 * Errors. They are negative codes; err->rank is the peer that the error is about. An error closes
 * the communicator: every later call returns MUSTER_EABORTED. Free it and form a new one. It stays
 * open after
 * - MUSTER_EINVAL, and MUSTER_EAGAIN: too many calls are under way (muster_start);
 * - MUSTER_ENOMEM on this rank alone (a blocking call allocates when it must queue behind started
 *   ones): the other ranks do not know of it, and those that entered the call wait for this one;
 * - MUSTER_ETOOBIG of recv and alloc, MUSTER_ENOMEM of alloc, and the failure of a split to form,
 *   except MUSTER_ENOMEM and MUSTER_EOS;
 * - MUSTER_ETIMEDOUT and MUSTER_EINTERRUPTED of muster_request_wait: the call goes on.
 *
 * Threads. Only one thread at a time may start calls on a communicator. Abort, state queries, and
 * test and wait of a request may be called from any thread at any time. Free the communicator only
 * when no other thread is inside a call on it. The progress thread (one per process) runs
 * non-blocking calls for which no thread waits, and sleeps when there are none. If most calls were
 * waited for as soon as they were started, a call that is not waited for may begin a millisecond
 * late. After fork() a child must not use the parent's communicators: calls return MUSTER_EINVAL.
 *
 * Debuggers. A debugger stops all threads of a rank, and with them its heartbeat, which is due
 * every 50 ms: without an exemption the first breakpoint would end the rank by SIGKILL after
 * heartbeat_timeout_ms (0.9 s). Before they treat a rank as silent, the others therefore check
 * whether it is being traced (TracerPid in /proc): if so, it counts as alive until the tracer
 * detaches. This works on the same host and in the same PID namespace. A rank that is being traced
 * also says so with each heartbeat, so that ranks on other hosts know it when a breakpoint stops
 * it. Three cases are not seen: a debugger that attaches from another PID namespace of the host;
 * for ranks on other hosts, a debugger that stops the rank as it attaches (gdb -p); and a process
 * that is stopped without a tracer. In these cases set heartbeat_timeout_ms = 0 on all ranks;
 * timeout_ms still limits each wait.
 *
 * Cost. A communicator has one shared segment on each host (about 0.7 MiB for each of its ranks
 * and half a MiB for each pair of them; memory is allocated when it is used) with its descriptor,
 * and five connected sockets for each peer on another host. Blocking calls allocate nothing from
 * the heap, except for messages that come before their receive, for all_reduce_parts, and for calls
 * behind started ones. The library adds two threads to a process. While the process has peers on
 * other hosts, it also has a second process that shares its memory (docs/failures.md), a child that
 * waitpid(-1) and SIGCHLD do not see.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <muster/err.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_comm;
struct muster_request;
struct muster_endpoint;

enum muster_type {
    MUSTER_BOOL, /* one byte, 0 or 1 */
    MUSTER_U8,
    MUSTER_I8,
    MUSTER_I16,
    MUSTER_I32,
    MUSTER_I64,
    MUSTER_F16,
    MUSTER_BF16,
    MUSTER_F32,
    MUSTER_F64,
};

enum muster_op {
    MUSTER_SUM,  /* of bool: or */
    MUSTER_AVG,  /* the sum divided by the world size; integers truncate; not of bool */
    MUSTER_PROD, /* of bool: and */
    MUSTER_MIN,
    MUSTER_MAX,
    MUSTER_BAND, /* bit operations: integers and bool only */
    MUSTER_BOR,
    MUSTER_BXOR,
};

/* The number of types and of operations; their values are below these. */
enum { MUSTER_NUM_TYPES = MUSTER_F64 + 1, MUSTER_NUM_OPS = MUSTER_BXOR + 1 };

enum { MUSTER_ANY_SOURCE = -1, MUSTER_ANY_TAG = -1 };

/* The largest size of a communicator. */
enum { MUSTER_MAX_RANKS = 256 };

/* The size of an element: 1, 2, 4 or 8; 0 for a value that is not a type. */
MUSTER_API size_t muster_type_bytes(enum muster_type type);
MUSTER_API const char *muster_type_name(enum muster_type type);
MUSTER_API const char *muster_op_name(enum muster_op op);

/* ---- making and ending communicators ---- */

/* A key/value store that all ranks share, for instance torch's. Called only while a communicator is
 * made, on the calling thread. get waits for the key until timeout_ms has passed
 * (MUSTER_ETIMEDOUT); it writes at most capacity bytes and *ret_size. Each callback returns 0 or a
 * negative code. Keys are not removed: use a pair of name and generation only once in a store,
 * because a second use would find the members of the first. */
struct muster_store {
    size_t struct_size; /* set by MUSTER_STORE_INIT */
    void *context;
    int (*set)(void *context, const char *key, const void *value, size_t size_bytes);
    int (*get)(void *context, const char *key, void *value, size_t capacity_bytes, size_t *ret_size,
               int64_t timeout_ms);
};
/* clang-format off */
#define MUSTER_STORE_INIT {sizeof(struct muster_store), NULL, NULL, NULL}
/* clang-format on */

enum { MUSTER_HEARTBEAT_TIMEOUT_MS = 900 }; /* the default of heartbeat_timeout_ms */

/* Start from MUSTER_COMM_OPTIONS_INIT. Options that are set here override the environment. */
struct muster_comm_options {
    size_t struct_size; /* set by MUSTER_COMM_OPTIONS_INIT */
    int rank;
    int size;           /* at most MUSTER_MAX_RANKS */
    int64_t timeout_ms; /* limit of each wait for a live peer; default 30 minutes, as in torch. 0 or
                           less: never waits; at most 10^12 */
    /* A rank that sends no heartbeat for this time is evicted, and ON THE SAME HOST ITS PROCESS IS
     * KILLED (SIGKILL): it shares memory with the others, and would write into it if it went on
     * later. SIGSTOP (Ctrl-Z), a frozen control group or a suspended virtual machine is enough. A
     * rank to which a debugger is attached counts as alive (see "Debuggers" above). 0: no rank is
     * evicted for silence, however long it lasts. */
    int64_t heartbeat_timeout_ms;
    const char *host; /* rank 0 listens there and the others connect … */
    int port;
    const struct muster_store *store; /* … or, when not NULL, they meet here instead */
    const char *name; /* distinguishes groups that meet in one store or port; NULL: "world". A store
                         sees its first 64 bytes */
    const char *transport; /* "auto", "shm", "tcp", "group:NAME"; NULL: as MUSTER_TRANSPORT says,
                              "auto" without it. A split inherits it */
    uint64_t generation;   /* any number; equal on all ranks */
    /* Polled by the thread of a blocking call while it waits, at least 10 times a second; but not
     * while a new communicator connects to a host that does not answer (up to a minute). A result
     * other than 0 ends the wait with MUSTER_EINTERRUPTED. Calls go on waiting after a signal: let
     * the handler set a flag that this function reads; it must never leave a call by longjmp. */
    int (*interrupted)(void *context);
    void *interrupted_context;
    int64_t notice_ms; /* after this time a line on stderr says for which rank a call waits. 0
                          (default): MUSTER_NOTICE_MS decides, without it nothing is printed; < 0:
                          nothing is printed. If it is set, muster_comm_free may also print a line
                          (Order, above). The library prints nothing else */
};
/* clang-format off */
#define MUSTER_COMM_OPTIONS_INIT                                                                   \
    {sizeof(struct muster_comm_options), 0, 1, 30 * 60 * 1000, MUSTER_HEARTBEAT_TIMEOUT_MS,        \
     NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0}
/* clang-format on */

/* Collective over `size` processes. Waits until all have come, at most timeout_ms. MUSTER_EUNAVAIL:
 * rank 0's port is taken, or a host could not be connected to for a minute. */
MUSTER_API int muster_comm_create(const struct muster_comm_options *options,
                                  struct muster_comm **ret, struct muster_err *err);

/* As muster_comm_create, from RANK, WORLD_SIZE, MASTER_ADDR (127.0.0.1) and MASTER_PORT (29500);
 * under mpirun from OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE, and then the name is
 * PMIX_NAMESPACE or PMI_JOBID. Without any of these variables it makes a communicator of one rank.
 * MUSTER_ECONFIG: a value is not a number. */
MUSTER_API int muster_comm_from_env(struct muster_comm **ret, struct muster_err *err);

/* Collective: ranks with the same colour form a communicator, ordered by (key, old rank). A
 * negative colour takes no part and gets *ret = NULL. The new communicator has comm's options. */
MUSTER_API int muster_comm_split(struct muster_comm *comm, int color, int key,
                                 struct muster_comm **ret, struct muster_err *err);

/* Ends the communicator and its memory. NULL is fine. It is not collective: all that this rank has
 * sent still arrives, even if it has left messages unread. A peer that waits for more from it gets
 * MUSTER_EABORTED and sees it as MUSTER_PEER_CLOSED. Waits until the hosts of its peers have
 * received its goodbye: one round trip, or, on a network that loses packets, at most
 * heartbeat_timeout_ms + 100 ms. */
MUSTER_API void muster_comm_free(struct muster_comm *comm);

MUSTER_API int muster_comm_rank(const struct muster_comm *comm);
MUSTER_API int muster_comm_size(const struct muster_comm *comm);
MUSTER_API uint64_t muster_comm_generation(const struct muster_comm *comm);
MUSTER_API void muster_comm_set_timeout(struct muster_comm *comm, int64_t timeout_ms);

/* One line on how this communicator moves data ("4 ranks, 4 on this host, shared memory, avx2"),
 * for logs. */
MUSTER_API const char *muster_comm_describe(const struct muster_comm *comm);

/* Memory that collectives use directly, without copies. Collective, the same size everywhere (or
 * MUSTER_EMISMATCH); on success *ret is zeroed, 64-byte aligned and lives until muster_comm_free or
 * muster_comm_release. At most 1024 may exist at a time. Unlike ordinary memory, it is shared with
 * a process that is forked later. */
MUSTER_API int muster_comm_alloc(struct muster_comm *comm, size_t size_bytes, void **ret,
                                 struct muster_err *err);
/* Collective: all ranks release in the same order, which may be any order. On a communicator that
 * has closed, each rank releases alone, and the call succeeds. */
MUSTER_API int muster_comm_release(struct muster_comm *comm, void *memory, struct muster_err *err);

/* ---- collectives: block until done ---- */

/* in, out: count elements on every rank. In place: in == out. */
MUSTER_API int muster_all_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                                 enum muster_type type, enum muster_op op, struct muster_err *err);
/* As all-reduce, out is written on root only. In place on root: in == out. */
MUSTER_API int muster_reduce(struct muster_comm *comm, const void *in, void *out, size_t count,
                             enum muster_type type, enum muster_op op, int root,
                             struct muster_err *err);
/* in: size * count elements; rank r gets the r-th count of the sum. In place: out == in + rank *
 * count. */
MUSTER_API int muster_reduce_scatter(struct muster_comm *comm, const void *in, void *out,
                                     size_t count, enum muster_type type, enum muster_op op,
                                     struct muster_err *err);
/* in: count elements, out: size * count. In place: in == out + rank * count. */
MUSTER_API int muster_all_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                                 enum muster_type type, struct muster_err *err);
/* Rank r brings counts[r] elements (counts is the same on all ranks); out holds them in rank order.
 */
MUSTER_API int muster_all_gatherv(struct muster_comm *comm, const void *in, void *out,
                                  const size_t *counts, enum muster_type type,
                                  struct muster_err *err);
/* buffer: input on root, output elsewhere. */
MUSTER_API int muster_broadcast(struct muster_comm *comm, void *buffer, size_t count,
                                enum muster_type type, int root, struct muster_err *err);
/* out: size * count on root, unused elsewhere. */
MUSTER_API int muster_gather(struct muster_comm *comm, const void *in, void *out, size_t count,
                             enum muster_type type, int root, struct muster_err *err);
/* in: size * count on root, unused elsewhere. */
MUSTER_API int muster_scatter(struct muster_comm *comm, const void *in, void *out, size_t count,
                              enum muster_type type, int root, struct muster_err *err);
/* in, out: size * count; the r-th count of in goes to rank r. Not in place. */
MUSTER_API int muster_all_to_all(struct muster_comm *comm, const void *in, void *out, size_t count,
                                 enum muster_type type, struct muster_err *err);
/* in_counts[r] elements go to rank r, out_counts[r] come from it, packed in rank order.
 * in_counts[r] here must equal out_counts[here] at r. Not in place. */
MUSTER_API int muster_all_to_allv(struct muster_comm *comm, const void *in, const size_t *in_counts,
                                  void *out, const size_t *out_counts, enum muster_type type,
                                  struct muster_err *err);
/* Success means that every rank entered this barrier. */
MUSTER_API int muster_barrier(struct muster_comm *comm, struct muster_err *err);

/* Sums `total_parts` logical parts over one fixed binary tree, so that the bits do not depend on
 * which rank holds which part, nor on the world size. This rank brings parts first_part …
 * first_part + num_parts - 1, each of count elements, one after the other in `parts`; the ranks'
 * ranges are disjoint, ascend with the rank and cover all parts. op: MUSTER_SUM, or MUSTER_AVG over
 * total_parts. */
MUSTER_API int muster_all_reduce_parts(struct muster_comm *comm, const void *parts,
                                       size_t first_part, size_t num_parts, size_t total_parts,
                                       void *out, size_t count, enum muster_type type,
                                       enum muster_op op, struct muster_err *err);

/* ---- messages ---- */

/* tag >= 0. Between two ranks messages with equal tags keep their order. A send returns when the
 * buffer may be used again, which may be before the receive is posted. Messages that come before
 * their receive are kept in memory, up to 256 MiB for a communicator. A message beyond this limit
 * blocks all later messages of its sender until its receive is posted. */
MUSTER_API int muster_send(struct muster_comm *comm, const void *in, size_t count,
                           enum muster_type type, int to, int tag, struct muster_err *err);

struct muster_message {
    size_t struct_size; /* set by MUSTER_MESSAGE_INIT */
    int source;
    int tag;
    size_t size_bytes;
};
/* clang-format off */
#define MUSTER_MESSAGE_INIT {sizeof(struct muster_message), -1, -1, 0}
/* clang-format on */

/* A message longer than count is MUSTER_ETOOBIG: it is discarded, the next receive gets the message
 * after it, and the communicator stays usable. A shorter message is fine. ret (may be NULL) tells
 * who sent it. */
MUSTER_API int muster_recv(struct muster_comm *comm, void *out, size_t count, enum muster_type type,
                           int from, int tag, struct muster_message *ret, struct muster_err *err);

/* ---- non-blocking ---- */

enum muster_collective {
    MUSTER_ALL_REDUCE,
    MUSTER_REDUCE,
    MUSTER_REDUCE_SCATTER,
    MUSTER_ALL_GATHER, /* with out_counts: all-gatherv */
    MUSTER_BROADCAST,  /* in is ignored */
    MUSTER_GATHER,
    MUSTER_SCATTER,
    MUSTER_ALL_TO_ALL, /* with in_counts and out_counts: all-to-allv */
    MUSTER_BARRIER,
    MUSTER_SEND, /* peer = to */
    MUSTER_RECV, /* peer = from */
};

/* Any of the calls above as data; fields that a call does not use are ignored. The arrays must
 * stay valid until the call ends. */
struct muster_call {
    size_t struct_size; /* set by MUSTER_CALL_INIT */
    enum muster_collective kind;
    enum muster_type type;
    enum muster_op op;
    int peer; /* root, to or from */
    int tag;
    const void *in;
    void *out;
    size_t count;
    const size_t *in_counts;
    const size_t *out_counts;
};
/* A barrier, until other fields are set. */
/* clang-format off */
#define MUSTER_CALL_INIT                                                                           \
    {sizeof(struct muster_call), MUSTER_BARRIER, MUSTER_U8, MUSTER_SUM, 0, 0, NULL, NULL, 0, NULL, \
     NULL}
/* clang-format on */

/* Runs a call to its end, like the function of the same name. */
MUSTER_API int muster_run(struct muster_comm *comm, const struct muster_call *call,
                          struct muster_err *err);

/* Starts a call; at most MUSTER_MAX_IN_FLIGHT collectives and MUSTER_MAX_MESSAGES messages of a
 * communicator may be under way (MUSTER_EAGAIN).
 * Small all-gathers (up to 4 KiB a rank) overtake large calls; other collectives run in order, and
 * messages run beside them. A small send for which there is room has ended when this returns. Such
 * sends may share one request; free it once for each send, like any other request. */
enum { MUSTER_MAX_IN_FLIGHT = 1024, MUSTER_MAX_MESSAGES = 16384 };
MUSTER_API int muster_start(struct muster_comm *comm, const struct muster_call *call,
                            struct muster_request **ret, struct muster_err *err);

/* 1 when the call has succeeded, 0 when it is under way, negative when it failed. */
MUSTER_API int muster_request_test(struct muster_request *request, struct muster_err *err);
/* 0 when the call has succeeded, MUSTER_ETIMEDOUT when it is still under way after timeout_ms (it
 * goes on), otherwise its error. timeout_ms < 0: without a limit of its own (the communicator's
 * timeout applies). */
MUSTER_API int muster_request_wait(struct muster_request *request, int64_t timeout_ms,
                                   struct muster_err *err);
/* Of a finished receive. */
MUSTER_API int muster_request_message(const struct muster_request *request,
                                      struct muster_message *ret, struct muster_err *err);
/* Sets a function that is called once when the call has ended, on the thread of this process that
 * ends it (at once, on the calling thread, if it has already ended). It must not block or call into
 * the communicator. A second notify replaces the first. */
MUSTER_API void muster_request_notify(struct muster_request *request,
                                      void (*done)(void *context, int code), void *context);
/* NULL is fine. A call under way goes on, and its buffers must stay valid until it ends. Every
 * request must be freed, before its communicator or after it. */
MUSTER_API void muster_request_free(struct muster_request *request);

/* ---- failure ---- */

/* Closes the communicator on this rank, from any thread. After it has returned, no call on it can
 * succeed and no peer changes this process's memory. Calls under way end with MUSTER_EABORTED, and
 * peers that wait for this rank learn of it within milliseconds. It waits for peers that are about
 * to write into this rank's memory of muster_comm_alloc, at most until they count as silent. It may
 * be called again. `interrupted` may call it: then it does not wait for the call that polls
 * `interrupted`, which ends with MUSTER_EABORTED as soon as `interrupted` has returned. A signal
 * handler must not call it (it takes locks, and waits): let it set a flag that `interrupted` reads.
 */
MUSTER_API void muster_comm_abort(struct muster_comm *comm);

enum muster_peer_state {
    MUSTER_PEER_ALIVE,
    MUSTER_PEER_DEAD,      /* proven: the kernel said so */
    MUSTER_PEER_SUSPECTED, /* silent past heartbeat_timeout_ms, or its link is lost */
    MUSTER_PEER_CLOSED,    /* it freed or aborted this communicator */
};

struct muster_comm_state {
    size_t struct_size; /* set by MUSTER_COMM_STATE_INIT */
    uint64_t generation;
    uint64_t started;    /* collectives that this rank has started, also those that alloc, release,
                            split and all_reduce_parts consist of … */
    uint64_t completed;  /* … and the one that completed here last (they are numbered from 1); a
                            small all-gather may before calls that were started earlier */
    int closed;          /* 0, or the negative code that closed it */
    int input_untouched; /* of the calls that failed: none was in place and had begun, so that every
                            input is as the caller gave it */
};
/* clang-format off */
#define MUSTER_COMM_STATE_INIT {sizeof(struct muster_comm_state), 0, 0, 0, 0, 0}
/* clang-format on */

/* May be called at any time, from any thread, also while another thread computes or waits. ret and
 * ret_peers may be NULL; ret_peers has room for comm's size. In a forked child the communicator is
 * reported as closed by MUSTER_EINVAL. */
MUSTER_API int muster_comm_query(const struct muster_comm *comm, struct muster_comm_state *ret,
                                 enum muster_peer_state *ret_peers, struct muster_err *err);
MUSTER_API const char *muster_peer_state_name(enum muster_peer_state state);

/* ---- elastic: communicators from an explicit list ---- */

/* The address of one incarnation of a process: opaque, of fixed size; it may be sent anywhere. */
enum { MUSTER_MEMBER_BYTES = 128 };
struct muster_member {
    unsigned char bytes[MUSTER_MEMBER_BYTES];
};

/* Opens the sockets by which this process can become a member: three descriptors. Other processes
 * may connect at once; they get no answer until muster_comm_form. Connections for other
 * communicators wait, at most 512; beyond that the oldest is closed. host: the address by which
 * other hosts reach this process; NULL: the first address of an interface that is up, IPv4 before
 * IPv6, which may be the wrong one if there are several. MUSTER_TRANSPORT decides here with which
 * processes memory is shared. In a forked child the endpoint is closed, so that nobody takes the
 * child for its parent. */
MUSTER_API int muster_endpoint_open(const char *host, struct muster_endpoint **ret,
                                    struct muster_err *err);
MUSTER_API void muster_endpoint_member(const struct muster_endpoint *endpoint,
                                       struct muster_member *ret);
/* May be called from any thread. A muster_comm_form of this generation or a lower one ends with
 * MUSTER_EABORTED, within 0.1 s if it is under way, at once if it begins later. A form of a higher
 * generation is not affected, so it is safe if a newer list comes during this call. */
MUSTER_API void muster_endpoint_cancel(struct muster_endpoint *endpoint, uint64_t generation);
/* NULL is fine. The communicators that were formed with it stay. */
MUSTER_API void muster_endpoint_close(struct muster_endpoint *endpoint);

/* Forms a communicator of exactly these members, in this order. All of them must call it with the
 * same list and generation; calls of other communicators may come between. No store is needed. Only
 * one thread at a time may use an endpoint. timeout_ms limits the wait for the members,
 * options->timeout_ms later waits. Of the options only timeout_ms, heartbeat_timeout_ms,
 * interrupted, notice_ms and the transport "shm" are used; NULL: defaults. MUSTER_EDATA: the bytes
 * are not a member; MUSTER_EINVAL: a member is there twice, or this endpoint is missing;
 * MUSTER_EUNAVAIL: err->rank is gone (its process has ended or closed its endpoint; this is known
 * within milliseconds, also during the wait for others), or it gave up, or its host cannot be
 * connected to; MUSTER_EOS: for example, no descriptor is left here; MUSTER_ETIMEDOUT: err->rank
 * did not come; MUSTER_EPEERDEAD, MUSTER_EABORTED: it came, but then died or gave up, or (err->rank
 * is -1) muster_endpoint_cancel was called. */
MUSTER_API int muster_comm_form(struct muster_endpoint *endpoint,
                                const struct muster_member *members, int size, int my_index,
                                uint64_t generation, int64_t timeout_ms,
                                const struct muster_comm_options *options, struct muster_comm **ret,
                                struct muster_err *err);

/* ---- elastic: state that processes outside may read ---- */

struct muster_region;

/* Lets other processes read this memory. It stays the caller's and must outlive the region. A
 * thread of the region answers up to 256 readers at a time, also while the user's threads compute.
 * When more come, readers that were idle for two seconds are disconnected. A region costs this
 * thread and four descriptors, and one or two more for each reader. Nothing can be read before
 * muster_region_set. host: as for muster_endpoint_open. */
MUSTER_API int muster_region_open(const char *host, const void *memory, size_t size_bytes,
                                  struct muster_region **ret, struct muster_err *err);
/* Tells which generation and version the memory holds from now on. */
MUSTER_API void muster_region_set(struct muster_region *region, uint64_t generation,
                                  uint64_t version);
/* Must be called before the memory is written: reads under way become invalid, even if the next
 * muster_region_set names the same generation and version. */
MUSTER_API void muster_region_hide(struct muster_region *region);
MUSTER_API void muster_region_member(const struct muster_region *region, struct muster_member *ret);
/* NULL is fine. In a forked child it does nothing. */
MUSTER_API void muster_region_close(struct muster_region *region);

/* Reads size_bytes in pieces, from all owners (1 to 256) in turn; each piece has a checksum.
 * Succeeds only if every owner held this generation and version from beginning to end, otherwise
 * MUSTER_ECONFLICT. MUSTER_EPEERDEAD: the owner err->rank is dead, cannot be reached, or has the
 * largest number of readers already; MUSTER_EMISMATCH: it has fewer bytes; MUSTER_EDATA: the bytes
 * are not a member; MUSTER_EOS: no descriptor is left here; MUSTER_ETIMEDOUT. After an error the
 * contents of `to` are undefined. */
MUSTER_API int muster_region_read(const struct muster_member *owners, int num_owners,
                                  uint64_t generation, uint64_t version, void *to,
                                  size_t size_bytes, int64_t timeout_ms, struct muster_err *err);

#ifdef __cplusplus
}
#endif
