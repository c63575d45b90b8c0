/* See pace.h. */
#include "coordinator/server/pace.h"

#include <stdio.h>
#include <string.h>

/* The weight of a new period in the running mean. */
#define WEIGHT 0.125

enum { SECONDS_MAX = 1000000000 };

const char *pace_kind_name(enum pace_kind kind)
{
    static const char *const names[PACE_KINDS] = {
        [PACE_JOINED] = "joined",           [PACE_LEFT] = "left",     [PACE_LOST] = "lost",
        [PACE_COORDINATOR] = "coordinator", [PACE_HEALED] = "healed", [PACE_RESTORED] = "restored",
    };
    return names[kind];
}

void pace_keep(struct pace *pace, const struct pace_recovery *recovery)
{
    if (pace->recovery_count == PACE_RECOVERIES_KEPT) {
        memmove(pace->recoveries, pace->recoveries + 1,
                (PACE_RECOVERIES_KEPT - 1) * sizeof *pace->recoveries);
        pace->recovery_count--;
    }
    pace->recoveries[pace->recovery_count++] = *recovery;
}

/* ---- The rate ---- */

void pace_sample(struct pace *pace, int64_t now_ms, uint64_t records)
{
    size_t count = pace->sample_count;
    if (count > 0 && now_ms - pace->samples[count - 1].at_ms < PACE_SAMPLE_MS) {
        return;
    }
    if (count > 0 && records < pace->samples[count - 1].records) { /* back at a checkpoint */
        count = 0;
    }
    if (count == PACE_SAMPLES) {
        memmove(pace->samples, pace->samples + 1, (PACE_SAMPLES - 1) * sizeof *pace->samples);
        count--;
    }
    pace->samples[count].at_ms = now_ms;
    pace->samples[count].records = records;
    pace->sample_count = count + 1;
}

double pace_rate(const struct pace *pace)
{
    size_t count = pace->sample_count;
    if (count < 2) {
        return 0;
    }
    int64_t ms = pace->samples[count - 1].at_ms - pace->samples[0].at_ms;
    return (double)(pace->samples[count - 1].records - pace->samples[0].records) * 1000 /
           (double)ms;
}

int64_t pace_seconds_left(uint64_t done, uint64_t all, double per_s)
{
    double left = (double)(all - done);
    if (all == done || all == UINT64_MAX || per_s * SECONDS_MAX < left) {
        return all == done ? 0 : -1;
    }
    return (int64_t)(left / per_s) + 1;
}

/* ---- Recoveries ---- */

void pace_begin(struct pace *pace, const struct pace_look *look, int64_t away_ms)
{
    pace->sample_count = 0;
    pace->generation = look->generation;
    pace->version = pace->base = look->version;
    pace->step_ms = 0;
    pace->period_ms = 0;
    pace->closed = false;
    pace->next = (struct pace_recovery){0};
    pace->was_away = away_ms >= 0 && look->generation > 0;
    pace->away_since_ms = look->now_ms - away_ms;
}

/* Keeps the worst event: a loss before a leave before a join. */
void pace_note(struct pace *pace, enum pace_kind kind, const char *worker)
{
    struct pace_recovery *next = &pace->next;
    bool is_first = !*next->worker && next->others == 0;
    if (is_first || kind > next->kind) {
        next->kind = kind;
        next->others = 0;
        (void)snprintf(next->worker, sizeof next->worker, "%s", worker);
    } else if (kind == next->kind) {
        next->others++;
    }
}

static void keep_ended(struct pace *pace, const struct pace_look *look,
                       struct pace_recovery recovery, double ms)
{
    recovery.at_unix_ms = look->now_unix_ms;
    recovery.ms = ms > 0 ? (int64_t)(ms + 0.5) : 0;
    pace_keep(pace, &recovery);
}

static bool note_step(struct pace *pace, const struct pace_look *look)
{
    uint64_t steps = look->version - pace->version;
    int64_t before_ms = pace->step_ms;
    bool ended = false;
    pace->version = look->version;
    pace->step_ms = look->now_ms;
    if (pace->was_away) {
        struct pace_recovery recovery = {.kind = PACE_COORDINATOR};
        keep_ended(pace, look, recovery, (double)(look->now_ms - pace->away_since_ms));
        pace->was_away = false;
        ended = true;
    }
    if (pace->closed && look->is_open && look->version > pace->base) {
        keep_ended(pace, look, pace->next,
                   (double)(look->now_ms - pace->since_ms) - pace->period_ms);
        pace->closed = false;
        pace->next = (struct pace_recovery){0};
        ended = true;
    } else if (pace->closed) { /* this step was under way when the generation was closed */
        pace->since_ms = look->now_ms;
    } else if (before_ms > 0) {
        double period_ms = (double)(look->now_ms - before_ms) / (double)steps;
        pace->period_ms += (period_ms - pace->period_ms) * (pace->period_ms > 0 ? WEIGHT : 1);
    }
    return ended;
}

static bool note_generation(struct pace *pace, const struct pace_look *look)
{
    bool first = pace->generation == 0;
    bool restored = look->version < pace->version;
    if (restored) {
        const struct pace_recovery recovery = {.kind = PACE_RESTORED,
                                               .version = look->version,
                                               .lost_steps = pace->version - look->version};
        keep_ended(pace, look, recovery,
                   pace->closed ? (double)(look->now_ms - pace->since_ms) : 0);
    }
    pace->was_away = pace->was_away && !look->restored; /* no worker has trained meanwhile */
    pace->generation = look->generation;
    pace->base = pace->version = look->version;
    pace->next = first ? (struct pace_recovery){0} : pace->next;
    return restored;
}

bool pace_look(struct pace *pace, const struct pace_look *look)
{
    if (look->generation != pace->generation) {
        return note_generation(pace, look);
    }
    if (!look->is_open && !pace->closed && look->generation > 0) {
        pace->closed = true;
        pace->since_ms = pace->step_ms > 0 ? pace->step_ms : look->now_ms;
    }
    return look->version > pace->version ? note_step(pace, look) : false;
}
