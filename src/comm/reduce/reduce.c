/* Chooses the kernels of a reduction, and reduces into several places. Layer: comm; see reduce.h.
 */
#include "comm/reduce/reduce.h"

#include <stdatomic.h>
#include <string.h>

enum { TILE_BYTES = 2048 };

enum instruction_set { PLAIN, AVX2, AVX512 };

static enum instruction_set detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return AVX512;
    }
    if (__builtin_cpu_supports("avx2")) {
        return AVX2;
    }
#endif
    return PLAIN;
}

static enum instruction_set find_instruction_set(void)
{
    static _Atomic int known = -1;
    int set = atomic_load_explicit(&known, memory_order_relaxed);
    if (set < 0) {
        set = (int)detect();
        atomic_store_explicit(&known, set, memory_order_relaxed);
    }
    return (enum instruction_set)set;
}

const char *reduce_instruction_set(void)
{
    static const char *const names[] = {[PLAIN] = "plain", [AVX2] = "avx2", [AVX512] = "avx512"};
    return names[find_instruction_set()];
}

struct reduce_kernels reduce_find_kernels(enum muster_type type, enum muster_op op)
{
#if defined(__x86_64__)
    switch (find_instruction_set()) {
    case AVX512: return reduce_avx512(type, op);
    case AVX2: return reduce_avx2(type, op);
    case PLAIN: break;
    }
#endif
    return reduce_plain(type, op);
}

void reduce_into(reduce_fn fn, void *const *outs, int num_outs, const void *const *sources, int n,
                 size_t count, size_t unit, int divisor)
{
    size_t step = num_outs > 1 ? TILE_BYTES / unit : count;
    const void *at[MUSTER_MAX_RANKS];
    for (size_t start = 0; start < count; start += step) {
        size_t length = count - start < step ? count - start : step;
        for (int s = 0; s < n; s++) {
            at[s] = (const char *)sources[s] + start * unit;
        }
        char *first = (char *)outs[0] + start * unit;
        fn(first, at, n, length, divisor);
        for (int o = 1; o < num_outs; o++) {
            memcpy((char *)outs[o] + start * unit, first, length * unit);
        }
    }
}
