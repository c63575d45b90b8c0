/* The two 16-bit floating-point formats, to and from f32, round to nearest even, NaN and subnormals
 * kept. Plain C that compilers vectorise.
 *
 * Layer: comm, pure functions.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float half_bits_to_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t half_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bfloat_to_float(uint16_t bits)
{
    return half_bits_to_float((uint32_t)bits << 16);
}

static inline uint16_t bfloat_from_float(float value)
{
    uint32_t bits = half_bits_of_float(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t quiet_nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

static inline float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7fff;
    uint32_t shifted = magnitude << 13;
    uint32_t normal = shifted + (112u << 23); /* exponent bias 127 instead of 15 */
    uint32_t special = shifted | 0x7f800000;  /* infinity, NaN */
    uint32_t subnormal = half_bits_of_float((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t result = magnitude < 0x400 ? subnormal : magnitude < 0x7c00 ? normal : special;
    return half_bits_to_float(sign | result);
}

static inline uint16_t half_from_float(float value)
{
    uint32_t bits = half_bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    /* One unit in the last place of 0.5 is half a subnormal step, so this addition rounds
     * correctly. */
    uint32_t subnormal = half_bits_of_float(half_bits_to_float(magnitude) + 0.5f) - 0x3f000000;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
    uint32_t large = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (magnitude >= 0x477ff000 ? large : finite)); /* 65520 and up */
}
