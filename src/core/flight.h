/* The flight record of a communicator: the last call of each of its ranks on this host, in memory
 * that others read. The other ranks read it for their error messages, and the supervisor of a job
 * for `muster stacks`: it opens the segment (a memfd named FLIGHT_FILE) through /proc/PID/fd.
 *
 * One page for each rank, FLIGHT_PAGE_BYTES apart, with struct flight at FLIGHT_OFFSET. The layout
 * has a version, as its reader may be of another build than its writer.
 *
 * Layer: core; libc only (it goes into libmuster). Memory: the segment's. Thread: the rank writes,
 * anyone reads.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <muster/comm.h>

#define FLIGHT_FILE "muster"

enum {
    FLIGHT_CALLS = 64,
    FLIGHT_MESSAGES = 16,
    FLIGHT_OFFSET = 384,
    FLIGHT_PAGE_BYTES = 4096,
};

static const uint64_t flight_magic = 0x3174686769666d75; /* the last byte is the version */

/* A collective. If ended == number, it has ended, with or without success. */
struct flight_call {
    _Atomic uint64_t number; /* from 1, the barrier that ends forming; 0 while the other fields are
                                being written */
    _Atomic uint64_t
        shape; /* kind | type << 8 | operation << 16 | (root or digest of counts) << 32 */
    _Atomic uint64_t count; /* in elements */
    _Atomic uint64_t ended;
};

/* A send or receive that waits for the other rank. Messages that need not wait are not recorded. */
struct flight_message {
    _Atomic uint64_t number;   /* from 1, counts the messages that waited; 0: this place is free */
    _Atomic int32_t peer;      /* -1: any */
    _Atomic int32_t tag;       /* -1: any */
    _Atomic uint32_t receives; /* 0: it sends */
    uint32_t reserved;
};

struct flight {
    alignas(64) _Atomic uint64_t magic; /* 0 until the other fields are written */
    uint64_t group;                     /* identifies the communicator: equal on all its ranks */
    int32_t rank;
    int32_t size;
    int32_t local_size;      /* number of pages */
    int32_t pid;             /* in the process's own PID namespace */
    _Atomic uint32_t closed; /* the rank makes no more calls */
    _Atomic uint32_t waited; /* messages that have waited so far */
    alignas(64) struct flight_call calls[FLIGHT_CALLS];
    struct flight_message messages[FLIGHT_MESSAGES]; /* in no order */
};

/* Reads the record of this call. Returns 1 if it was read. */
int flight_read(const struct flight *flight, uint64_t number, uint64_t *ret_shape,
                uint64_t *ret_count);
/* Returns the number of the newest call that was entered; 0: none was. */
uint64_t flight_newest(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count);
/* Returns the same of the oldest call that has not ended; 0: none is running. */
uint64_t flight_pending(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count);
/* Returns the number of the message that has waited longest, and the rank that it waits for; 0: no
 * message waits. */
uint64_t flight_waiting(const struct flight *flight, bool *ret_receives, int32_t *ret_peer,
                        int32_t *ret_tag);
bool flight_has_ended(const struct flight *flight, uint64_t number);

/* Writes a text such as "all_reduce of 4 f32 by sum". */
void flight_name(uint64_t shape, uint64_t count, char *ret, size_t size_bytes);

/* ---- Names (NULL: there is no such) ---- */

const char *flight_kind_name(enum muster_collective kind);
const char *flight_type_name(enum muster_type type);
const char *flight_op_name(enum muster_op op);
/* Whether the collective has an operation; a root. */
bool flight_reduces(enum muster_collective kind);
bool flight_has_root(enum muster_collective kind);
