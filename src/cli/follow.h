/* Following jobs to their end: watches, logs, progress, signals.
 *
 * Layer: cli, on the loop. Ownership: init/done; run the loop once more after done.
 */
#pragma once

#include "cli/cli.h"
#include "cli/podlogs.h"
#include "cli/screen.h"

enum { FOLLOW_JOBS_MAX = 64 };

struct followed_job {
    struct follow *follow;
    char *name;
    char *namespace;
    char group[256]; /* before the rank in prefixes, when several jobs are followed */
    json_t *object;  /* newest version */
    json_t *pods;    /* name -> newest version, deleted ones too */
    json_t *gone;    /* uids of the deleted ones */
    json_t *places;  /* where the files of its containers lie (places.h) */
    json_t *told;    /* what is not as on a cluster, each sentence once */
    bool untold;     /* pods have started since that was asked for last */
    int64_t asked_ms;
    bool deleted;
    bool over;
    int64_t started_ms;
    int64_t over_ms;
    int64_t pods_ended_ms; /* 0: some run */
    struct podlogs *logs;
    struct kube_watch *job_watch;
    struct kube_watch *pod_watch;
};

struct follow {
    struct cli *cli;
    struct screen *screen;
    bool quiet;
    struct followed_job jobs[FOLLOW_JOBS_MAX];
    size_t job_count;
    uv_timer_t tick;
    uv_signal_t signals[3];
    int open_signals;
    int signal;       /* the first that asked us to end, 0: none */
    bool killed;      /* asked twice: everything was killed */
    bool output_lost; /* logs could not be written (a full disk), and that was said */
};

/* Signals are caught from now on. */
void follow_init(struct follow *follow, struct cli *cli, struct screen *screen, bool quiet);

/* `job` as the API returned it at its creation. */
int follow_add(struct follow *follow, const json_t *job, bool several);

/* Until all jobs are over and their logs are read, or a second signal killed them. */
void follow_run(struct follow *follow);
void follow_done(struct follow *follow);

/* The pods in the order of their ranks; new array. */
json_t *follow_pods(const struct followed_job *job);
