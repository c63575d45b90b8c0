/* FNV-1a of bytes, to tell things apart; it is not a protection against forgery. Layer: core.
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* start: HASH_START, or the hash of the bytes before these. */
static inline uint64_t hash_bytes(uint64_t start, const void *data, size_t size_bytes)
{
    const unsigned char *bytes = data;
    uint64_t hash = start;
    for (size_t i = 0; i < size_bytes; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Hashes the text without its final NUL. */
static inline uint64_t hash_text(uint64_t start, const char *text)
{
    return hash_bytes(start, text, strlen(text));
}
