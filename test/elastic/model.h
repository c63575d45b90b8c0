/* The model of elastic_worker: a ledger (weight i grows by one each time record i is trained) and
 * parameters whose gradient depends on them, with momentum: they change if a record is trained
 * twice or left out, or if the sum is made in another order. The model knows nothing of jobs:
 * serial.c trains it, too.
 *
 * Layer: test. Memory: the caller's. Thread: one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RECORDS_MAX = 1024, PARAMETERS = 257, ALL = RECORDS_MAX + PARAMETERS };

struct model {
    float ledger[RECORDS_MAX];
    float parameters[PARAMETERS];
    float momentum[PARAMETERS];
};

/* Computes the mean gradient over these records, ALL elements. */
void model_gradient(const struct model *model, const uint64_t *records, size_t count, float *ret);
/* Updates the model. mean: over the records of a step; count: the number of these records. */
void model_update(struct model *model, const float *mean, uint32_t count);
/* Returns the number of records whose weight in the ledger is not `weight`. */
int model_count_wrong(const struct model *model, uint64_t records, uint32_t weight);
/* Returns a digest of all bits of the model. */
uint64_t model_digest(const struct model *model);
