/* Who is slower than the others: by what each worker says of its late steps (PROGRESS), its own
 * part, that is all but the exchange with the others, for a record. Shares differ, so that a record
 * is what can be compared.
 *
 * One is named when its part has been half as long again as the median of the others for some looks
 * in a row, and the steps have waited for it noticeably; it is not any more below a quarter.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's. Thread: one.
 */
#pragma once

#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOW_LOOKS = 5, SLOW_NAMED_MAX = 8, SLOW_COMPARED_MAX = 1024 };

/* Of a worker. */
struct slow_worker {
    struct wire_progress last;
    double record_ns;    /* its own part of a step, for a record; 0: not known */
    double step_records; /* of a step, here */
    int looks;           /* in a row at which it was slow */
    bool named;
    double times;  /* as long as the median */
    double lag_ms; /* that a step waits for it */
};

void slow_hear(struct slow_worker *worker, const struct wire_progress *told);

/* At each second; those of one generation. Who is named has `named`; changed: it was not before. */
void slow_look(struct slow_worker *const *workers, size_t count, uint64_t generation,
               void (*changed)(void *data, size_t index), void *data);
