/* The flight record of a communicator: what each of its ranks on this host has called last, in
 * memory that others read. The other ranks do for their error messages, and the supervisor of a job
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

/* A collective. ended == number: it is over, well or not. */
struct flight_call {
    _Atomic uint64_t
        number; /* from 1, the barrier that ends forming; 0 while the others are written */
    _Atomic uint64_t
        shape; /* kind | type << 8 | operation << 16 | (root or digest of counts) << 32 */
    _Atomic uint64_t count; /* of elements */
    _Atomic uint64_t ended;
};

/* A send or receive that waits for the other rank; those that need not wait are not recorded. */
struct flight_message {
    _Atomic uint64_t number;   /* from 1, of those that waited; 0: none */
    _Atomic int32_t peer;      /* -1: any */
    _Atomic int32_t tag;       /* -1: any */
    _Atomic uint32_t receives; /* 0: it sends */
    uint32_t reserved;
};

struct flight {
    alignas(64) _Atomic uint64_t magic; /* 0 until the rest is there */
    uint64_t group;                     /* which communicator: equal on all its ranks */
    int32_t rank;
    int32_t size;
    int32_t local_size;      /* pages */
    int32_t pid;             /* as the process knows itself */
    _Atomic uint32_t closed; /* nothing is called any more */
    _Atomic uint32_t waited; /* messages so far */
    alignas(64) struct flight_call calls[FLIGHT_CALLS];
    struct flight_message messages[FLIGHT_MESSAGES]; /* in no order */
};

/* 1: the record of that call was read. */
int flight_read(const struct flight *flight, uint64_t number, uint64_t *ret_shape,
                uint64_t *ret_count);
/* The number of the newest call that was entered; 0: none. */
uint64_t flight_newest(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count);
/* The same of the oldest that is not over; 0: none is under way. */
uint64_t flight_pending(const struct flight *flight, uint64_t *ret_shape, uint64_t *ret_count);
/* The number of the message that has waited longest, and the rank that it waits for; 0: none waits.
 */
uint64_t flight_waiting(const struct flight *flight, bool *ret_receives, int32_t *ret_peer,
                        int32_t *ret_tag);
bool flight_has_ended(const struct flight *flight, uint64_t number);

/* "all_reduce of 4 f32 by sum" */
void flight_name(uint64_t shape, uint64_t count, char *ret, size_t size_bytes);

/* ---- Names (NULL: there is no such) ---- */

const char *flight_kind_name(enum muster_collective kind);
const char *flight_type_name(enum muster_type type);
const char *flight_op_name(enum muster_op op);
/* It has an operation; a root. */
bool flight_reduces(enum muster_collective kind);
bool flight_has_root(enum muster_collective kind);
