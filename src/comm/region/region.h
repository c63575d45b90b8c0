/* What an owner and a reader of a region say to each other. Layer: comm. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "comm/endpoint/endpoint.h"

enum {
    REGION_MAGIC = 0x6d726567,
    REGION_PIECE_BYTES = 1 << 20,
    REGION_STALL_MS = 2000, /* a reader that was idle for so long gives way to others */
};

/* In the hello: no communicator has this digest. */
#define REGION_DIGEST UINT64_C(0x7265676966f6e2e2)

struct region_ask {
    uint32_t magic;
    uint32_t zero;
    uint64_t offset;
    uint64_t bytes; /* 0: only the stamp */
};

struct region_answer {
    uint32_t magic;
    uint32_t zero;
    uint64_t shown; /* how often by now; 0: it is hidden */
    uint64_t generation;
    uint64_t version;
    uint64_t bytes; /* that follow */
    uint64_t checksum;
};

/* Not against malice: against memory that changed under way, and lost bytes. */
uint64_t region_checksum(const char *data, size_t bytes);
