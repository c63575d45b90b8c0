/* A simulated machine around the agent's step: a store whose writes sometimes fail, supervisors
 * that are killed, processes that end or cannot start, a controller that dies. Pods have their
 * real machines (pod/pod.h). What the real agent posts is posted here in the same order.
 *
 * Tests only.
 */
#pragma once

#include "daemon/agent/step.h"
#include "pod/pod.h"

#include <jansson.h>

enum {
    WORLD_NAMES = 6,
    WORLD_JOBS = 3,
    WORLD_GPUS = 2,
    WORLD_HOLDERS = WORLD_GPUS + WORLD_NAMES,
    WORLD_EVENTS = 4096,
    WORLD_RECORDS = 64
};

/* An object of the store; a name has at most one. */
struct world_object {
    bool there;
    char key[16], uid[16], job[16];
    json_t *status; /* NULL: never written */
    bool deleting;
    int64_t grace_s;
    int64_t deadline_unix_ms;
    bool placed; /* its job's placement says that it has a GPU */
};

enum world_run { RUN_ASKED, RUN_RUNNING, RUN_ENDED, RUN_FAILED };

/* An attempt of a container, as its supervisor has recorded it. */
struct world_record {
    char uid[16];
    int attempt;
    enum world_run run;
    int code;
};

struct world_supervisor {
    bool alive;
    bool connected; /* to the controller that is alive now */
    bool told_ready;
    bool ending;
    bool untold_loss; /* it was killed while no controller listened */
    int64_t number;   /* the number of its job, for the controller */
    struct world_record records[WORLD_RECORDS];
    size_t count;
};

/* A pod that the agent looks after. */
struct world_pod {
    int64_t number; /* 0: unused */
    char uid[16];
    size_t name, job;
    struct pod *machine;
    int64_t wake_unix_ms; /* 0: no timer */
    bool keeping;
    bool wants_gpu, has_gpu;
};

struct world_event {
    struct agent_event event;
    char key[16]; /* the key of a look, or "" */
    struct pod_event news;
};

struct world {
    uint64_t random;
    int64_t now_unix_ms;
    struct world_object objects[WORLD_NAMES];
    struct world_supervisor supervisors[WORLD_JOBS];
    struct world_pod pods[4 * WORLD_NAMES];
    struct world_event queue[WORLD_EVENTS];
    size_t first, count;
    struct agent_state agent;
    bool agent_there;
    bool shows; /* print each event and its effects */
    int uids;
    bool store_fails, starts_fail, admits_fail;
    bool retry_armed;
    char held[WORLD_HOLDERS][16];  /* uids of pods with a GPU, also of earlier controllers */
    size_t held_by[WORLD_HOLDERS]; /* the job of each of these pods */
    size_t starts;                 /* counted to show how much has happened */
    size_t finished;
    const char *broken; /* the first invariant that was violated */
};

uint32_t world_chance(struct world *w, uint32_t below);
/* Notes the first requirement that is violated. */
void world_require(struct world *w, bool kept, const char *what);

void world_post(struct world *w, struct agent_event event);
void world_post_look(struct world *w, const char *key);

/* Returns a managed pod; NULL if there is none, which violates an invariant. */
struct world_pod *world_pod_of(struct world *w, int64_t number);
/* Returns the store's object of the pod; NULL if it is gone, or if its name belongs to another
 * pod. */
struct world_object *world_object_of(struct world *w, const struct world_pod *pod);
/* Whether the object is Succeeded or Failed. */
bool world_is_over(const struct world_object *object);
void world_hold(struct world *w, const char *uid, size_t job);
/* Makes the pod's machine, and connects to its supervisor. This may fail for a pod that was not
 * bound before, because binding is a write. */
void world_admit(struct world *w, const struct agent_effect *e, const struct agent_event *event);
/* Feeds the pod's machine, and carries out what the machine asks for. */
void world_feed(struct world *w, struct world_pod *pod, struct pod_event event);
enum agent_status world_write_status(struct world *w, const struct world_pod *pod);

/* Returns the supervisor that has this number for the controller; NULL if there is none. */
struct world_supervisor *world_supervisor_of(struct world *w, int64_t number);
/* Whether an attempt of the pod (NULL: of any pod) has not ended. */
bool world_runs(const struct world_supervisor *s, const char *uid);
/* Moves one attempt to its next state: it starts, or ends with the code. */
void world_go_on(struct world *w, struct world_supervisor *s, int code);
/* Kills the supervisor with all its processes, as SIGKILL does. */
void world_kill(struct world *w, struct world_supervisor *s);
/* Reports what a supervisor reports to a controller that is new to it. */
void world_hello(struct world *w, struct world_supervisor *s);
/* Ends the supervisor, if it was asked to end. */
void world_end(struct world *w, struct world_supervisor *s);

/* Takes the object out of the store. */
void world_remove(struct world *w, struct world_object *object);
/* Posts a look at every name. */
void world_look_again(struct world *w);
/* Hands the first event of the queue to the step, carries its effects out, and checks its
 * invariants.
 */
void world_handle(struct world *w);
