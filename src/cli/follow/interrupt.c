/* See interrupt.h. */
#include "cli/follow/interrupt.h"

#include <assert.h>

static const struct interrupt_heard *find_heard(const struct interrupt *i, int signal)
{
    for (size_t at = 0; at < i->count; at++) {
        if (i->heard[at].signal == signal) {
            return &i->heard[at];
        }
    }
    return NULL;
}

enum interrupt_deed interrupt_hear(struct interrupt *i, int signal, int64_t now_ms)
{
    assert(signal > 0);
    const struct interrupt_heard *before = find_heard(i, signal);
    if (i->killed || (before && now_ms - before->at_ms < INTERRUPT_SAME_MS)) {
        return INTERRUPT_NOTHING;
    }
    if (before) {
        i->killed = true;
        return INTERRUPT_KILL;
    }
    assert(i->count < INTERRUPT_KINDS);
    i->heard[i->count++] = (struct interrupt_heard){signal, now_ms};
    if (i->signal) {
        return INTERRUPT_NOTHING;
    }
    i->signal = signal;
    return INTERRUPT_END;
}
