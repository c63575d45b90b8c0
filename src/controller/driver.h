/* The driver of a controller: watches a cluster, runs control_reconcile for each job that changed,
 * and has its effects carried out. It is the same over the embedded store and a Kubernetes API
 * server (cluster.h); the clock, too, is its program's.
 *
 * A job is one key in a queue: there are never two steps of it at a time, but steps of different
 * jobs run side by side. A step sees what the watches have shown (cache.h), sends its effects in
 * phases (flow.h), and is over when the watches have shown its writes, or after DRIVER_SHOWN_MS. A
 * step that failed is made again after a pause that grows.
 *
 * Layer: services; pure. Thread: the loop's. Ownership: driver_new/driver_free; it borrows the
 * cluster, the clock and all texts of its options.
 */
#pragma once

#include "base/histogram.h"
#include "control/control.h"
#include "controller/cluster.h"

struct driver;

enum {
    DRIVER_SHOWN_MS = 10000,
    DRIVER_RETRY_MS = 1000,             /* after the first failure */
    DRIVER_AGAIN_MS = 5,                /* after the first conflict */
    DRIVER_EVENTS_BYTES_MAX = 32 << 20, /* of events that wait to be sent: about 16,000 */
    DRIVER_RESYNC_MS = 12 * 3600000,
    DRIVER_EVENT_MS = 600000, /* how long an event may wait: events have the lowest priority */
};

struct driver_clock {
    int64_t (*now_ms)(void *arg); /* monotonic */
    int64_t (*now_unix_ms)(void *arg);
    /* Asks the loop to call driver_turn at that time (at once: INT64_MIN); replaces an earlier
     * request. INT64_MAX: no call. */
    void (*call_at)(void *arg, int64_t at_ms);
    void *arg;
};

/* How a step ended: all was done, the cluster was newer than the view, or something failed. */
enum driver_result { DRIVER_DONE, DRIVER_AGAIN, DRIVER_FAILED, DRIVER_RESULTS };

struct driver_options {
    struct cluster *cluster;
    struct driver_clock clock;
    enum control_target target;
    const char *namespace;    /* "": all */
    const char *labels;       /* selects the pods, Services and claims to watch; "": all */
    bool autoscalers;         /* create HorizontalPodAutoscalers for jobs that ask for one */
    struct control_gang gang; /* create PodGroups, for every job */
    size_t jobs_side_by_side; /* 0: 21, of which one namespace has at most 16 */
    bool restart_rules;       /* containers may have restartPolicyRules */
    bool watch_nodes;         /* pods of lost nodes are replaced (control/broken.h) */
    int64_t lost_after_ms;    /* also after that time of silence; 0: never because of time */
    size_t objects_max;       /* 0: 500,000 */
    int64_t resync_ms;        /* interval of steps for each live job, whatever the watches show; 0:
                                 DRIVER_RESYNC_MS */
    /* Writes to the log; `what` is a word, `key` a job's. May be NULL. */
    void (*say)(void *arg, const char *what, const char *key, const char *sentence);
    /* A write of a step was just carried out; `after` is the job as it is now. May be NULL. */
    void (*did)(void *arg, const struct control_effect *effect, const json_t *before,
                const json_t *after);
    /* The job "namespace/name" no longer exists. May be NULL. */
    void (*gone)(void *arg, const char *key);
    /* A creation of a step was refused. May be NULL. */
    void (*refused)(void *arg, const struct control_effect *effect);
    /* A step is over: all its requests are answered. May be NULL. */
    void (*stepped)(void *arg, enum driver_result result, int64_t took_ms);
    void *arg;
};

/* Counters since the start, and present values. */
struct driver_numbers {
    uint64_t queue_adds, queue_retries;
    uint64_t events_left_out; /* events that were not sent, because too many waited */
    const struct histogram *queue_waited, *queue_worked; /* borrowed */
    size_t queue_depth;
    size_t steps, steps_max; /* in progress */
    size_t live_jobs;        /* driver_live_jobs */
};

/* Starts the watches. */
int driver_new(const struct driver_options *options, struct driver **ret, struct muster_err *err);
/* Cancels what is in progress; NULL is allowed. */
struct driver *driver_free(struct driver *driver);

/* Processes a part of the queue. */
void driver_turn(struct driver *driver);
/* Says that containers may have restartPolicyRules: pods that are created from now on have them. */
void driver_use_restart_rules(struct driver *driver);

/* Whether all resources were listed at least once. */
bool driver_is_synced(const struct driver *driver);

/* Returns the number of jobs that are not finished, and of finished ones with work in progress. */
size_t driver_live_jobs(const struct driver *driver);
/* Whether there is a live job, or one that will need a step (a time to live that runs). */
bool driver_is_busy(const struct driver *driver);
struct driver_numbers driver_numbers(const struct driver *driver);
