/* The model of elastic_worker: a ledger (weight i grows by one each time record i is trained) and
 * parameters whose gradient depends on them, with momentum: whatever is trained twice, left out or
 * summed in another order changes them. It knows nothing of jobs: serial.c trains it, too.
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

/* The mean over these records, ALL elements. */
void model_gradient(const struct model *model, const uint64_t *records, size_t count, float *ret);
/* By the mean over the records of a step; how many these are. */
void model_update(struct model *model, const float *mean, uint32_t count);
/* Records whose weight is not that. */
int model_count_wrong(const struct model *model, uint64_t records, uint32_t weight);
/* Of all its bits. */
uint64_t model_digest(const struct model *model);
