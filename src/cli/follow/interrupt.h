/* What the signals that end a run request, as a state machine.
 *
 * The first signal begins the end. A different one afterwards changes nothing: CI systems send
 * SIGINT and then SIGTERM to request one end. The same signal again kills at once.
 *
 * Layer: cli; pure. Ownership: the caller's memory; all zero is the initial state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INTERRUPT_KINDS = 4,
    /* timeout(1) sends its signal to the process and then to its group: a signal that arrives twice
     * within this time counts as one. */
    INTERRUPT_SAME_MS = 100,
};

enum interrupt_deed {
    INTERRUPT_NOTHING,
    INTERRUPT_END,  /* within the grace period */
    INTERRUPT_KILL, /* at once */
};

struct interrupt {
    int signal; /* the first one; 0: none */
    bool killed;
    struct interrupt_heard {
        int signal;
        int64_t at_ms; /* when it came first */
    } heard[INTERRUPT_KINDS];
    size_t count;
};

enum interrupt_deed interrupt_hear(struct interrupt *interrupt, int signal, int64_t now_ms);
