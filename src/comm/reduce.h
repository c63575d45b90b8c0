/* Folding contributions: out[i] = src[0][i] op src[1][i] op … in that order, then the division of
 * an average.
 *
 * Layer: comm, libc only. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stddef.h>

#include <muster/comm.h>

enum { REDUCE_MAX_SOURCES = 256 };

/* out may be one of the sources (exactly), and n >= 1. divisor > 1 divides (floats truly, integers
 * truncate). bf16 and f16 are folded in f32 and rounded once. */
typedef void (*reduce_fn)(void *out, const void *const *sources, int n, size_t count, int divisor);

/* The fastest kernel that this processor has; NULL if the type has no such operation. */
reduce_fn reduce_find(enum muster_type type, enum muster_op op);

/* out[i] = twin[i] = left[i] op right[i], in one pass, without the division of an average. Each
 * output may be one of the sources (exactly). */
typedef void (*reduce_twin_fn)(void *out, void *twin, const void *left, const void *right,
                               size_t count);
reduce_twin_fn reduce_find_twin(enum muster_type type, enum muster_op op);

/* "avx512", "avx2" or "plain": what reduce_find chooses from. */
const char *reduce_level(void);

/* Folds into each of `outs`, which may be sources (exactly), tile by tile, so that the copies are
 * made while the tile is in the first cache. */
void reduce_into(reduce_fn fn, void *const *outs, int num_outs, const void *const *sources, int n,
                 size_t count, size_t unit, int divisor);

/* Tables of kernels per instruction set (reduce_plain.c, reduce_avx2.c, reduce_avx512.c). */
reduce_fn reduce_plain(enum muster_type type, enum muster_op op);
reduce_fn reduce_avx2(enum muster_type type, enum muster_op op);
reduce_fn reduce_avx512(enum muster_type type, enum muster_op op);
reduce_twin_fn reduce_twins_plain(enum muster_type type, enum muster_op op);
reduce_twin_fn reduce_twins_avx2(enum muster_type type, enum muster_op op);
reduce_twin_fn reduce_twins_avx512(enum muster_type type, enum muster_op op);
