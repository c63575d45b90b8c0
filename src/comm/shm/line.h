/* Operations on cache lines that one core writes and another reads. Layer: comm. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/shm/segment.h"

/* Called between two looks at a line that another core will write. */
static inline void line_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Makes this core the owner of the lines of a slot that it has just read, by writing back a word of
 * each. The writer of the slot then overwrites it at full speed, while taking back a shared line
 * costs 8 ns (measured, AMD Zen; not used for Intel: schedule/tuning.h). The caller must be the
 * slot's only reader. */
enum { LINE_CLAIM_FROM_BYTES = 512 }; /* below this size it does not pay */
static inline void line_claim(void *start, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SEGMENT_LINE) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)((char *)start + at);
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

/* Sends what this core has just written to the cache that all cores share, where the reader can
 * fetch it sooner. For a writer that has nothing else to do, because a line takes 10 ns (measured,
 * Intel: 512 B 0.75 and 0.63 us). Does nothing on a processor without such an instruction. */
static inline void line_demote(const void *start, size_t bytes)
{
#if defined(__x86_64__)
    for (size_t at = 0; at < bytes; at += SEGMENT_LINE) {
        __asm__ volatile("cldemote %0" : : "m"(((const char *)start)[at]));
    }
#else
    (void)start;
    (void)bytes;
#endif
}

/* Begins to take a line for writing from the core that has it, so that a write some hundred
 * nanoseconds later need not wait. An atomic instruction in between would wait for the write, and
 * calls contain some. */
static inline void line_fetch(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Copies out of a slot, and claims its lines if `claims` is set. */
static inline void line_take(void *to, void *from, size_t bytes, bool claims)
{
    if (!claims) {
        __builtin_memcpy(to, from, bytes);
        return;
    }
    size_t whole = bytes / SEGMENT_LINE * SEGMENT_LINE;
    for (size_t at = 0; at < whole; at += SEGMENT_LINE) {
        char *line = (char *)from + at;
        __builtin_memcpy((char *)to + at, line, SEGMENT_LINE);
        line_claim(line, 1);
    }
    __builtin_memcpy((char *)to + whole, (char *)from + whole, bytes - whole);
    line_claim((char *)from + whole, bytes - whole);
}
