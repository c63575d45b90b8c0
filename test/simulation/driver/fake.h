/* A cluster that misbehaves as a real one may, under a clock that jumps from event to event:
 * requests overtake each other, are refused, lost, or carried out without an answer; watches lag,
 * each on its own, leave states out, repeat themselves and begin again. Its pods run, end and go.
 *
 * Tests only. Ownership: fake_init/fake_done.
 */
#pragma once

#include "controller/cluster.h"
#include "controller/driver.h"

enum { FAKE_WATCHES = 16, FAKE_DRIVERS = 2, FAKE_LOST_MS = 60000 };

/* The state of the node of all pods whose index is 1. */
enum fake_node { FAKE_NODE_ANSWERS, FAKE_NODE_SILENT, FAKE_NODE_OUT_OF_SERVICE };

struct fake_request;

struct fake_watch {
    struct fake *fake;
    struct cluster_scope scope;
    cluster_watch_fn *fn;
    void *arg;
    size_t next; /* index in the log */
    int64_t due_ms;
    bool open, listed;
    bool listing;    /* its objects were sent, but not its end */
    int64_t version; /* the version of the listing */
};

struct fake_driver {
    struct fake *fake;
    struct driver *driver;
    int64_t wake_ms;
};

/* Chances, in percent. */
struct fake_faults {
    uint32_t lost, unanswered, refused, throttled, repeated, relisted, skipped;
    uint32_t lag_ms; /* the longest delay of anything */
};

struct fake {
    struct cluster cluster;   /* must be first */
    struct control_gang gang; /* for drivers that are started */
    struct fake_faults faults;
    uint64_t random;
    int64_t now_ms;
    int64_t version;
    int64_t uids;
    json_t *objects; /* {"pods": {"namespace/name": object}} */
    json_t *log;     /* [{"resource", "gone", "object"}] */
    json_t *fates;   /* {"pod name": how often it still fails} */
    struct fake_request *requests;
    struct fake_watch watches[FAKE_WATCHES];
    struct fake_driver drivers[FAKE_DRIVERS];
    int64_t resync_ms; /* of the drivers; far away unless a test sets it */
    size_t sent;       /* requests, without those for events */
    size_t creations;  /* how many of these create objects */
    size_t events;     /* requests for events */
    size_t pods_made;
    struct {
        size_t pods_created, pods_deleted, ends;
    } counted;        /* what drivers report that they did */
    int64_t failures; /* pods that have failed */
    enum fake_node node;
    int64_t silent_ms;     /* since when it is silent, or answers */
    int64_t lost_from_ms;  /* its pods may be deleted by force from then on; INT64_MAX: never */
    int64_t lost_until_ms; /* it was lost until then */
    bool late;             /* the current request is of a driver that has ended */
    bool excused;       /* such a request wrote the job, perhaps after another driver had read it */
    const char *broken; /* the first invariant that did not hold */
};

void fake_init(struct fake *fake, uint64_t seed);
void fake_done(struct fake *fake);
uint32_t fake_draw(struct fake *fake, uint32_t below);

/* Start and stop the n-th driver; it stops as in a crash. */
void fake_start(struct fake *fake, int n);
void fake_stop(struct fake *fake, int n);

/* Lets the next due thing happen; returns false if nothing is due before `until_ms`. */
bool fake_step(struct fake *fake, int64_t until_ms);

/* What a user does. */
void fake_create_job(struct fake *fake, json_t *job);
void fake_patch_job(struct fake *fake, const char *path, json_t *value);
void fake_delete(struct fake *fake, const char *resource, const char *name);
void fake_put(struct fake *fake, const char *resource, json_t *object);

/* A node with the taint is silent, too. */
void fake_set_node(struct fake *fake, enum fake_node node);

json_t *fake_get(const struct fake *fake, const char *resource, const char *name); /* borrowed */
size_t fake_count(const struct fake *fake, const char *resource);
bool fake_job_is(const struct fake *fake, const char *condition);
