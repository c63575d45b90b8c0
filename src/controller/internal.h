/* What the files of the driver share. Not for use outside src/controller. */
#pragma once

#include "controller/cache.h"
#include "controller/driver.h"
#include "controller/event.h"
#include "controller/flow.h"
#include "controller/nodes.h"
#include "controller/queue.h"

#include <uthash.h>

/* One job with which something is under way. */
struct task {
    struct driver *driver;
    bool flowing; /* its flow is not at its end */
    bool unheard; /* a request of it was not answered */
    bool reading; /* the job, which was packed, is asked for */
    struct flow flow;
    int64_t began_ms;
    int64_t shown_by_ms; /* until then the watches may show what it wrote */
    UT_hash_handle hh;
    char key[];
};

/* A request under way. */
struct call {
    struct driver *driver;
    struct call *prev, *next;
    struct cluster_call *sent;
    void (*done)(struct call *call, const struct cluster_answer *answer);
    struct task *task; /* of events: NULL */
    size_t item;
    bool reads;  /* the object of `item` */
    bool idle;   /* when it was sent, the cache showed that it was done */
    char *event; /* of an event that is told: its "namespace/name" */
    size_t event_bytes;
    int64_t event_unix_ms; /* when it happened */
};

struct driver {
    struct driver_options options;
    struct cache cache;
    struct queue queue;
    struct task *tasks;
    struct call *calls;
    struct doubt *doubts;
    size_t doubt_count;
    size_t events; /* under way, and what they weigh */
    size_t event_bytes;
    uint64_t events_left_out;
    bool events_refused; /* for want of the right, which was said */
    bool leaves_out;     /* that was said, and some of those that wait are still there */
    int64_t heard_ms;    /* when the cluster last said anything */
    int64_t resync_at_ms;
    size_t resynced; /* jobs of this resync: each a little later */
    struct watch {
        struct driver *driver;
        enum control_resource resource;
        struct cluster_watch *watch;
    } watches[CONTROL_RESOURCES];
    struct cluster_watch *node_watch; /* NULL: nodes are not looked at */
    struct nodes nodes;
};

extern const struct cluster_resource driver_resources[CONTROL_RESOURCES];
extern const struct cluster_resource driver_events;
extern const struct cluster_resource driver_nodes;

/* Jobs are woken when a node falls silent, is out of service, or is back. */
int driver_watch_nodes(struct driver *driver, struct muster_err *err);

/* The time by the clock of the options. */
static inline int64_t driver_now_ms(const struct driver *driver)
{
    return driver->options.clock.now_ms(driver->options.clock.arg);
}

static inline int64_t driver_now_unix_ms(const struct driver *driver)
{
    return driver->options.clock.now_unix_ms(driver->options.clock.arg);
}

/* There was nobody who answered. */
static inline bool cluster_was_silent(const struct cluster_answer *answer)
{
    return answer->http_status == 0 &&
           (answer->code == MUSTER_EUNAVAIL || answer->code == MUSTER_ETIMEDOUT);
}

/* A new call, in the list; NULL without memory. */
struct call *driver_call(struct driver *driver,
                         void (*done)(struct call *, const struct cluster_answer *));
/* Sends it; on failure the call is gone. */
int driver_send(struct call *call, const struct cluster_request *request);

void driver_say(const struct driver *driver, const char *what, const char *key,
                const char *sentence);
void driver_arm(struct driver *driver);

/* The request of an effect that has one; the caller releases its body, which is NULL without
 * memory, and of a deletion. */
struct cluster_request driver_request(const struct task *task, const struct control_effect *effect);
/* Looks at all that is the job's, and begins the flow of what is to be done. */
int driver_decide(struct task *task, json_t *job, struct muster_err *err);

/* Begins a step; the task is its owner from then on, and releases the key in the end. */
void driver_step(struct driver *driver, const char *key);
/* A watch has shown something of it. */
void driver_task_shown(struct driver *driver, const char *key);
/* Its time to be shown is over. */
void driver_tasks_expire(struct driver *driver, int64_t now_ms);
int64_t driver_tasks_next(const struct driver *driver);
void driver_task_free(struct task *task);

/* Whether the job, which has not begun, has errors that job_check finds; `err` has the first. On
 * this machine the API server has looked before. */
bool driver_refuses(const struct control_view *view, struct muster_err *err);

/* Sends an event about the job, and forgets it; beyond DRIVER_EVENTS_BYTES_MAX it is left out. */
void driver_tell(struct driver *driver, const json_t *job, const struct control_effect *event);
/* The call, which may be of an event, is over. */
void driver_forget_event(struct call *call);

/* ---- writes whose answers were lost (doubt.c) ---- */

/* Effect number `item` is sent: if it is in doubt, the answer tells, not the cache. True: the cache
 * shows that there is nothing to do by now, whoever did it. */
bool driver_ask_again(struct task *task, size_t item);
/* Its answer was taken into the flow: it is counted, in doubt, or neither. `job`: as it was before.
 * What does not concern pods, Services or the status is never in doubt. */
void driver_note_answer(const struct call *call, const struct cluster_answer *answer, json_t *job);
/* The cache has changed for that job; NULL: for many. */
void driver_look_at_doubts(struct driver *driver, const char *key);
/* The job is gone; NULL: all. */
void driver_forget_doubts(struct driver *driver, const char *key);
