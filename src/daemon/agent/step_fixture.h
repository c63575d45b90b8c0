/* What the tests of the agent's step share: its effects as a line of text. Tests only. */
#pragma once

#include "base/buf.h"
#include "base/testing/test.h"
#include "daemon/agent/step.h"

static const char *const effect_names[] = {
    [AGENT_ADMIT] = "admit",
    [AGENT_DISCARD] = "discard",
    [AGENT_FEED] = "feed",
    [AGENT_PLACE] = "place",
    [AGENT_TELL_WAITS] = "tell",
    [AGENT_WRITE] = "write",
    [AGENT_KEEP] = "keep",
    [AGENT_REMOVE] = "remove",
    [AGENT_LET_GO] = "let go",
    [AGENT_END_JOB] = "end job",
    [AGENT_CLOSE_JOB] = "close job",
    [AGENT_RETRY_SOON] = "retry soon",
    [AGENT_LOOK_AGAIN] = "look again",
};

static const char *const food_names[] = {
    [AGENT_FEED_NEWS] = "news",           [AGENT_FEED_ADOPTED] = "adopted",
    [AGENT_FEED_SCHEDULED] = "scheduled", [AGENT_FEED_DELETE] = "delete",
    [AGENT_FEED_LOST] = "lost",
};

/* Writes effects as "feed 2 adopted, place 3, end job 1", each with the number of its pod, or of
 * its job if the effect is about a job. */
static inline void put_effects(const struct agent_effects *effects, struct buf *out)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct agent_effect *e = &effects->list[i];
        bool of_job = e->kind == AGENT_END_JOB || e->kind == AGENT_CLOSE_JOB;
        int64_t number = of_job ? e->job : e->pod;
        buf_format(out, "%s%s", i > 0 ? ", " : "", effect_names[e->kind]);
        if (number > 0) {
            buf_format(out, " %lld", (long long)number);
        }
        if (e->kind == AGENT_FEED) {
            buf_format(out, " %s", food_names[e->food]);
        }
    }
}
