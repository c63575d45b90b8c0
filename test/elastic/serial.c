/* elastic_serial RECORDS EPOCHS: trains the model of elastic_worker in one process, step by step,
 * by plain arithmetic, using nothing of muster except the hash of the model's bits. It reads the
 * records of each step from its input in the form that elastic_journal prints: lines "pass VERSION
 * MICRO_BATCH RECORD…", in this order. It prints "serial version=… wrong=… model=…", as workers do
 * at their end.
 *
 * docs/elastic.md defines a step: each micro-batch's mean times its share of the step's records,
 * summed over a tree whose left half is the greatest power of two that leaves something.
 */
#include "model.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO_BATCHES_MAX = 64 };

struct step {
    uint64_t version;
    size_t passes;
    uint32_t counts[MICRO_BATCHES_MAX];
    float gradients[MICRO_BATCHES_MAX][ALL];
};

/* The first part becomes the sum. */
static void sum(float (*parts)[ALL], size_t count)
{
    size_t left = 1;
    if (count < 2) {
        return;
    }
    while (2 * left < count) {
        left *= 2;
    }
    sum(parts, left);
    sum(parts + left, count - left);
    for (int i = 0; i < ALL; i++) {
        parts[0][i] += parts[left][i];
    }
}

static void commit(struct model *m, struct step *step)
{
    uint32_t count = 0;
    for (size_t i = 0; i < step->passes; i++) {
        count += step->counts[i];
    }
    for (size_t i = 0; i < step->passes; i++) {
        float share = (float)((double)step->counts[i] / count);
        for (int e = 0; e < ALL; e++) {
            step->gradients[i][e] *= share;
        }
    }
    sum(step->gradients, step->passes);
    if (step->passes > 0) {
        model_update(m, step->gradients[0], count);
    }
    step->passes = 0;
}

/* Returns the number of numbers that were read. */
static size_t read_numbers(const char *text, uint64_t *ret, size_t room)
{
    char *end;
    size_t count = 0;
    for (; count < room; count++, text = end) {
        ret[count] = strtoull(text, &end, 10);
        if (end == text) {
            break;
        }
    }
    return count;
}

/* Returns false if the line is not a pass of this model. */
static bool take_pass(struct model *m, struct step *step, const char *line)
{
    static uint64_t numbers[RECORDS_MAX + 2];
    static const char pass[] = "pass ";
    size_t count = strncmp(line, pass, sizeof pass - 1) == 0
                       ? read_numbers(line + sizeof pass - 1, numbers, RECORDS_MAX + 2)
                       : 0;
    if (count < 3) {
        return false;
    }
    for (size_t i = 2; i < count; i++) {
        if (numbers[i] >= RECORDS_MAX) {
            return false;
        }
    }
    if (numbers[0] != step->version) {
        commit(m, step);
        step->version = numbers[0];
    }
    if (step->passes == MICRO_BATCHES_MAX) {
        return false;
    }
    step->counts[step->passes] = (uint32_t)(count - 2);
    model_gradient(m, numbers + 2, count - 2, step->gradients[step->passes++]);
    return true;
}

int main(int count, char **words)
{
    static struct model model;
    static struct step step;
    char *line = NULL;
    size_t room = 0;
    bool good = count == 3;
    while (good && getline(&line, &room, stdin) > 0) {
        good = take_pass(&model, &step, line);
    }
    if (!good) {
        (void)fprintf(stderr, "elastic_serial: no pass: %s\n", line ? line : "");
        return 64;
    }
    free(line);
    commit(&model, &step);
    (void)printf("serial version=%" PRIu64 " wrong=%d model=%016" PRIx64 "\n", step.version,
                 model_count_wrong(&model, strtoull(words[1], NULL, 10),
                                   (uint32_t)strtoul(words[2], NULL, 10)),
                 model_digest(&model));
    return 0;
}
