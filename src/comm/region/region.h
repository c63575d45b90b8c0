/* Regions in pieces, and the messages between an owner and a reader of a region.
 *
 * A region is one memory, or several pieces one after the other; a reader may have other pieces of
 * the same size altogether. Layer: comm. Thread: as for muster_region_open and muster_region_read.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "comm/endpoint/endpoint.h"

#include <muster/elastic.h>

enum {
    REGION_MAGIC = 0x6d726567,
    REGION_PIECE_BYTES = 1 << 20,
    REGION_STALL_MS = 2000, /* a reader that was idle for this long gives way to others */
};

/* The digest in the hello of a region's reader: no communicator has this digest. */
#define REGION_DIGEST UINT64_C(0x7265676966f6e2e2)

struct region_ask {
    uint32_t magic;
    uint32_t in_place; /* 1: the answer may say where the bytes are, instead of containing them */
    uint64_t offset;
    uint64_t bytes; /* 0: only the stamp is asked for */
};

struct region_answer {
    uint32_t magic;
    uint32_t in_place; /* 1: a region_place follows, not the bytes */
    uint64_t shown;    /* how often the region was shown so far; 0: it is hidden */
    uint64_t generation;
    uint64_t version;
    uint64_t bytes; /* bytes that follow */
    uint64_t checksum;
    uint64_t all_bytes; /* bytes of the region */
};

/* Sent to a reader that can see the owner's process: the reader copies the bytes itself
 * (process_vm_readv(2)). */
struct region_place {
    int64_t pid;
    uint64_t address;
};

/* Protects against memory that changed during the read, and against lost bytes; not against malice.
 */
uint64_t region_checksum(const char *data, size_t bytes);

/* The same checksum in parts: each part is a multiple of REGION_SUM_BLOCK_BYTES, except the last
 * one. */
enum { REGION_SUM_BLOCK_BYTES = 32 };
struct region_sum {
    uint64_t lanes[4];
    uint64_t bytes;
};

struct region_sum region_sum_start(void);
void region_sum_add(struct region_sum *sum, const char *data, size_t bytes);
uint64_t region_sum_end(const struct region_sum *sum);

/* Replaces the region's memory by these pieces; the old memory is not touched any more. Must be
 * called while the region is hidden. The array is copied. Returns 0 or MUSTER_ENOMEM. */
int region_set_pieces(struct muster_region *region, const struct muster_elastic_piece *pieces,
                      size_t num_pieces, struct muster_err *err);

struct region_read {
    const struct muster_member *owners;
    int num_owners;
    uint64_t generation;
    uint64_t version;
    const struct muster_elastic_piece *pieces;
    size_t num_pieces;
    int64_t timeout_ms;
    int (*interrupted)(void *context); /* NULL, or called while the read waits; if it returns
                                          true: MUSTER_EINTERRUPTED */
    void *context;
};

/* The same as muster_region_read, into pieces. MUSTER_EMISMATCH: an owner has another number of
 * bytes. */
int region_read_pieces(const struct region_read *read, struct muster_err *err);

/* ---- Pieces as one row of bytes ---- */

struct region_layout {
    struct region_span {
        char *memory;
        size_t first; /* its first byte in the row */
        size_t bytes;
    } * spans;
    size_t count;
    size_t bytes;
};

/* Lays out the pieces; pieces without bytes are left out. */
int region_layout_init(struct region_layout *layout, const struct muster_elastic_piece *pieces,
                       size_t num_pieces, struct muster_err *err);
void region_layout_done(struct region_layout *layout);
/* Returns the address of these bytes if they lie in one piece; NULL: they lie in several, or no
 * bytes are asked for. */
char *region_layout_find(const struct region_layout *layout, size_t offset, size_t bytes);
void region_layout_gather(const struct region_layout *layout, size_t offset, size_t bytes,
                          char *to);
void region_layout_scatter(const struct region_layout *layout, size_t offset, size_t bytes,
                           const char *from);
