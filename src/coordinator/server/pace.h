/* How a job gets on, as its coordinator sees it: the rate at which records are committed, and what
 * each recovery cost.
 *
 * A recovery is from the last step before a generation was closed to the first step of the next
 * one; its cost is that time less the usual period of a step. It is reported for the member that
 * was lost, else for the one that left or joined. A recovery of the coordinator is from its end to
 * the next step of which it hears; nobody waited for it meanwhile. One that goes back to a
 * checkpoint, or to the beginning, is said twice: at once, and how long it took until the next
 * step.
 *
 * Layer: program (coordinator). Pure: time comes in as data. Memory: the caller's. Thread: one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACE_RECOVERIES_KEPT = 16, PACE_SAMPLES = 6, PACE_SAMPLE_MS = 1000, PACE_NAME_BYTES = 64 };

enum pace_kind {
    PACE_JOINED,
    PACE_LEFT,
    PACE_LOST,
    PACE_COORDINATOR,
    PACE_HEALED,
    PACE_RESTORED, /* no worker had the model any more */
    PACE_KINDS
};

struct pace_recovery {
    int64_t at_unix_ms; /* when it was over */
    int64_t ms;
    enum pace_kind kind;
    uint32_t others;              /* workers lost (left, joined) at once, beside the one named */
    char worker[PACE_NAME_BYTES]; /* "": nobody is known by name */
    uint64_t version;    /* PACE_RESTORED: of the checkpoint; 0: the model is as it was at first */
    uint64_t lost_steps; /* after it: their records are trained again */
};

/* What pace reads of the arbiter, after an event. */
struct pace_look {
    int64_t now_ms;
    int64_t now_unix_ms;
    uint64_t generation;
    uint64_t version;
    bool is_open;  /* the generation is not being closed */
    bool restored; /* … and none of its workers had the model */
};

struct pace {
    /* the rate: records at moments, the oldest first */
    struct {
        int64_t at_ms;
        uint64_t records;
    } samples[PACE_SAMPLES];
    size_t sample_count;
    /* steps */
    uint64_t generation;
    uint64_t version;
    uint64_t base;    /* of the generation */
    int64_t step_ms;  /* the last one was heard of; 0: none yet */
    double period_ms; /* 0: not known yet */
    /* a recovery */
    bool closed;
    int64_t since_ms;
    struct pace_recovery next;
    bool was_away; /* the coordinator */
    int64_t away_since_ms;
    /* those that are over, the oldest first */
    struct pace_recovery recoveries[PACE_RECOVERIES_KEPT];
    size_t recovery_count;
};

/* The beginning of a term, at this generation and version. away_ms: how long nobody coordinated the
 * job; < 0: it is new. What was measured before is forgotten, recoveries apart. */
void pace_begin(struct pace *pace, const struct pace_look *look, int64_t away_ms);

/* Called before the look at the generation that opens without, or with, this worker. */
void pace_note(struct pace *pace, enum pace_kind kind, const char *worker);

/* True: a recovery is over, or PACE_RESTORED has begun, the last of the list. */
bool pace_look(struct pace *pace, const struct pace_look *look);

/* Each second; more often is no harm. */
void pace_sample(struct pace *pace, int64_t now_ms, uint64_t records);
/* Records a second in the last few; 0 before two samples. */
double pace_rate(const struct pace *pace);
/* What is left of all (UINT64_MAX: no end), at a rate; -1: nobody knows. */
int64_t pace_seconds_left(uint64_t done, uint64_t all, double per_s);

void pace_keep(struct pace *pace, const struct pace_recovery *recovery);
const char *pace_kind_name(enum pace_kind kind);
