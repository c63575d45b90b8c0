/* A fast digest of memory, to find parameters that diverge.
 *
 * Four independent multiply-and-rotate lanes over 32-byte blocks: the bandwidth of one core, and
 * any single flipped bit changes the result. Not against an adversary.
 *
 * Layer: Python glue, pure.
 */
#include "native.h"

#include <string.h>

static uint64_t mix(uint64_t lane, uint64_t word)
{
    uint64_t product = (lane ^ word) * 0x9E3779B97F4A7C15u;
    return (product << 29) | (product >> 35);
}

static uint64_t finish(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

uint64_t native_digest(const unsigned char *bytes, size_t size_bytes, uint64_t seed)
{
    uint64_t lanes[4] = {seed, ~seed, seed + 1, size_bytes};
    size_t at = 0;
    for (; at + sizeof lanes <= size_bytes; at += sizeof lanes) {
        uint64_t words[4];
        memcpy(words, bytes + at, sizeof words);
        for (int i = 0; i < 4; i++) {
            lanes[i] = mix(lanes[i], words[i]);
        }
    }
    for (; at < size_bytes; at++) {
        lanes[0] = mix(lanes[0], bytes[at]);
    }
    uint64_t sum = seed;
    for (int i = 0; i < 4; i++) {
        sum = finish(sum ^ lanes[i]) + 0x9E3779B97F4A7C15u;
    }
    return sum;
}
