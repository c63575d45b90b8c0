/* See slow.h. */
#include "coordinator/server/slow.h"

#include <stdlib.h>

#define MUCH 1.5
#define LITTLE 1.25
#define LAG_MS_MIN 2.0
#define NS_PER_MS 1e6

void slow_hear(struct slow_worker *worker, const struct wire_progress *told)
{
    const struct wire_progress *last = &worker->last;
    bool follows = told->generation == last->generation && told->version > last->version &&
                   told->records > last->records && told->wait_ns <= told->step_ns;
    if (told->generation != last->generation) {
        worker->record_ns = 0;
    }
    if (follows) {
        double steps = (double)(told->version - last->version);
        worker->step_records = (double)(told->records - last->records) / steps;
        worker->record_ns = (double)(told->step_ns - told->wait_ns) / worker->step_records;
    }
    worker->last = *told;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool is_known(const struct slow_worker *worker, uint64_t generation)
{
    return worker->record_ns > 0 && worker->last.generation == generation;
}

/* Returns the lower of the two middle values: of two workers the faster one is the standard. */
static double median(struct slow_worker *const *workers, size_t count, uint64_t generation,
                     size_t *ret_known)
{
    double list[SLOW_COMPARED_MAX];
    size_t known = 0;
    for (size_t i = 0; i < count && known < SLOW_COMPARED_MAX; i++) {
        if (is_known(workers[i], generation)) {
            list[known++] = workers[i]->record_ns;
        }
    }
    qsort(list, known, sizeof *list, compare);
    *ret_known = known;
    return known > 0 ? list[(known - 1) / 2] : 0;
}

static bool judge(struct slow_worker *worker, double median_ns)
{
    worker->times = worker->record_ns / median_ns;
    worker->lag_ms = (worker->record_ns - median_ns) * worker->step_records / NS_PER_MS;
    bool is_slow = worker->times >= (worker->named ? LITTLE : MUCH) && worker->lag_ms >= LAG_MS_MIN;
    worker->looks = is_slow ? worker->looks + 1 : 0;
    bool was_named = worker->named;
    worker->named = is_slow && (was_named || worker->looks >= SLOW_LOOKS);
    return worker->named && !was_named;
}

void slow_look(struct slow_worker *const *workers, size_t count, uint64_t generation,
               void (*changed)(void *data, size_t index), void *data)
{
    size_t known;
    double median_ns = median(workers, count, generation, &known);
    for (size_t i = 0; i < count; i++) {
        bool compared = known > 1 && median_ns > 0 && is_known(workers[i], generation);
        if (!compared) {
            workers[i]->named = false;
            workers[i]->looks = 0;
        } else if (judge(workers[i], median_ns)) {
            changed(data, i);
        }
    }
}
