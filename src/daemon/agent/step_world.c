/* See step_world.h. Tests only. */
#include "daemon/agent/step_world.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

uint32_t world_chance(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(w->random >> 33) % below;
}

void world_require(struct world *w, bool kept, const char *what)
{
    if (!kept && !w->broken) {
        w->broken = what;
    }
}

/* ---- The queue ---- */

static struct world_event *append(struct world *w)
{
    assert_true(w->count < WORLD_EVENTS);
    struct world_event *e = &w->queue[(w->first + w->count++) % WORLD_EVENTS];
    *e = (struct world_event){0};
    return e;
}

void world_post(struct world *w, struct agent_event event)
{
    append(w)->event = event;
}

void world_post_look(struct world *w, const char *key)
{
    if (w->agent_there) {
        text_copy(append(w)->key, 16, key);
    }
}

static void post_news(struct world *w, const struct world_pod *pod, struct pod_event news)
{
    struct world_event *e = append(w);
    e->event = (struct agent_event){.kind = AGENT_NEWS, .pod = pod->number};
    e->news = news;
}

/* ---- Finding pods and supervisors ---- */

struct world_pod *world_pod_of(struct world *w, int64_t number)
{
    for (size_t i = 0; number > 0 && i < 4 * WORLD_NAMES; i++) {
        if (w->pods[i].number == number) {
            return &w->pods[i];
        }
    }
    world_require(w, false, "an effect is about a pod that is not looked after");
    return NULL;
}

static struct world_pod *pod_by_uid(struct world *w, const char *uid)
{
    for (size_t i = 0; i < 4 * WORLD_NAMES; i++) {
        if (w->pods[i].number > 0 && strcmp(w->pods[i].uid, uid) == 0) {
            return &w->pods[i];
        }
    }
    return NULL;
}

struct world_supervisor *world_supervisor_of(struct world *w, int64_t number)
{
    for (size_t i = 0; i < WORLD_JOBS; i++) {
        if (w->supervisors[i].connected && w->supervisors[i].number == number) {
            return &w->supervisors[i];
        }
    }
    return NULL;
}

bool world_runs(const struct world_supervisor *s, const char *uid)
{
    for (size_t i = 0; i < s->count; i++) {
        bool same = !uid || strcmp(s->records[i].uid, uid) == 0;
        if (same && s->records[i].run <= RUN_RUNNING) {
            return true;
        }
    }
    return false;
}

/* ---- Supervisors ---- */

static void tell(struct world *w, const struct world_supervisor *s, const struct world_record *r)
{
    static const enum pod_event_kind kinds[] = {[RUN_ASKED] = POD_STARTED,
                                                [RUN_RUNNING] = POD_STARTED,
                                                [RUN_ENDED] = POD_EXITED,
                                                [RUN_FAILED] = POD_START_FAILED};
    const struct world_pod *pod = pod_by_uid(w, r->uid);
    if (s->connected && pod) {
        if (r->run == RUN_ENDED) {
            post_news(w, pod, (struct pod_event){.kind = POD_STARTED, .attempt = r->attempt});
        }
        post_news(
            w, pod,
            (struct pod_event){.kind = kinds[r->run], .attempt = r->attempt, .code = r->code});
    }
}

static void hear_start(struct world *w, struct world_supervisor *s, const char *uid, int attempt)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->records[i].uid, uid) == 0 && s->records[i].attempt == attempt) {
            tell(w, s, &s->records[i]); /* the attempt was started before */
            return;
        }
    }
    if (s->count == WORLD_RECORDS) { /* the records of the oldest pod are forgotten */
        world_require(w, s->records[0].run > RUN_RUNNING, "too much runs");
        memmove(s->records, s->records + 1, sizeof s->records[0] * --s->count);
    }
    struct world_record *r = &s->records[s->count++];
    *r = (struct world_record){.attempt = attempt};
    text_copy(r->uid, sizeof r->uid, uid);
    w->starts++;
}

static void change(struct world *w, struct world_supervisor *s, struct world_record *r, int code)
{
    if (r->run == RUN_ASKED && world_chance(w, 8) == 0 && w->starts_fail) {
        r->run = RUN_FAILED;
        r->code = 127;
    } else if (r->run == RUN_ASKED) {
        r->run = RUN_RUNNING;
    } else {
        r->run = RUN_ENDED;
        r->code = code;
    }
    tell(w, s, r);
}

void world_go_on(struct world *w, struct world_supervisor *s, int code)
{
    size_t from = s->count ? world_chance(w, (uint32_t)s->count) : 0;
    for (size_t i = 0; i < s->count && s->alive; i++) {
        struct world_record *r = &s->records[(from + i) % s->count];
        if (r->run <= RUN_RUNNING) {
            change(w, s, r, code);
            return;
        }
    }
}

/* Ends all processes of a supervisor; false if there were none. */
static bool end_all(struct world_supervisor *s)
{
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        if (s->records[i].run <= RUN_RUNNING) {
            s->records[i].run = RUN_ENDED;
            s->records[i].code = 137;
            any = true;
        }
    }
    return any;
}

void world_kill(struct world *w, struct world_supervisor *s)
{
    if (!s->alive || !end_all(s)) {
        return; /* another supervisor takes its place */
    }
    s->alive = false;
    s->untold_loss = !s->connected;
    if (s->connected) {
        world_post(w, (struct agent_event){.kind = AGENT_SUPERVISOR_LOST, .job = s->number});
    }
}

/* Reports what an adopted or a new supervisor reports first. */
void world_hello(struct world *w, struct world_supervisor *s)
{
    if (!s->connected || !s->alive || s->told_ready) {
        return;
    }
    if (s->untold_loss) {
        s->alive = s->untold_loss = false;
        world_post(w, (struct agent_event){.kind = AGENT_SUPERVISOR_LOST, .job = s->number});
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        tell(w, s, &s->records[i]);
    }
    s->told_ready = true;
    world_post(w, (struct agent_event){.kind = AGENT_SUPERVISOR_READY, .job = s->number});
}

/* Whether a process runs for an object that still exists. Processes of an object that was removed
 * while no controller listened end with the supervisor of their job. */
static bool runs_for_an_object(const struct world *w, const struct world_supervisor *s)
{
    bool found = false;
    for (size_t i = 0; i < WORLD_NAMES; i++) {
        found = found || (w->objects[i].there && world_runs(s, w->objects[i].uid));
    }
    return found;
}

void world_end(struct world *w, struct world_supervisor *s)
{
    if (s->alive && s->ending) {
        world_require(w, !runs_for_an_object(w, s),
                      "a supervisor ends while a pod of its job runs");
        (void)end_all(s);
        s->alive = s->ending = false;
        if (s->connected) {
            world_post(w, (struct agent_event){.kind = AGENT_SUPERVISOR_ENDED, .job = s->number});
        }
    }
}

/* ---- A pod's machine ---- */

struct world_object *world_object_of(struct world *w, const struct world_pod *pod)
{
    struct world_object *object = &w->objects[pod->name];
    return object->there && strcmp(object->uid, pod->uid) == 0 ? object : NULL;
}

enum agent_status world_write_status(struct world *w, const struct world_pod *pod)
{
    struct world_object *object = world_object_of(w, pod);
    if (w->store_fails) {
        return AGENT_STATUS_OWED;
    }
    if (object) {
        json_decref(object->status);
        object->status = pod_status(pod->machine);
        world_post_look(w, object->key);
    }
    return AGENT_STATUS_TAKEN;
}

static void start(struct world *w, const struct world_pod *pod, const struct pod_effect *effect)
{
    struct world_supervisor *s = &w->supervisors[pod->job];
    world_require(w, !pod->wants_gpu || pod->has_gpu, "a container starts without its GPU");
    if (w->starts_fail && world_chance(w, 3) == 0) {
        post_news(w, pod, (struct pod_event){.kind = POD_START_FAILED, .attempt = effect->attempt});
    } else if (s->alive) { /* otherwise the loss of the supervisor is about to be reported */
        hear_start(w, s, pod->uid, effect->attempt);
    }
}

static void signal_it(struct world *w, const struct world_pod *pod, const struct pod_effect *effect)
{
    struct world_supervisor *s = &w->supervisors[pod->job];
    for (size_t i = 0; i < s->count && s->alive; i++) {
        struct world_record *r = &s->records[i];
        bool same = strcmp(r->uid, pod->uid) == 0 && r->attempt == effect->attempt;
        if (same && r->run == RUN_RUNNING && (effect->signal == 9 || world_chance(w, 2))) {
            change(w, s, r, 128 + effect->signal);
        }
    }
}

void world_feed(struct world *w, struct world_pod *pod, struct pod_event event)
{
    struct pod_effects fx;
    struct agent_event answer = {.kind = AGENT_FED, .pod = pod->number};
    event.now_unix_ms = w->now_unix_ms;
    pod_step(pod->machine, &event, &fx);
    for (size_t i = 0; i < fx.count; i++) {
        const struct pod_effect *e = &fx.list[i];
        switch (e->kind) {
        case POD_START: start(w, pod, e); break;
        case POD_SIGNAL: signal_it(w, pod, e); break;
        case POD_STATUS: answer.status = world_write_status(w, pod); break;
        case POD_WAKE_AT: pod->wake_unix_ms = e->at_unix_ms; break;
        case POD_GONE: answer.gone = true; break;
        }
    }
    answer.finished = pod_is_finished(pod->machine);
    world_post(w, answer);
}

/* ---- Effects ---- */

static json_t *spec_of(const struct world_object *object, size_t name)
{
    json_t *pod =
        json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:i, s:[{s:s, s:s}]}}", "metadata", "name",
                  object->key + 2, "namespace", "d", "uid", object->uid, "spec", "restartPolicy",
                  name % 2 ? "Never" : "OnFailure", "terminationGracePeriodSeconds", 3,
                  "containers", "name", "c", "image", "i");
    if (object->status) {
        json_object_set(pod, "status", object->status);
    }
    return pod;
}

bool world_is_over(const struct world_object *object)
{
    const char *phase = doc_text(object->status, "phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool holds(const struct world *w, const char *uid)
{
    for (size_t i = 0; i < WORLD_HOLDERS; i++) {
        if (strcmp(w->held[i], uid) == 0) {
            return true;
        }
    }
    return false;
}

void world_hold(struct world *w, const char *uid, size_t job)
{
    size_t i = 0;
    while (w->held[i][0]) {
        i++;
        assert_true(i < WORLD_HOLDERS);
    }
    text_copy(w->held[i], sizeof w->held[i], uid);
    w->held_by[i] = job;
}

/* Connects a supervisor. Its pods hold the GPUs again that an earlier controller gave to them. */
static void open_job(struct world *w, struct world_supervisor *s, size_t job, int64_t number)
{
    s->connected = s->alive = true;
    s->told_ready = s->ending = false;
    s->number = number;
    for (size_t i = job; i < WORLD_NAMES; i += WORLD_JOBS) {
        const struct world_object *object = &w->objects[i];
        if (object->there && object->placed && !world_is_over(object)) {
            world_hold(w, object->uid, job);
        }
    }
}

static void make_pod(struct world *w, int64_t number, int64_t job, size_t name)
{
    const struct pod_place place = {"node", "127.0.0.1", "127.0.0.1"};
    const struct world_object *object = &w->objects[name];
    struct world_pod *pod = w->pods;
    while (pod->number) {
        pod++;
        assert_true(pod < w->pods + sizeof w->pods / sizeof w->pods[0]);
    }
    json_t *spec = spec_of(object, name);
    struct world_supervisor *s = &w->supervisors[name % WORLD_JOBS];
    if (!s->connected) {
        open_job(w, s, name % WORLD_JOBS, job);
    }
    world_require(w, s->number == job, "two supervisors of one job");
    *pod = (struct world_pod){.number = number,
                              .name = name,
                              .job = name % WORLD_JOBS,
                              .machine = pod_new(spec, &place, NULL),
                              .wants_gpu = name % 3 != 0,
                              .has_gpu = holds(w, object->uid)};
    text_copy(pod->uid, sizeof pod->uid, object->uid);
    json_decref(spec);
}

void world_admit(struct world *w, const struct agent_effect *e, const struct agent_event *event)
{
    bool fails = w->admits_fail && !event->seen.may_have_run && world_chance(w, 2) == 0;
    if (!fails) {
        make_pod(w, e->pod, e->job, (size_t)(event->seen.key[2] - '0'));
    }
    world_post(w,
               (struct agent_event){.kind = fails ? AGENT_REFUSED : AGENT_ADMITTED, .pod = e->pod});
}
