/* The jobs that are followed, and what is known of each.
 *
 * Layer: cli. Ownership: follow.h's.
 */
#pragma once

#include "cli/command/cli.h"
#include "cli/follow/interrupt.h"
#include "cli/follow/signals.h"
#include "cli/follow/stall_notes.h"
#include "cli/follow/trouble.h"
#include "cli/log/pod_logs.h"
#include "cli/log/screen.h"

enum { FOLLOW_JOBS_MAX = 64 };

struct followed_job {
    struct follow *follow;
    char *name;
    char *namespace;
    char group[256]; /* before the rank in prefixes, when several jobs are followed */
    json_t *object;  /* newest version */
    json_t *pods;    /* name -> newest version, deleted ones too */
    json_t *gone;    /* uids of the deleted ones */
    json_t *stopped; /* uids of those that were asked to end while they had not ended */
    json_t *late;    /* uids of those that ended after the job and were restarted */
    json_t *places;  /* where the files of its containers lie (places.h) */
    json_t *told;    /* how isolation is degraded, each sentence once */
    bool untold;     /* pods have started since that was asked for last */
    int64_t asked_ms;
    int64_t unstarted_ms; /* when it was last asked why pods have no container */
    bool seen;            /* by its watch */
    bool deleted;
    bool over;
    int64_t started_ms;
    int64_t over_ms;
    int64_t pods_ended_ms; /* 0: some run */
    bool cut_short;        /* ranks ran when a signal asked for the end */
    bool untold_end;       /* and the controller could not be told */
    int64_t stop_asked_ms; /* of a cluster's operator; 0: not yet, or that was the last word */
    bool gpus_told;
    bool untaken_told;
    bool stragglers_told;
    bool stragglers_ended;
    struct pod_logs *logs;
    struct trouble trouble; /* failures and restarts, and what it waits for in vain */
    struct kube_watch *job_watch;
    struct kube_watch *pod_watch;
    struct stall_notes stalls;
};

struct follow {
    struct cli *cli;
    struct screen *screen;
    bool quiet;
    struct followed_job jobs[FOLLOW_JOBS_MAX];
    size_t job_count;
    uv_timer_t tick;
    uv_signal_t signals[SIGNALS_COUNT];
    int open_signals;
    struct interrupt interrupt;
    bool killed;          /* what runs was killed, or nobody can be told to end it */
    int64_t after_end_ms; /* how long ranks may go on after success; -1: as long as they do */
    bool output_lost;     /* logs could not be written (a full disk), and that was said */
    bool disk_told;
    int64_t disk_ms; /* when the disk was looked at last */
};

/* The pods in the order of their ranks; new array. */
json_t *follow_pods(const struct followed_job *job);

/* Has the pod ended for good? One that failed after the end of its job and was restarted has: it
 * can join nobody. */
bool follow_pod_ended(const struct followed_job *job, const json_t *pod);

/* The job was deleted, and pods of it are in their grace period. */
bool follow_deleted_end(const struct followed_job *job);

/* It was asked to end, by whomever. */
bool follow_is_stopped(const struct followed_job *job);

/* How many pods have not ended, and unless `terminating` have not been told to either. */
size_t follow_count_running(const struct followed_job *job, bool terminating);
