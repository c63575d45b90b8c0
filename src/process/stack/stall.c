/* See stall.h. */
#include "process/stack/stall.h"

#include <assert.h>

void stall_init(struct stall *stall, int64_t limit_ms)
{
    assert(limit_ms >= 0);
    *stall = (struct stall){.limit_ms = limit_ms};
}

static bool has_worked(const struct stall_sample *since, const struct stall_sample *now)
{
    int64_t elapsed_ms = now->now_ms - since->now_ms;
    uint64_t allowed_ms = STALL_IDLE_MS + (uint64_t)(elapsed_ms * STALL_IDLE_PERCENT / 100);
    return now->runnable || now->output_bytes != since->output_bytes ||
           now->cpu_ms < since->cpu_ms || now->cpu_ms - since->cpu_ms > allowed_ms;
}

enum stall_verdict stall_step(struct stall *stall, const struct stall_sample *sample)
{
    assert(!stall->begun || sample->now_ms >= stall->quiet.now_ms);
    if (!stall->begun || has_worked(&stall->quiet, sample)) {
        stall->quiet = *sample;
    }
    if (!stall->begun || sample->call != stall->inside.call) {
        stall->inside = *sample;
    }
    stall->begun = true;
    bool silent = sample->now_ms - stall->quiet.now_ms >= stall->limit_ms;
    bool in_call = sample->call && sample->now_ms - stall->inside.now_ms >= stall->limit_ms;
    if (stall->limit_ms == 0 || (!silent && !in_call)) {
        stall->told = false;
        return STALL_NONE;
    }
    if (stall->told) {
        return STALL_NONE;
    }
    stall->told = true;
    return in_call ? STALL_IN_CALL : STALL_SILENT;
}

bool stall_is_told(const struct stall *stall)
{
    return stall->told;
}
