/* Elements of any type as numbers. Layer: program; see value.h. */
#include "perf/value.h"

#include "comm/reduce/half.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

void perf_store(enum muster_type type, void *buffer, size_t i, double value)
{
    switch (type) {
    case MUSTER_BOOL: ((uint8_t *)buffer)[i] = value != 0; break;
    case MUSTER_U8: ((uint8_t *)buffer)[i] = (uint8_t)value; break;
    case MUSTER_I8: ((int8_t *)buffer)[i] = (int8_t)value; break;
    case MUSTER_I16: ((int16_t *)buffer)[i] = (int16_t)value; break;
    case MUSTER_I32: ((int32_t *)buffer)[i] = (int32_t)value; break;
    case MUSTER_I64: ((int64_t *)buffer)[i] = (int64_t)value; break;
    case MUSTER_F16: ((uint16_t *)buffer)[i] = half_from_float((float)value); break;
    case MUSTER_BF16: ((uint16_t *)buffer)[i] = bfloat_from_float((float)value); break;
    case MUSTER_F32: ((float *)buffer)[i] = (float)value; break;
    case MUSTER_F64: ((double *)buffer)[i] = value; break;
    }
}

double perf_load(enum muster_type type, const void *buffer, size_t i)
{
    switch (type) {
    case MUSTER_BOOL:
    case MUSTER_U8: return ((const uint8_t *)buffer)[i];
    case MUSTER_I8: return ((const int8_t *)buffer)[i];
    case MUSTER_I16: return ((const int16_t *)buffer)[i];
    case MUSTER_I32: return ((const int32_t *)buffer)[i];
    case MUSTER_I64: return (double)((const int64_t *)buffer)[i];
    case MUSTER_F16: return (double)half_to_float(((const uint16_t *)buffer)[i]);
    case MUSTER_BF16: return (double)bfloat_to_float(((const uint16_t *)buffer)[i]);
    case MUSTER_F32: return (double)((const float *)buffer)[i];
    case MUSTER_F64: return ((const double *)buffer)[i];
    }
    return NAN;
}

double perf_reduce(enum muster_op op, double a, double b)
{
    switch (op) {
    case MUSTER_SUM:
    case MUSTER_AVG: return a + b;
    case MUSTER_PROD: return a * b;
    case MUSTER_MIN: return b < a ? b : a;
    case MUSTER_MAX: return a < b ? b : a;
    case MUSTER_BAND: return (double)((int)a & (int)b);
    case MUSTER_BOR: return (double)((int)a | (int)b);
    case MUSTER_BXOR: return (double)((int)a ^ (int)b);
    }
    return NAN;
}

double perf_finish(enum muster_type type, enum muster_op op, int size, double value)
{
    uint64_t bytes = 0;
    bool real = type >= MUSTER_F16;
    value = op != MUSTER_AVG ? value : real ? value / size : trunc(value / size);
    perf_store(type, &bytes, 0, value);
    return perf_load(type, &bytes, 0);
}
