/* One connection to an owner of a region: asks for a piece, and takes the answer.
 *
 * Layer: comm. Memory: the caller's. Thread: one at a time for each source; struct region_reading
 * is shared by all threads of a read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "comm/region/region.h"

enum { REGION_SLICE_MS = 50 }; /* a thread that waits checks this often whether it must stop */

/* What all threads of a read share. */
struct region_reading {
    struct region_source *sources;
    int num_sources;
    uint64_t generation;
    uint64_t version;
    struct region_layout to;
    bool exact; /* the owners must not have more than what is read */
    int64_t deadline_ns;
    int (*interrupted)(void *context);
    void *context;
    atomic_size_t next; /* the first byte that nobody has asked for yet */
    atomic_int failed;  /* 1 + the number of the thread that failed first; 0: none has */
};

struct region_source {
    int fd;
    int owner;     /* its index in the caller's array */
    size_t offset; /* of the piece that was asked for */
    size_t bytes;
    bool asked;
    bool in_place;  /* asks where its pieces are, instead of the bytes */
    uint64_t shown; /* the owner's count when it first answered; 0: it has not */
};

/* One thread of a read. */
struct region_thread {
    struct region_reading *reading;
    bool is_caller; /* whether it may call `interrupted` */
    char *copy;     /* for bytes of several pieces; NULL: not needed so far */
};

/* Whether the thread must stop: another one has failed, or the user interrupts the read. */
bool region_must_stop(const struct region_thread *thread);

int region_interrupted(struct muster_err *err); /* returns MUSTER_EINTERRUPTED */

/* Asks the owner for these bytes; if there are none: only for its stamp. */
int region_source_ask(struct region_source *source, size_t offset, size_t bytes,
                      struct muster_err *err);

/* Waits for the answer, checks it, and puts the bytes in their place. */
int region_source_take(struct region_thread *thread, struct region_source *source,
                       struct muster_err *err);

/* Returns MUSTER_EPEERDEAD, with the owner's index in err->rank. */
int region_source_lost(int owner, struct muster_err *err);
