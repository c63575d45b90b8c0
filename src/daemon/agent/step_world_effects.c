/* Carries out the step's effects on the simulated machine. See step_world.h. Tests only. */
#include "daemon/agent/step_fixture.h"
#include "daemon/agent/step_world.h"

#include "base/doc.h"
#include "base/time/timestamp.h"

#include <stdio.h>
#include <string.h>

/* ---- Effects ---- */

static void feed(struct world *w, const struct agent_effect *e, const struct pod_event *news)
{
    static const struct pod_event food[] = {
        [AGENT_FEED_ADOPTED] = {.kind = POD_ADOPTED},
        [AGENT_FEED_SCHEDULED] = {.kind = POD_SCHEDULED},
        [AGENT_FEED_DELETE] = {.kind = POD_DELETE},
        [AGENT_FEED_LOST] = {.kind = POD_LOST, .reason = "SupervisorLost"}};
    struct world_pod *pod = world_pod_of(w, e->pod);
    if (pod) {
        struct pod_event event = e->food == AGENT_FEED_NEWS ? *news : food[e->food];
        event.grace_s = e->grace_s;
        world_feed(w, pod, event);
    }
}

static void place(struct world *w, struct world_pod *pod)
{
    size_t held = 0;
    for (size_t i = 0; i < WORLD_HOLDERS; i++) {
        held += w->held[i][0] != '\0';
    }
    if (pod->wants_gpu && !pod->has_gpu && held < WORLD_GPUS) {
        struct world_object *object = world_object_of(w, pod);
        world_hold(w, pod->uid, pod->job);
        pod->has_gpu = true;
        if (object) {
            object->placed = true;
        }
    }
    bool placed = !pod->wants_gpu || pod->has_gpu;
    world_post(w, (struct agent_event){.kind = placed ? AGENT_PLACED : AGENT_NOT_PLACED,
                                       .pod = pod->number});
}

static void give_back(struct world *w, const char *uid)
{
    for (size_t i = 0; i < WORLD_HOLDERS; i++) {
        if (strcmp(w->held[i], uid) == 0) {
            w->held[i][0] = '\0';
            world_post(w, (struct agent_event){.kind = AGENT_ROOM_MADE});
        }
    }
}

void world_remove(struct world *w, struct world_object *object)
{
    world_post_look(w, object->key);
    json_decref(object->status);
    *object = (struct world_object){0};
}

static void remove_object(struct world *w, const struct world_pod *pod)
{
    struct world_object *object = world_object_of(w, pod);
    if (object && !w->store_fails) {
        world_remove(w, object);
    }
    world_post(w, (struct agent_event){
                      .kind = AGENT_REMOVED, .pod = pod->number, .settled = !w->store_fails});
}

static void let_go(struct world *w, struct world_pod *pod)
{
    world_require(w, !world_runs(&w->supervisors[pod->job], pod->uid),
                  "a pod is let go while something of it runs");
    w->finished++;
    give_back(w, pod->uid);
    pod_free(pod->machine);
    *pod = (struct world_pod){0};
}

static void look_from(struct world *w, size_t first, size_t step)
{
    for (size_t i = first; i < WORLD_NAMES; i += step) {
        char key[16];
        (void)snprintf(key, sizeof key, "d/%zu", i);
        world_post_look(w, key);
    }
}

void world_look_again(struct world *w)
{
    look_from(w, 0, 1);
}

static void end_job(struct world *w, int64_t number)
{
    struct world_supervisor *s = world_supervisor_of(w, number);
    world_require(w, s != NULL, "a supervisor that is not known is ended");
    if (s && s->alive) {
        s->ending = true;
    } else if (s) {
        world_post(w, (struct agent_event){.kind = AGENT_SUPERVISOR_ENDED, .job = number});
    }
}

static void close_job(struct world *w, int64_t number)
{
    struct world_supervisor *s = world_supervisor_of(w, number);
    world_require(w, s && !s->alive, "a supervisor that lives is let go");
    for (size_t i = 0; s && i < WORLD_HOLDERS; i++) {
        if (w->held[i][0] && w->held_by[i] == (size_t)(s - w->supervisors)) {
            w->held[i][0] = '\0';
            world_post(w, (struct agent_event){.kind = AGENT_ROOM_MADE});
        }
    }
    if (s) {
        s->connected = false;
        look_from(w, (size_t)(s - w->supervisors), WORLD_JOBS);
    }
}

static void discard(struct world *w, const char *key)
{
    struct world_object *object = &w->objects[key[2] - '0'];
    if (w->store_fails) {
        w->retry_armed = true;
    } else if (object->there) {
        world_require(w, object->deleting, "an object that nobody deleted is discarded");
        world_remove(w, object);
    }
}

static void carry_out(struct world *w, const struct agent_effect *e, const struct world_event *item)
{
    bool of_pod = e->kind != AGENT_ADMIT && e->kind != AGENT_DISCARD && e->kind != AGENT_END_JOB &&
                  e->kind != AGENT_CLOSE_JOB && e->kind != AGENT_RETRY_SOON &&
                  e->kind != AGENT_LOOK_AGAIN;
    struct world_pod *pod = of_pod ? world_pod_of(w, e->pod) : NULL;
    if (of_pod && !pod) {
        return;
    }
    switch (e->kind) {
    case AGENT_ADMIT: world_admit(w, e, &item->event); return;
    case AGENT_DISCARD: discard(w, item->event.seen.key); return;
    case AGENT_FEED: feed(w, e, &item->news); return;
    case AGENT_PLACE: place(w, pod); return;
    case AGENT_TELL_WAITS: return;
    case AGENT_WRITE:
        world_post(w, (struct agent_event){.kind = AGENT_WROTE,
                                           .pod = e->pod,
                                           .status = world_write_status(w, pod)});
        return;
    case AGENT_KEEP: pod->keeping = true; return;
    case AGENT_REMOVE: remove_object(w, pod); return;
    case AGENT_LET_GO: let_go(w, pod); return;
    case AGENT_END_JOB: end_job(w, e->job); return;
    case AGENT_CLOSE_JOB: close_job(w, e->job); return;
    case AGENT_RETRY_SOON: w->retry_armed = true; return;
    case AGENT_LOOK_AGAIN: world_look_again(w); return;
    }
}

/* ---- Events ---- */

static void look(struct world *w, struct world_event *item)
{
    const struct world_object *object = &w->objects[item->key[2] - '0'];
    item->event.kind = AGENT_SEEN;
    item->event.seen = (struct agent_seen){.key = item->key};
    if (object->there) {
        item->event.seen.uid = object->uid;
        item->event.seen.job = object->job;
        item->event.seen.over = world_is_over(object);
        item->event.seen.deleting = object->deleting;
        item->event.seen.may_have_run = doc_at(object->status, "startTime") != NULL;
        item->event.seen.grace_s = object->grace_s;
        item->event.seen.deadline_unix_ms = TIMESTAMP_NONE;
    }
}

/* Prints a step for a developer who examines a seed. */
static void show(const struct world_event *item, const struct agent_effects *effects)
{
    struct buf text;
    buf_init(&text, 1 << 12);
    put_effects(effects, &text);
    print_message("event %d %s pod %lld job %lld: %s\n", item->event.kind, item->key,
                  (long long)item->event.pod, (long long)item->event.job, buf_str(&text));
    buf_done(&text);
}

void world_handle(struct world *w)
{
    if (w->count == 0) {
        return;
    }
    struct world_event item = w->queue[w->first];
    w->first = (w->first + 1) % WORLD_EVENTS;
    w->count--;
    if (item.key[0]) {
        look(w, &item);
    }
    const struct agent_effects *effects = agent_step(&w->agent, &item.event);
    if (w->shows) {
        show(&item, effects);
    }
    for (size_t i = 0; i < effects->count; i++) {
        carry_out(w, &effects->list[i], &item);
    }
    const char *broken = agent_state_check(&w->agent);
    world_require(w, !broken, broken);
}
