/* Runs a step of one job: decides, sends its requests and hears their answers. See driver.h. */
#include "base/doc.h"
#include "control/control.h"
#include "controller/internal.h"
#include "controller/planted.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_INTERNAL = 500 };

static void run(struct task *task);

void driver_task_free(struct task *task)
{
    HASH_DEL(task->driver->tasks, task);
    flow_done(&task->flow);
    free(task);
}

/* ---- the end of a step ---- */

/* Ends the task; its key is released into the queue, or removed if the job is gone. */
static void release(struct task *task)
{
    struct driver *d = task->driver;
    struct cache_job job;
    char key[512];
    snprintf(key, sizeof key, "%s", task->key);
    driver_task_free(task);
    queue_release(&d->queue, key, driver_now_ms(d));
    if (!cache_job(&d->cache, key, &job)) {
        queue_remove(&d->queue, key);
    }
    driver_arm(d);
}

static void release_if_shown(struct task *task)
{
    if (!task->flowing && !task->reading &&
        (PLANTED_DRIVER(NOT_AWAITED) || expect_is_met(&task->flow.expected))) {
        release(task);
    }
}

static void retry(struct task *task, int64_t first_ms, int64_t at_least_ms)
{
    struct driver *d = task->driver;
    if (PLANTED_DRIVER(NO_RETRY)) {
        return;
    }
    (void)queue_retry(&d->queue, task->key, driver_now_ms(d), first_ms, at_least_ms, task->unheard);
}

static void tell_end(const struct task *task, enum driver_result result)
{
    const struct driver_options *o = &task->driver->options;
    if (o->stepped) {
        o->stepped(o->arg, result, driver_now_ms(task->driver) - task->began_ms);
    }
}

/* Ends a step that could not begin; it is tried again later. */
static void give_up(struct task *task, int code, const char *sentence)
{
    driver_say(task->driver, "controller.retry", task->key,
               sentence && *sentence ? sentence : muster_code_text(code));
    retry(task, DRIVER_RETRY_MS, 0);
    tell_end(task, DRIVER_FAILED);
    release(task);
}

/* Lets the cache drop the text of a finished job for which nothing was left to do. */
static void pack_if_idle(struct task *task)
{
    const struct control_effects *fx = &task->flow.fx;
    for (size_t i = 0; i < fx->count; i++) {
        if (fx->list[i].verb != CONTROL_WAKE_AT) {
            return;
        }
    }
    cache_pack_job(&task->driver->cache, task->key);
}

static void end(struct task *task)
{
    struct driver *d = task->driver;
    const struct flow *flow = &task->flow;
    task->flowing = false;
    task->shown_by_ms = driver_now_ms(d) + DRIVER_SHOWN_MS;
    if (flow->wake_unix_ms != INT64_MAX) {
        int64_t delay = flow->wake_unix_ms - driver_now_unix_ms(d);
        (void)queue_add_at(&d->queue, task->key, driver_now_ms(d) + (delay > 0 ? delay : 0));
    }
    static const enum driver_result results[] = {
        [FLOW_OK] = DRIVER_DONE, [FLOW_AGAIN] = DRIVER_AGAIN, [FLOW_FAILED] = DRIVER_FAILED};
    tell_end(task, results[flow->outcome]);
    switch (flow->outcome) {
    case FLOW_OK:
        queue_succeeded(&d->queue, task->key);
        pack_if_idle(task);
        break;
    case FLOW_AGAIN: retry(task, DRIVER_AGAIN_MS, flow->retry_after_ms); break;
    case FLOW_FAILED: retry(task, DRIVER_RETRY_MS, flow->retry_after_ms); break;
    }
    release_if_shown(task);
}

void driver_task_shown(struct driver *d, const char *key)
{
    struct task *task = NULL;
    HASH_FIND_STR(d->tasks, key, task);
    if (task && !task->flow.items) {
        return; /* it has not begun */
    }
    if (task) {
        release_if_shown(task);
    }
}

void driver_tasks_expire(struct driver *d, int64_t now)
{
    struct task *task, *next;
    HASH_ITER (hh, d->tasks, task, next) {
        if (!task->flowing && !task->reading && task->shown_by_ms <= now) {
            driver_say(d, "controller.late", task->key, "the watches do not show what was written");
            expect_clear(&task->flow.expected);
            (void)queue_add(&d->queue, task->key, now);
            release(task);
        }
    }
}

int64_t driver_tasks_next(const struct driver *d)
{
    int64_t next = INT64_MAX;
    for (const struct task *task = d->tasks; task; task = task->hh.next) {
        if (!task->flowing && !task->reading && task->shown_by_ms < next) {
            next = task->shown_by_ms;
        }
    }
    return next;
}

/* ---- requests ---- */

/* An API server answers 500 when it could not reach a webhook, and names it; 503 and 504 mean that
 * the server itself is overloaded. */
static struct flow_answer answer_of(const struct cluster_answer *answer)
{
    bool explained = answer->http_status == HTTP_INTERNAL && *answer->message;
    return (struct flow_answer){.code = answer->code,
                                .unsure = answer->unsure,
                                .explained = explained,
                                .retry_after_ms = answer->retry_after_ms,
                                .object = answer->code == 0 ? answer->object : NULL};
}

static void tell_refusal(struct task *task, size_t item, const char *sentence)
{
    const struct driver_options *o = &task->driver->options;
    struct control_effects told;
    if (o->refused && task->flow.fx.list[item].verb == CONTROL_CREATE) {
        o->refused(o->arg, &task->flow.fx.list[item]);
    }
    if (control_refused(&task->flow.fx.list[item], sentence, &told, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < told.count; i++) {
        driver_tell(task->driver, task->flow.job, &told.list[i]);
    }
    control_effects_done(&told);
}

static void say_failure(struct task *task, const struct cluster_answer *answer)
{
    task->unheard = task->unheard || cluster_was_silent(answer);
    if (answer->code < 0 && answer->code != MUSTER_EEXIST && answer->code != MUSTER_ECONFLICT &&
        answer->code != MUSTER_ENOENT) {
        driver_say(task->driver, "controller.retry", task->key, answer->message);
    }
}

static bool is_shown(const struct task *task, size_t item, const json_t *object)
{
    const struct cache *cache = &task->driver->cache;
    const struct control_effect *e = &task->flow.fx.list[item];
    const char *namespace = doc_text(task->flow.job, "metadata.namespace", "");
    if (e->verb == CONTROL_UPDATE) {
        return cache_has_version(cache, e->resource, namespace, e->name,
                                 doc_text(object, "metadata.resourceVersion", ""));
    }
    return e->verb == CONTROL_DELETE && e->resource != CONTROL_JOB &&
           cache_shows_end(cache, namespace, e);
}

static void on_item(struct call *call, const struct cluster_answer *got)
{
    struct task *task = call->task;
    struct flow_answer answer = answer_of(got);
    answer.is_shown = is_shown(task, call->item, answer.object);
    answer.was_shown = call->idle;
    json_t *before = json_incref(task->flow.job);
    enum flow_told told = call->reads ? flow_looked(&task->flow, call->item, &answer)
                                      : flow_answered(&task->flow, call->item, &answer);
    say_failure(task, got);
    driver_note_answer(call, got, before);
    json_decref(before);
    if (told == FLOW_STRANGER) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s \"%s\" already exists, and is not of this job",
                 driver_resources[task->flow.fx.list[call->item].resource].plural,
                 task->flow.fx.list[call->item].name);
        tell_refusal(task, call->item, sentence);
    } else if (told == FLOW_REFUSED) {
        tell_refusal(task, call->item, got->message);
    }
    run(task);
}

static void on_job(struct call *call, const struct cluster_answer *got)
{
    struct flow_answer answer = answer_of(got);
    flow_looked_at_job(&call->task->flow, &answer);
    say_failure(call->task, got);
    run(call->task);
}

static int send_call(struct task *task, size_t item, bool reads,
                     void (*done)(struct call *, const struct cluster_answer *),
                     const struct cluster_request *request)
{
    struct call *call = driver_call(task->driver, done);
    if (!call) {
        return MUSTER_ENOMEM;
    }
    call->task = task;
    call->item = item;
    call->reads = reads;
    call->idle = done == on_item && driver_ask_again(task, item);
    return driver_send(call, request);
}

static int send_item(struct task *task, size_t item)
{
    const struct control_effect *e = &task->flow.fx.list[item];
    struct cluster_request request = driver_request(task, e);
    bool needs_body = e->verb != CONTROL_DELETE;
    int r = needs_body && !request.body ? MUSTER_ENOMEM
                                        : send_call(task, item, false, on_item, &request);
    json_decref(request.body);
    return r;
}

static int look_at_item(struct task *task, size_t item)
{
    const struct control_effect *e = &task->flow.fx.list[item];
    const struct cluster_request request = {
        .verb = CLUSTER_GET,
        .lane = CLUSTER_LANE_PARTS,
        .resource = &driver_resources[e->resource],
        .namespace = doc_text(task->flow.job, "metadata.namespace", ""),
        .name = e->name,
        .without_managers = true,
    };
    return send_call(task, item, true, on_item, &request);
}

static void on_node(struct call *call, const struct cluster_answer *got)
{
    struct flow_answer answer = answer_of(got);
    flow_looked_at_node(&call->task->flow, call->item, &answer);
    say_failure(call->task, got);
    run(call->task);
}

static int get_node(struct task *task, size_t item)
{
    const struct cluster_request request = {.verb = CLUSTER_GET,
                                            .lane = CLUSTER_LANE_PARTS,
                                            .resource = &driver_nodes,
                                            .name = task->flow.fx.list[item].node,
                                            .without_managers = true};
    return send_call(task, item, true, on_node, &request);
}

static int get_job(struct task *task, void (*done)(struct call *, const struct cluster_answer *))
{
    char namespace[256];
    const char *slash = strchr(task->key, '/');
    assert(slash);
    snprintf(namespace, sizeof namespace, "%.*s", (int)(slash - task->key), task->key);
    const struct cluster_request request = {
        .verb = CLUSTER_GET,
        .lane = CLUSTER_LANE_JOBS,
        .resource = &driver_resources[CONTROL_JOB],
        .namespace = namespace,
        .name = slash + 1,
    };
    return send_call(task, 0, true, done, &request);
}

static void run(struct task *task)
{
    struct flow *flow = &task->flow;
    for (;;) {
        size_t item = 0;
        int r = 0;
        switch (flow_next(flow, &item)) {
        case FLOW_WAIT: return;
        case FLOW_END: end(task); return;
        case FLOW_TELL: driver_tell(task->driver, flow->job, &flow->fx.list[item]); break;
        case FLOW_SEND: r = send_item(task, item); break;
        case FLOW_LOOK: r = look_at_item(task, item); break;
        case FLOW_LOOK_JOB: r = get_job(task, on_job); break;
        case FLOW_LOOK_NODE: r = get_node(task, item); break;
        }
        if (r < 0) {
            flow_not_sent(flow, r);
        }
    }
}

/* ---- the beginning of a step ---- */

static void begin(struct task *task)
{
    struct driver *d = task->driver;
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *job = cache_job_object(&d->cache, task->key);
    int r = job ? driver_decide(task, job, &err) : MUSTER_ENOMEM;
    json_decref(job);
    if (r < 0) {
        give_up(task, r, err.text);
        return;
    }
    task->flowing = true;
    task->flow.careful = queue_failures(&d->queue, task->key) > 0;
    run(task);
}

/* Takes the text of a job that was packed, and begins the step. */
static void on_read(struct call *call, const struct cluster_answer *answer)
{
    struct task *task = call->task;
    struct driver *d = task->driver;
    struct cache_change change;
    int r = answer->code;
    task->reading = false;
    task->unheard = cluster_was_silent(answer);
    if (r == 0) {
        r = cache_put(&d->cache, CONTROL_JOB, answer->object, &change);
    }
    if (r == 0) {
        begin(task);
    } else if (r == MUSTER_ENOENT) { /* its watch will report that */
        release(task);
    } else {
        give_up(task, r, answer->message);
    }
}

static void read_job(struct task *task)
{
    task->reading = true;
    int r = get_job(task, on_read);
    if (r < 0) {
        task->reading = false;
        give_up(task, r, NULL);
    }
}

void driver_step(struct driver *d, const char *key)
{
    struct cache_job job;
    size_t bytes = strlen(key) + 1;
    struct task *task = calloc(1, sizeof *task + bytes);
    if (!task) {
        (void)queue_retry(&d->queue, key, driver_now_ms(d), DRIVER_RETRY_MS, 0, false);
        queue_release(&d->queue, key, driver_now_ms(d));
        return;
    }
    task->driver = d;
    task->began_ms = driver_now_ms(d);
    memcpy(task->key, key, bytes);
    HASH_ADD_STR(d->tasks, key, task);
    if (!cache_job(&d->cache, key, &job)) {
        release(task);
    } else if (job.packed) {
        read_job(task);
    } else {
        begin(task);
    }
}
