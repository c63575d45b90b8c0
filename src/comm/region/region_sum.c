/* The checksum of a region's pieces, and of a checkpoint's blocks. Layer: comm; pure. See region.h.
 */
#include "comm/region/region.h"

#include <assert.h>
#include <string.h>

/* Every step can be undone, so a bit that differs always changes the result. */
static uint64_t mix(uint64_t lane, const char *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ lane >> 32;
}

struct region_sum region_sum_start(void)
{
    return (struct region_sum){.lanes = {1, 2, 3, 4}};
}

/* Prefetches the cache line AHEAD_BYTES after this one. Processors prefetch by themselves, but not
 * beyond the end of a page: without this, the sum of memory that is in no cache takes 1.6 times as
 * long. An address that does not exist is ignored. */
static void fetch_ahead(const char *data)
{
    enum { AHEAD_BYTES = 4096 };
    __builtin_prefetch((const void *)((uintptr_t)data + AHEAD_BYTES));
}

/* The sum has four lanes that do not wait for each other. They are four variables and not an array,
 * because GCC would make vectors of an array, whose multiplication is half as fast. */
void region_sum_add(struct region_sum *sum, const char *data, size_t bytes)
{
    enum { WORD = sizeof(uint64_t) };
    assert(sum->bytes % REGION_SUM_BLOCK_BYTES == 0 && "only the last part may be odd");
    uint64_t a = sum->lanes[0], b = sum->lanes[1], c = sum->lanes[2], d = sum->lanes[3];
    size_t at = 0;
    for (; at + REGION_SUM_BLOCK_BYTES <= bytes; at += REGION_SUM_BLOCK_BYTES) {
        fetch_ahead(data + at);
        a = mix(a, data + at);
        b = mix(b, data + at + WORD);
        c = mix(c, data + at + 2 * WORD);
        d = mix(d, data + at + 3 * WORD);
    }
    for (; at < bytes; at++) {
        a = (a ^ (unsigned char)data[at]) * 0x100000001b3u;
    }
    *sum = (struct region_sum){{a, b, c, d}, sum->bytes + bytes};
}

uint64_t region_sum_end(const struct region_sum *sum)
{
    const uint64_t *lanes = sum->lanes;
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7 ^ sum->bytes;
}

uint64_t region_checksum(const char *data, size_t bytes)
{
    struct region_sum sum = region_sum_start();
    region_sum_add(&sum, data, bytes);
    return region_sum_end(&sum);
}
