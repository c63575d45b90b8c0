/* Reducing contributions: out[i] = src[0][i] op src[1][i] op … in that order, then the division of
 * an average.
 *
 * Layer: comm, libc only. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stddef.h>

#include <muster/comm.h>

/* out may be one of the sources (exactly), and n >= 1. If divisor > 1, the result is divided
 * (true division for floats, truncation for integers). bf16 and f16 are reduced in f32 and rounded
 * once. */
typedef void (*reduce_fn)(void *out, const void *const *sources, int n, size_t count, int divisor);

/* out[i] = twin[i] = left[i] op right[i], in one pass, without the division of an average. Each
 * output may be one of the sources (exactly). */
typedef void (*reduce_twin_fn)(void *out, void *twin, const void *left, const void *right,
                               size_t count);

/* out[i] = left[i] op right[i], then slot[i] = next[i], in one pass, without the division of an
 * average. out and slot may be sources (exactly); next may be another source. */
typedef void (*reduce_swap_fn)(void *out, void *slot, const void *left, const void *right,
                               const void *next, size_t count);

/* The kernels of one operation; all NULL when the type has no such operation. */
struct reduce_kernels {
    reduce_fn reduce;
    reduce_twin_fn twin;
    reduce_swap_fn swap;
};

/* Returns the fastest kernels that this processor can run. */
struct reduce_kernels reduce_find_kernels(enum muster_type type, enum muster_op op);
static inline reduce_fn reduce_find(enum muster_type type, enum muster_op op)
{
    return reduce_find_kernels(type, op).reduce;
}

/* Returns the instruction set of these kernels: "avx512", "avx2" or "plain". */
const char *reduce_instruction_set(void);

/* Reduces into each of `outs`, which may be sources (exactly), tile by tile, so that the copies are
 * made while the tile is in the L1 cache. */
void reduce_into(reduce_fn fn, void *const *outs, int num_outs, const void *const *sources, int n,
                 size_t count, size_t unit, int divisor);

/* Tables of kernels per instruction set (reduce_plain.c, reduce_avx2.c, reduce_avx512.c). */
struct reduce_kernels reduce_plain(enum muster_type type, enum muster_op op);
struct reduce_kernels reduce_avx2(enum muster_type type, enum muster_op op);
struct reduce_kernels reduce_avx512(enum muster_type type, enum muster_op op);
