/* What a kubelet decides for one pod: which container to start, signal or restart, and what the
 * pod's status says.
 *
 * One machine per pod. The agent feeds it what happened, carries the effects out in their order,
 * and writes pod_status() to the store at each POD_STATUS. After a crash the machine is built again
 * from the pod object, then the supervisor's records are fed in (events of attempts already known
 * change nothing), then POD_ADOPTED. Until then, or until SCHEDULED, nothing is decided.
 *
 * Layer: pure: time comes in with each event. Ownership: pod_new/pod_free; the machine holds a
 * reference to the pod object and reads its spec only at init. Not thread-safe.
 * Source: kubelet's documented behaviour (pod lifecycle), see docs/differences.md.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POD_CONTAINERS_MAX = 32, POD_EFFECTS_MAX = 2 * POD_CONTAINERS_MAX + 4 };

/* Containers are numbered over the whole pod: first the init containers in order, then the main
 * ones. Attempts count from 0: attempt n is the start after n restarts. */
enum pod_event_kind {
    POD_TICK,          /* time passed */
    POD_SCHEDULED,     /* its resources are reserved: containers may start */
    POD_UNSCHEDULABLE, /* its resources are not free: message says what it waits for */
    POD_STARTED,       /* container, attempt: its process runs */
    POD_EXITED,        /* container, attempt: ended with code (128 + signal if killed), oom */
    POD_START_FAILED,  /* container, attempt: never ran. code > 0: it ends as if it had exited with
                          that code (a command that cannot be executed); code 0: it is tried again
                          with back-off (missing ConfigMap, image …) */
    POD_DELETE,        /* the object has a deletionTimestamp; grace_s: 0 kills at once */
    POD_ADOPTED,       /* all records of a former agent were fed in: the pod goes on */
    POD_LOST,          /* its processes are gone without a record (reboot): reason, message */
};

struct pod_event {
    enum pod_event_kind kind;
    int64_t now_unix_ms;
    size_t container;
    int attempt;
    int code;
    bool oom;
    int64_t peak_memory_bytes; /* EXITED; 0: not known */
    int64_t at_unix_ms;        /* STARTED, EXITED, DELETE: when it happened; 0: now */
    int64_t grace_s;           /* DELETE: negative: the pod's terminationGracePeriodSeconds */
    bool interrupt;            /* DELETE: INT comes first, TERM after half of the grace */
    const char *reason;        /* START_FAILED, LOST: borrowed for the call */
    const char *message;
};

/* The effects, in the order of a step: STATUS and WAKE_AT come first. If a START is answered at
 * once by an event (START_FAILED), the status and timer of that event come last and so remain. */
enum pod_effect_kind {
    POD_START,   /* container, attempt: each is started once at most, even after a crash (the
                    supervisor's record decides) */
    POD_SIGNAL,  /* container, attempt, signal (SIGINT, SIGTERM or SIGKILL) to its whole process
                    group; first: it was not asked to end before */
    POD_STATUS,  /* pod_status() changed: write it */
    POD_WAKE_AT, /* feed a TICK at at_unix_ms; one per step, replaces the former */
    POD_GONE,    /* deleted and all its processes ended: remove the object */
};

struct pod_effect {
    enum pod_effect_kind kind;
    size_t container;
    int attempt;
    int signal;
    bool first;
    int64_t at_unix_ms;
};

struct pod_effects {
    struct pod_effect list[POD_EFFECTS_MAX];
    size_t count;
};

struct pod; /* the state machine of a pod */

/* The place where the pod runs. Texts are copied. */
struct pod_place {
    const char *node_name;
    const char *host_ip;
    const char *pod_ip;
};

/* Reads the spec and, after a crash, the status. Nothing happens until the first event.
 * MUSTER_EDATA: no containers, or too many. Returns NULL on failure. */
struct pod *pod_new(json_t *object, const struct pod_place *place, struct muster_err *err);
struct pod *pod_free(struct pod *pod);

void pod_step(struct pod *pod, const struct pod_event *event, struct pod_effects *ret_effects);

/* Returns the status object as kubectl expects it; new reference, NULL when out of memory. */
json_t *pod_status(const struct pod *pod);

size_t pod_container_count(const struct pod *pod);
/* Return the container's spec and its name; borrowed. */
const json_t *pod_container(const struct pod *pod, size_t container);
const char *pod_container_name(const struct pod *pod, size_t container);
/* Whether it is Succeeded or Failed and has no process left. */
bool pod_is_finished(const struct pod *pod);

/* Returns NULL, or the invariant that the machine violates. Tests call it after each step. */
const char *pod_check_invariants(const struct pod *pod, const struct pod_effects *effects);
/* Appends a line for each effect. */
void pod_trace(const struct pod_effects *effects, struct buf *out);
