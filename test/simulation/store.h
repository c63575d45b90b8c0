/* A store of one job's objects with the manners of the Kubernetes API that the control core relies
 * on: names are unique, deletion is by uid and takes time, writes of the job need its version.
 *
 * Tests only. Ownership: sim_store_init/sim_store_done.
 */
#pragma once

#include "control/control.h"

#include <jansson.h>
#include <stdint.h>

struct sim_store {
    json_t *job; /* NULL when it was deleted */
    json_t *pods;
    json_t *services;
    json_t *claims;
    json_t *events;  /* in order: {"type", "reason", "message", "at"} */
    json_t *made;    /* {"pod name": how often it was created} */
    int64_t version; /* grows with each change of any object */
    int64_t job_version;
    int64_t uids;
};

/* What a controller sees: deep copies, so that it may be kept and used later, when it is old. */
struct sim_view {
    struct control_view view;
    int64_t job_version;
};

void sim_store_init(struct sim_store *store, json_t *job);
void sim_store_done(struct sim_store *store);

void sim_store_look(const struct sim_store *store, int64_t now_unix_ms, struct sim_view *ret);
void sim_view_done(struct sim_view *view);

/* Carries out one effect as a driver would; *job_version is the view's, and is updated by each
 * write of the job. Negative: refused. */
int sim_store_apply(struct sim_store *store, const struct control_effect *effect,
                    int64_t *job_version, int64_t now_unix_ms);

/* What a user or a kubelet does. */
json_t *sim_store_pod(const struct sim_store *store, const char *uid);
void sim_store_remove_pod(struct sim_store *store, const char *uid);
void sim_store_delete_pod(struct sim_store *store, const char *name, int64_t now_unix_ms);
void sim_store_set_status(struct sim_store *store, const char *uid, json_t *status);
/* Merges into the job: {"spec": {…}, "metadata": {"annotations": {…}}}. */
void sim_store_patch_job(struct sim_store *store, json_t *patch);
