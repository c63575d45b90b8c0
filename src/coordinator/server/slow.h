/* Finds workers that are slower than the others, from their reports about recent steps (PROGRESS).
 * It compares the time that a worker computes for one record: a step without its exchange with the
 * others, divided by the worker's records, since shares differ.
 *
 * A worker is named when that time was half as long again as the median for SLOW_LOOKS looks in a
 * row, and the steps have waited for it noticeably; it is named until the time is less than a
 * quarter longer.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's. Thread: one.
 */
#pragma once

#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOW_LOOKS = 5, SLOW_NAMED_MAX = 8, SLOW_COMPARED_MAX = 1024 };

/* What the coordinator knows of a worker. */
struct slow_worker {
    struct wire_progress last;
    double record_ns;    /* the time that it computes for a record; 0: not known */
    double step_records; /* the records that it trains in a step */
    int looks;           /* the number of looks in a row at which it was slow */
    bool named;
    double times;  /* record_ns, divided by the median */
    double lag_ms; /* the time that a step waits for it */
};

void slow_hear(struct slow_worker *worker, const struct wire_progress *told);

/* Called each second. Compares the workers of this generation, sets `named`, and calls `changed`
 * for each worker that is named now and was not before. */
void slow_look(struct slow_worker *const *workers, size_t count, uint64_t generation,
               void (*changed)(void *data, size_t index), void *data);
