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
    json_t *gone;    /* uids of deleted pods */
    json_t *stopped; /* uids of pods that were asked to end before they had ended */
    json_t *late;    /* uids of pods that ended after the job and were restarted */
    json_t *places;  /* where the files of its containers lie (places.h) */
    json_t *told;    /* warnings about isolation that were printed, each once */
    bool untold;     /* pods have started since isolation was checked last */
    int64_t asked_ms;
    int64_t unstarted_ms; /* when it was last checked why pods have no container */
    bool seen;            /* its watch has reported it */
    bool deleted;
    bool over;
    int64_t started_ms;
    int64_t over_ms;
    int64_t pods_ended_ms; /* 0: some pods run */
    bool cut_short;        /* ranks ran when a signal asked for the end */
    bool untold_end;       /* and the request to end failed */
    int64_t stop_asked_ms; /* when an operator was asked to end it; 0: not yet, or deleted since */
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
    bool killed;          /* what runs was killed, or the request to end it failed */
    int64_t after_end_ms; /* how long ranks may go on after success; -1: no limit */
    bool output_lost;     /* logs could not be written (a full disk), and this was printed */
    bool disk_told;
    int64_t disk_ms; /* when the disk was checked last */
};

/* The pods in the order of their ranks; new array. */
json_t *follow_pods(const struct followed_job *job);

/* Whether the pod has ended for good. This includes a pod that failed after the end of its job and
 * was restarted: it has no peers to join. */
bool follow_pod_ended(const struct followed_job *job, const json_t *pod);

/* Whether the job was deleted and its pods are in their grace period. */
bool follow_deleted_end(const struct followed_job *job);

/* Whether the job was asked to end, by anybody. */
bool follow_is_stopped(const struct followed_job *job);

/* The number of pods that have not ended; without `terminating`, pods that were told to end do not
 * count. */
size_t follow_count_running(const struct followed_job *job, bool terminating);
