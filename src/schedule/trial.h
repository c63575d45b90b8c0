/* Finds out which of two methods for a call is the faster one here. This depends on how far two
 * cores are from each other, and the cores of a virtual machine move. So each method is used some
 * times in a row (the first use finds its memory in no cache), then the faster one, and now and
 * then the other one again. Both methods give the same result.
 *
 * Layer: pure. Memory: the caller's struct; zero is a new one. Thread: one.
 */
#pragma once

#include <stdint.h>

enum { SCHEDULE_TRIAL_EACH = 4, SCHEDULE_TRIAL_AGAIN = 256 };
#define SCHEDULE_TRIAL_FOR_EVER (UINT64_MAX / 4) /* the time of a way that was not possible */

struct schedule_trial {
    uint64_t ns[2];     /* the time of a call in each way: about the shortest of the last calls */
    uint32_t counts[2]; /* calls in each way */
    uint32_t calls;     /* calls in the faster way since the other one was tried */
    uint32_t left;      /* calls that remain of `tried`, the way that is being tried again */
    int tried;
};

/* Returns the way of the next call: 0 or 1. */
int schedule_trial_choose(const struct schedule_trial *trial);
/* Notes how long a call in this way took. */
void schedule_trial_note(struct schedule_trial *trial, int way, uint64_t ns);
