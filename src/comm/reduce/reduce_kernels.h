/* The reduce kernels, written once in plain C and compiled once per instruction set: the including
 * file defines REDUCE_TABLE, the name of the look-up function. The compiler vectorises the loops.
 *
 * Layer: comm. Included by reduce_plain.c, reduce_avx2.c and reduce_avx512.c only.
 */
#include "comm/reduce/reduce.h"

#include <stdint.h>
#include <string.h>

#include "comm/reduce/half.h"

/* An output may be a source: both are then the same element, never a neighbour. */
#if defined(__clang__)
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

enum { TILE = 256 };

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define LEAST(a, b) ((b) < (a) ? (b) : (a))
#define MOST(a, b) ((a) < (b) ? (b) : (a))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))

/* Two sources are the common case and are reduced directly, in a function without a frame; so are
 * three and four. More sources are gathered in a tile, because the output may be any of them.
 * `wide` is the type that is computed in. */
#define KERNEL(name, type, wide, load, store, op)                                                  \
    __attribute__((noinline)) static void name##_of_many(type *o, const void *const *sources,      \
                                                         int n, size_t count, int divisor)         \
    {                                                                                              \
        const type *a = sources[0];                                                                \
        for (size_t start = 0; start < count; start += TILE) {                                     \
            size_t length = count - start < TILE ? count - start : TILE;                           \
            wide tile[TILE];                                                                       \
            for (size_t i = 0; i < length; i++) {                                                  \
                tile[i] = load(a[start + i]);                                                      \
            }                                                                                      \
            for (int s = 1; s < n; s++) {                                                          \
                const type *b = (const type *)sources[s] + start;                                  \
                for (size_t i = 0; i < length; i++) {                                              \
                    tile[i] = (wide)op(tile[i], load(b[i]));                                       \
                }                                                                                  \
            }                                                                                      \
            for (size_t i = 0; i < length && divisor > 1; i++) {                                   \
                tile[i] = (wide)(tile[i] / (wide)divisor);                                         \
            }                                                                                      \
            for (size_t i = 0; i < length; i++) {                                                  \
                o[start + i] = store(tile[i]);                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    __attribute__((noinline)) static void name##_of_three(type *o, const void *const *sources,     \
                                                          size_t count)                            \
    {                                                                                              \
        const type *a = sources[0], *b = sources[1], *c = sources[2];                              \
        ELEMENTWISE for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            wide first = (wide)op(load(a[i]), load(b[i]));                                         \
            o[i] = store((wide)op(first, load(c[i])));                                             \
        }                                                                                          \
    }                                                                                              \
    __attribute__((noinline)) static void name##_of_four(type *o, const void *const *sources,      \
                                                         size_t count)                             \
    {                                                                                              \
        const type *a = sources[0], *b = sources[1], *c = sources[2], *d = sources[3];             \
        ELEMENTWISE for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            wide first = (wide)op(load(a[i]), load(b[i]));                                         \
            wide second = (wide)op(first, load(c[i]));                                             \
            o[i] = store((wide)op(second, load(d[i])));                                            \
        }                                                                                          \
    }                                                                                              \
    static void name(void *out, const void *const *sources, int n, size_t count, int divisor)      \
    {                                                                                              \
        type *o = out;                                                                             \
        if (n < 2 || n > 4 || divisor > 1) {                                                       \
            name##_of_many(o, sources, n, count, divisor);                                         \
            return;                                                                                \
        }                                                                                          \
        if (n > 2) {                                                                               \
            (n == 3 ? name##_of_three : name##_of_four)(o, sources, count);                        \
            return;                                                                                \
        }                                                                                          \
        const type *a = sources[0], *b = sources[1];                                               \
        ELEMENTWISE for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            o[i] = store((wide)op(load(a[i]), load(b[i])));                                        \
        }                                                                                          \
    }                                                                                              \
    static void name##_twin(void *out, void *twin, const void *left, const void *right,            \
                            size_t count)                                                          \
    {                                                                                              \
        type *o = out, *t = twin;                                                                  \
        const type *a = left, *b = right;                                                          \
        ELEMENTWISE for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            o[i] = t[i] = store((wide)op(load(a[i]), load(b[i])));                                 \
        }                                                                                          \
    }                                                                                              \
    static void name##_swap(void *out, void *slot, const void *left, const void *right,            \
                            const void *next, size_t count)                                        \
    {                                                                                              \
        type *o = out, *s = slot;                                                                  \
        const type *a = left, *b = right, *n = next;                                               \
        ELEMENTWISE for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            type reduced = store((wide)op(load(a[i]), load(b[i])));                                \
            s[i] = n[i];                                                                           \
            o[i] = reduced;                                                                        \
        }                                                                                          \
    }

#define SAME(x) (x)
#define NARROW_U8(x) ((uint8_t)(x))
#define NARROW_I8(x) ((int8_t)(x))
#define NARROW_I16(x) ((int16_t)(x))
#define NARROW_I32(x) ((int32_t)(x))
#define NARROW_I64(x) ((int64_t)(x))

#define ARITHMETIC(kind, type, wide, load, store)                                                  \
    KERNEL(kind##_sum, type, wide, load, store, ADD)                                               \
    KERNEL(kind##_product, type, wide, load, store, MULTIPLY)                                      \
    KERNEL(kind##_least, type, wide, load, store, LEAST)                                           \
    KERNEL(kind##_most, type, wide, load, store, MOST)

#define BITWISE(kind, type)                                                                        \
    KERNEL(kind##_and, type, type, SAME, SAME, AND)                                                \
    KERNEL(kind##_or, type, type, SAME, SAME, OR)                                                  \
    KERNEL(kind##_xor, type, type, SAME, SAME, XOR)

/* Integers wrap as the machine does: the arithmetic is unsigned (signed overflow is undefined in
 * C), and signed only where order or division matters. */
#define INTEGER(kind, type, wide, store)                                                           \
    KERNEL(kind##_sum, type, wide, (wide), store, WRAP_ADD)                                        \
    KERNEL(kind##_product, type, wide, (wide), store, WRAP_MULTIPLY)                               \
    KERNEL(kind##_least, type, wide, (wide), store, LEAST)                                         \
    KERNEL(kind##_most, type, wide, (wide), store, MOST)                                           \
    BITWISE(kind, type)

#define WRAP_ADD(a, b) ((uint64_t)(a) + (uint64_t)(b))
#define WRAP_MULTIPLY(a, b) ((uint64_t)(a) * (uint64_t)(b))

BITWISE(bool, uint8_t)
INTEGER(u8, uint8_t, uint32_t, NARROW_U8)
INTEGER(i8, int8_t, int32_t, NARROW_I8)
INTEGER(i16, int16_t, int32_t, NARROW_I16)
INTEGER(i32, int32_t, int32_t, NARROW_I32)
INTEGER(i64, int64_t, int64_t, NARROW_I64)
ARITHMETIC(f16, uint16_t, float, half_to_float, half_from_float)
ARITHMETIC(bf16, uint16_t, float, bfloat_to_float, bfloat_from_float)
ARITHMETIC(f32, float, float, SAME, SAME)
ARITHMETIC(f64, double, double, SAME, SAME)

#define ENTRY(name)                                                                                \
    {                                                                                              \
        name, name##_twin, name##_swap                                                             \
    }
#define ROW_ARITHMETIC(kind)                                                                       \
    [MUSTER_SUM] = ENTRY(kind##_sum), [MUSTER_AVG] = ENTRY(kind##_sum),                            \
    [MUSTER_PROD] = ENTRY(kind##_product), [MUSTER_MIN] = ENTRY(kind##_least),                     \
    [MUSTER_MAX] = ENTRY(kind##_most)
#define ROW_BITWISE(kind)                                                                          \
    [MUSTER_BAND] = ENTRY(kind##_and), [MUSTER_BOR] = ENTRY(kind##_or),                            \
    [MUSTER_BXOR] = ENTRY(kind##_xor)

static const struct reduce_kernels kernels[MUSTER_NUM_TYPES][MUSTER_NUM_OPS] = {
    [MUSTER_BOOL] = {[MUSTER_SUM] = ENTRY(bool_or),
                     [MUSTER_PROD] = ENTRY(bool_and),
                     [MUSTER_MIN] = ENTRY(bool_and),
                     [MUSTER_MAX] = ENTRY(bool_or),
                     ROW_BITWISE(bool)},
    [MUSTER_U8] = {ROW_ARITHMETIC(u8), ROW_BITWISE(u8)},
    [MUSTER_I8] = {ROW_ARITHMETIC(i8), ROW_BITWISE(i8)},
    [MUSTER_I16] = {ROW_ARITHMETIC(i16), ROW_BITWISE(i16)},
    [MUSTER_I32] = {ROW_ARITHMETIC(i32), ROW_BITWISE(i32)},
    [MUSTER_I64] = {ROW_ARITHMETIC(i64), ROW_BITWISE(i64)},
    [MUSTER_F16] = {ROW_ARITHMETIC(f16)},
    [MUSTER_BF16] = {ROW_ARITHMETIC(bf16)},
    [MUSTER_F32] = {ROW_ARITHMETIC(f32)},
    [MUSTER_F64] = {ROW_ARITHMETIC(f64)},
};

struct reduce_kernels REDUCE_TABLE(enum muster_type type, enum muster_op op) {
    if ((unsigned)type >= MUSTER_NUM_TYPES || (unsigned)op >= MUSTER_NUM_OPS) {
        return (struct reduce_kernels){NULL, NULL, NULL};
    }
    return kernels[type][op];
}
