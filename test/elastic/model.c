/* See model.h. */
#include "model.h"

#include "core/hash.h"

#include <string.h>

/* The ledger's gradient is 1 for each record: the mean over a step, times the number of the step's
 * records, is a whole number. */
void model_gradient(const struct model *m, const uint64_t *records, size_t count, float *ret)
{
    memset(ret, 0, ALL * sizeof *ret);
    for (size_t i = 0; i < count; i++) {
        float weight = 1.0f / (float)count, target = (float)(records[i] % 13);
        ret[records[i]] += weight;
        for (int p = 0; p < PARAMETERS; p++) {
            float x = (float)((records[i] * 31 + (uint64_t)p * 17) % 29) / 29;
            ret[RECORDS_MAX + p] += weight * (m->parameters[p] - x * target);
        }
    }
}

void model_update(struct model *m, const float *mean, uint32_t count)
{
    for (int i = 0; i < RECORDS_MAX; i++) {
        m->ledger[i] += (float)(int)(mean[i] * (float)count + 0.5f);
    }
    for (int p = 0; p < PARAMETERS; p++) {
        m->momentum[p] = 0.9f * m->momentum[p] + mean[RECORDS_MAX + p];
        m->parameters[p] -= 0.01f * m->momentum[p];
    }
}

int model_count_wrong(const struct model *m, uint64_t records, uint32_t weight)
{
    int wrong = 0;
    for (uint64_t i = 0; i < records; i++) {
        wrong += (int)m->ledger[i] != (int)weight;
    }
    return wrong;
}

uint64_t model_digest(const struct model *m)
{
    return hash_bytes(HASH_START, m, sizeof *m);
}
