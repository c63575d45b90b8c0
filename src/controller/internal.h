/* What the files of the driver share. Not for use outside src/controller. */
#pragma once

#include "controller/cache.h"
#include "controller/driver.h"
#include "controller/event.h"
#include "controller/flow.h"
#include "controller/nodes.h"
#include "controller/queue.h"

#include <uthash.h>

/* One job for which something is in progress. */
struct task {
    struct driver *driver;
    bool flowing; /* its flow has not ended */
    bool unheard; /* one of its requests got no answer */
    bool reading; /* the job, which was packed, is being read */
    struct flow flow;
    int64_t began_ms;
    int64_t shown_by_ms; /* how long to wait until the watches show what it wrote */
    UT_hash_handle hh;
    char key[];
};

/* A request in progress. */
struct call {
    struct driver *driver;
    struct call *prev, *next;
    struct cluster_call *sent;
    void (*done)(struct call *call, const struct cluster_answer *answer);
    struct task *task; /* NULL for events */
    size_t item;
    bool reads;  /* reads the object of `item` */
    bool idle;   /* when it was sent, the cache already showed the result */
    char *event; /* of an event: its "namespace/name" */
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
    size_t events; /* number and size of those in progress */
    size_t event_bytes;
    uint64_t events_left_out;
    bool events_refused; /* for lack of permission; this was reported */
    bool leaves_out;     /* this was reported, and some events still wait */
    int64_t heard_ms;    /* when the cluster last answered */
    int64_t resync_at_ms;
    size_t resynced; /* jobs of this resync: each is due a little later than the one before */
    struct watch {
        struct driver *driver;
        enum control_resource resource;
        struct cluster_watch *watch;
    } watches[CONTROL_RESOURCES];
    struct cluster_watch *node_watch; /* NULL: nodes are not watched */
    struct nodes nodes;
};

extern const struct cluster_resource driver_resources[CONTROL_RESOURCES];
extern const struct cluster_resource driver_events;
extern const struct cluster_resource driver_nodes;

/* Starts the watch that wakes jobs when a node falls silent, is out of service, or is back. */
int driver_watch_nodes(struct driver *driver, struct muster_err *err);

/* Returns the time by the clock of the options. */
static inline int64_t driver_now_ms(const struct driver *driver)
{
    return driver->options.clock.now_ms(driver->options.clock.arg);
}

static inline int64_t driver_now_unix_ms(const struct driver *driver)
{
    return driver->options.clock.now_unix_ms(driver->options.clock.arg);
}

/* Whether nobody answered. */
static inline bool cluster_was_silent(const struct cluster_answer *answer)
{
    return answer->http_status == 0 &&
           (answer->code == MUSTER_EUNAVAIL || answer->code == MUSTER_ETIMEDOUT);
}

/* Returns a new call, which is in the list; NULL without memory. */
struct call *driver_call(struct driver *driver,
                         void (*done)(struct call *, const struct cluster_answer *));
/* Sends the call; on failure the call is freed. */
int driver_send(struct call *call, const struct cluster_request *request);

void driver_say(const struct driver *driver, const char *what, const char *key,
                const char *sentence);
void driver_arm(struct driver *driver);

/* Returns the request of an effect that has one. The caller releases its body; the body is NULL for
 * a deletion, and without memory. */
struct cluster_request driver_request(const struct task *task, const struct control_effect *effect);
/* Looks at all objects of the job, and begins the flow of what must be done. */
int driver_decide(struct task *task, json_t *job, struct muster_err *err);

/* Begins a step; from then on the task owns the key, and releases it at the end. */
void driver_step(struct driver *driver, const char *key);
/* A watch has shown an object of this job. */
void driver_task_shown(struct driver *driver, const char *key);
/* Ends the tasks whose time to wait for the watches is over. */
void driver_tasks_expire(struct driver *driver, int64_t now_ms);
int64_t driver_tasks_next(const struct driver *driver);
void driver_task_free(struct task *task);

/* Whether the job, which has not begun, has errors that job_check finds; `err` has the first. On
 * this machine the API server has checked it before. */
bool driver_refuses(const struct control_view *view, struct muster_err *err);

/* Sends an event about the job, without waiting for it; beyond DRIVER_EVENTS_BYTES_MAX it is left
 * out. */
void driver_tell(struct driver *driver, const json_t *job, const struct control_effect *event);
/* The call, which may carry an event, is over. */
void driver_forget_event(struct call *call);

/* ---- writes whose answers were lost (doubt.c) ---- */

/* Called before effect number `item` is sent: if it is in doubt, its answer decides, not the cache.
 * Returns true if the cache shows that nothing is left to do, whoever did it. */
bool driver_ask_again(struct task *task, size_t item);
/* Called when the answer was taken into the flow: the effect is counted, in doubt, or neither.
 * `job`: as it was before. Only effects on pods, Services and the status can be in doubt. */
void driver_note_answer(const struct call *call, const struct cluster_answer *answer, json_t *job);
/* The cache has changed for that job; NULL: for many jobs. */
void driver_look_at_doubts(struct driver *driver, const char *key);
/* The job is gone; NULL: forget the doubts of all jobs. */
void driver_forget_doubts(struct driver *driver, const char *key);
