/* The progress of a job, as its coordinator sees it: the rate at which records are committed, and
 * the cost of each recovery.
 *
 * A recovery is from the last step before a generation was closed to the first step of the next
 * one; its cost is that time less the usual period of a step. It is reported for the member that
 * was lost, else for the one that left or joined. A recovery of the coordinator is from its end to
 * the next step that is reported to it; no member waited for it meanwhile. A recovery that goes
 * back to a checkpoint, or to the beginning, is reported twice: at once, and with its duration
 * after the next step.
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
    PACE_RESTORED, /* no worker had the model */
    PACE_KINDS
};

struct pace_recovery {
    int64_t at_unix_ms; /* when it was over */
    int64_t ms;
    enum pace_kind kind;
    uint32_t others; /* how many other workers were lost (left, joined) at the same time */
    char worker[PACE_NAME_BYTES]; /* "": no name is known */
    uint64_t version;    /* PACE_RESTORED: of the checkpoint; 0: the model of the beginning */
    uint64_t lost_steps; /* steps after it, whose records are trained again */
};

/* The data of the arbiter that pace reads after an event. */
struct pace_look {
    int64_t now_ms;
    int64_t now_unix_ms;
    uint64_t generation;
    uint64_t version;
    bool is_open;  /* the generation is not being closed */
    bool restored; /* … and none of its workers had the model */
};

struct pace {
    /* the rate: records at several times, the oldest first */
    struct {
        int64_t at_ms;
        uint64_t records;
    } samples[PACE_SAMPLES];
    size_t sample_count;
    /* steps */
    uint64_t generation;
    uint64_t version;
    uint64_t base;    /* of the generation */
    int64_t step_ms;  /* when the last step was reported; 0: none yet */
    double period_ms; /* 0: not known yet */
    /* a recovery */
    bool closed;
    int64_t since_ms;
    struct pace_recovery next;
    bool was_away; /* of the coordinator */
    int64_t away_since_ms;
    /* finished recoveries, the oldest first */
    struct pace_recovery recoveries[PACE_RECOVERIES_KEPT];
    size_t recovery_count;
};

/* Begins a term, at this generation and version. away_ms: how long no coordinator worked on the
 * job; < 0: the job is new. All measurements are forgotten, except recoveries. */
void pace_begin(struct pace *pace, const struct pace_look *look, int64_t away_ms);

/* Notes a lost, leaving or joining worker; called before pace_look for the generation that opens
 * without, or with, the worker. */
void pace_note(struct pace *pace, enum pace_kind kind, const char *worker);

/* Looks at the state after an event. Returns true if a recovery is over, or PACE_RESTORED has
 * begun; it is the last of the list. */
bool pace_look(struct pace *pace, const struct pace_look *look);

/* Takes a sample; called each second, or more often. */
void pace_sample(struct pace *pace, int64_t now_ms, uint64_t records);
/* Returns the records in a second, by the last samples; 0 before two samples. */
double pace_rate(const struct pace *pace);
/* Returns the time for the rest of all records (UINT64_MAX: no end) at a rate; -1: not known. */
int64_t pace_seconds_left(uint64_t done, uint64_t all, double per_s);

void pace_keep(struct pace *pace, const struct pace_recovery *recovery);
const char *pace_kind_name(enum pace_kind kind);
