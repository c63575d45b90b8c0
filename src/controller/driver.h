/* The driver of a controller: watches a cluster, runs control_reconcile for each job that changed,
 * and has its effects carried out. It is the same over the embedded store and a Kubernetes API
 * server (cluster.h); the clock, too, is its program's.
 *
 * A job is one key in a queue: never two steps of it at a time, steps of different jobs side by
 * side. A step sees what the watches have shown (cache.h), sends its effects in phases (flow.h),
 * and is over when the watches have shown what it wrote; that is waited for DRIVER_SHOWN_MS at
 * most. A step that failed is made again after a pause that grows.
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
    DRIVER_EVENTS_BYTES_MAX = 32 << 20, /* that wait for their turn: some 16,000 */
    DRIVER_RESYNC_MS = 12 * 3600000,
    DRIVER_EVENT_MS = 600000, /* that one may wait for its turn: events are last */
};

struct driver_clock {
    int64_t (*now_ms)(void *arg); /* does not jump */
    int64_t (*now_unix_ms)(void *arg);
    /* Calls driver_turn then (at once: INT64_MIN), from the loop; takes the place of an earlier
     * call. INT64_MAX: not at all. */
    void (*call_at)(void *arg, int64_t at_ms);
    void *arg;
};

/* How a step ended: all was done, the cluster was further than the view, or something failed. */
enum driver_result { DRIVER_DONE, DRIVER_AGAIN, DRIVER_FAILED, DRIVER_RESULTS };

struct driver_options {
    struct cluster *cluster;
    struct driver_clock clock;
    enum control_target target;
    const char *namespace;    /* "": all */
    const char *labels;       /* of pods, Services and claims that are watched; "": all */
    bool autoscalers;         /* HorizontalPodAutoscalers are made where a job asks for one */
    struct control_gang gang; /* so are PodGroups, of every job */
    size_t jobs_side_by_side; /* 0: 21, of which one namespace has 16 at most */
    bool restart_rules;       /* containers may have restartPolicyRules */
    bool watch_nodes;         /* pods of lost nodes are replaced (control/broken.h) */
    int64_t lost_after_ms;    /* … after that silence, too; 0: never by time */
    size_t objects_max;       /* 0: 500,000 */
    int64_t resync_ms;        /* so often each job that is not finished gets a step, whatever the
                                 watches show; 0: DRIVER_RESYNC_MS */
    /* Writes to the log; `what` is a word, `key` a job's. May be NULL. */
    void (*say)(void *arg, const char *what, const char *key, const char *sentence);
    /* A write of a step was carried out, just now; `after` is the job as it is now. May be NULL. */
    void (*did)(void *arg, const struct control_effect *effect, const json_t *before,
                const json_t *after);
    /* The job "namespace/name" is not there any more. May be NULL. */
    void (*gone)(void *arg, const char *key);
    /* A creation of a step was refused. May be NULL. */
    void (*refused)(void *arg, const struct control_effect *effect);
    /* A step is over, its requests are answered. May be NULL. */
    void (*stepped)(void *arg, enum driver_result result, int64_t took_ms);
    void *arg;
};

/* Since the start, and now. */
struct driver_numbers {
    uint64_t queue_adds, queue_retries;
    uint64_t events_left_out; /* that were not even sent, as too many waited */
    const struct histogram *queue_waited, *queue_worked; /* borrowed */
    size_t queue_depth;
    size_t steps, steps_max; /* under way */
    size_t live_jobs;        /* driver_live_jobs */
};

/* Starts the watches. */
int driver_new(const struct driver_options *options, struct driver **ret, struct muster_err *err);
/* Cancels what is under way; NULL is fine. */
struct driver *driver_free(struct driver *driver);

/* Works off a part of the queue. */
void driver_turn(struct driver *driver);
/* It is known that containers may have restartPolicyRules: pods that are made from now on have. */
void driver_use_restart_rules(struct driver *driver);

/* Everything was listed, once at least. */
bool driver_is_synced(const struct driver *driver);

/* Jobs that are not finished, and finished ones for which something is under way. */
size_t driver_live_jobs(const struct driver *driver);
/* There is a live job, or one that a step is due for (a time to live that runs). */
bool driver_is_busy(const struct driver *driver);
struct driver_numbers driver_numbers(const struct driver *driver);
