/* Programs that stand for one Lease of a server, all in this process; their clocks and timers are
 * the test's (--wrap), and nothing takes time but what a test lets pass. Tests only.
 */
#pragma once

#include "kube/leader/leader.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/time/clock.h"
#include "kube/leader/election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { START_MS = 1000000, PROGRAMS = 2, SCENE_TEXT_BYTES = 1100 };

static const int64_t scene_unix_ms = 1767323045678; /* at START_MS */

/* Only one request is in progress at a time. */
struct call {
    enum cluster_verb verb;
    json_t *body;
    cluster_done_fn *done; /* NULL: none is in progress */
    void *arg;
    int64_t timeout_ms;
};

struct program {
    struct cluster cluster; /* must be the first member */
    struct leader *leader;
    struct call call;
    uv_timer_t *timer; /* NULL: stopped */
    uv_timer_cb on_tick;
    int64_t due_ms, every_ms;
    bool is_cut_off;     /* its requests stay in progress until the test decides otherwise */
    bool without_memory; /* no memory to send anything */
    int requests, led, lost, released, cancelled;
    int said[LEADER_GIVES_UP + 1]; /* how often each kind of news was reported */
    char text[LEADER_GIVES_UP + 1][SCENE_TEXT_BYTES];
};

static struct {
    int64_t now_ms;
    char host[2 * ELECTION_TEXT_BYTES];
    json_t *lease; /* as the server has it */
    int64_t version;
    struct program programs[PROGRAMS];
    struct program *opening;
} scene;

/* ---- The system's part ---- */

int64_t __wrap_clock_boot_ms(void);
int64_t __wrap_clock_unix_ms(void);
int __wrap_gethostname(char *ret, size_t bytes);
int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *timer);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_tick, uint64_t first_ms,
                          uint64_t every_ms);
int __wrap_uv_timer_stop(uv_timer_t *timer);
void __wrap_uv_close(uv_handle_t *handle, uv_close_cb closed);

int64_t __wrap_clock_boot_ms(void)
{
    return scene.now_ms;
}

int64_t __wrap_clock_unix_ms(void)
{
    return scene_unix_ms + scene.now_ms - START_MS;
}

int __wrap_gethostname(char *ret, size_t bytes)
{
    size_t count = strlen(scene.host);
    memcpy(ret, scene.host, count < bytes ? count + 1 : bytes);
    return count < bytes ? 0 : -1;
}

int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    (void)loop;
    scene.opening->timer = timer;
    return 0;
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_tick, uint64_t first_ms,
                          uint64_t every_ms)
{
    assert_ptr_equal(scene.opening->timer, timer);
    scene.opening->on_tick = on_tick;
    scene.opening->due_ms = scene.now_ms + (int64_t)first_ms;
    scene.opening->every_ms = (int64_t)every_ms;
    return 0;
}

int __wrap_uv_timer_stop(uv_timer_t *timer)
{
    for (int i = 0; i < PROGRAMS; i++) {
        struct program *p = &scene.programs[i];
        p->timer = p->timer == timer ? NULL : p->timer;
    }
    return 0;
}

void __wrap_uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    (void)__wrap_uv_timer_stop((uv_timer_t *)handle);
    closed(handle);
}

/* ---- The server's part ---- */

static inline int64_t version_of(const json_t *lease)
{
    return strtoll(doc_text(lease, "metadata.resourceVersion", "0"), NULL, 10);
}

static inline void store(const json_t *body)
{
    char version[32];
    json_t *lease = json_deep_copy(body), *metadata = json_object_get(lease, "metadata");
    assert_string_equal(doc_text(lease, "kind", ""), "Lease");
    assert_string_equal(doc_text(lease, "metadata.name", ""), "work");
    (void)snprintf(version, sizeof version, "%lld", (long long)++scene.version);
    json_object_set_new(metadata, "resourceVersion", json_string(version));
    json_decref(scene.lease);
    scene.lease = lease;
}

static inline struct cluster_answer carry_out(const struct call *call)
{
    bool there = scene.lease != NULL;
    bool fits = there && version_of(call->body) == version_of(scene.lease);
    struct cluster_answer answer = {.reason = "", .message = "", .http_status = 200};
    if (call->verb == CLUSTER_CREATE ? there : call->verb == CLUSTER_REPLACE && there && !fits) {
        answer.code = call->verb == CLUSTER_CREATE ? MUSTER_EEXIST : MUSTER_ECONFLICT;
        answer.http_status = 409;
    } else if (call->verb != CLUSTER_CREATE && !there) {
        answer.code = MUSTER_ENOENT;
        answer.http_status = 404;
    } else if (call->verb != CLUSTER_GET) {
        store(call->body);
    }
    answer.object = answer.code == 0 ? scene.lease : NULL;
    return answer;
}

static inline int take_request(struct cluster *cluster, const struct cluster_request *q,
                               cluster_done_fn *done, void *arg, struct cluster_call **ret,
                               struct muster_err *err)
{
    struct program *p = (struct program *)cluster;
    assert_null(p->call.done);
    assert_int_equal(q->lane, CLUSTER_LANE_LEASE);
    assert_string_equal(q->resource->plural, "leases");
    assert_string_equal(q->namespace, "here");
    assert_string_equal(q->name, "work");
    if (p->without_memory) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a request");
    }
    p->requests++;
    p->call = (struct call){q->verb, json_incref(q->body), done, arg, q->timeout_ms};
    *ret = (struct cluster_call *)&p->call;
    return 0;
}

static inline void answer_with(struct program *p, const struct cluster_answer *answer)
{
    struct call call = p->call;
    assert_non_null(call.done);
    p->call = (struct call){0};
    json_incref(answer->object);
    call.done(call.arg, answer);
    json_decref(answer->object);
    json_decref(call.body);
}

/* Carries out the request in progress, and answers it. */
static inline void answer(struct program *p)
{
    const struct cluster_answer answer = carry_out(&p->call);
    answer_with(p, &answer);
}

/* Ends the request in progress: nobody has answered in time. */
static inline void time_out(struct program *p)
{
    answer_with(p, &(struct cluster_answer){.code = MUSTER_ETIMEDOUT,
                                            .reason = "",
                                            .message = "no answer in time",
                                            .unsure = true});
}

static inline void cancel_request(struct cluster_call *call)
{
    struct program *p = (struct program *)((char *)call - offsetof(struct program, call));
    p->cancelled++;
    json_decref(p->call.body);
    p->call = (struct call){0};
}

/* ---- A program ---- */

static inline void note_led(void *arg)
{
    ((struct program *)arg)->led++;
}

static inline void note_lost(void *arg)
{
    ((struct program *)arg)->lost++;
}

static inline void note_released(void *arg)
{
    ((struct program *)arg)->released++;
}

static inline void note_said(void *arg, enum leader_news news, const char *text)
{
    struct program *p = arg;
    p->said[news]++;
    (void)snprintf(p->text[news], sizeof p->text[news], "%s", text);
}

static inline struct program *stand(int i, const char *process, json_t *owner)
{
    static const struct cluster_backend backend = {.send = take_request, .cancel = cancel_request};
    static uv_loop_t loop; /* only passed on, never run */
    struct program *p = scene.opening = &scene.programs[i];
    struct muster_err err = MUSTER_ERR_INIT;
    const struct leader_options options = {.cluster = &p->cluster,
                                           .namespace = "here",
                                           .name = "work",
                                           .process = process,
                                           .owner = owner,
                                           .led = note_led,
                                           .lost = note_lost,
                                           .say = note_said,
                                           .arg = p};
    p->cluster.backend = &backend;
    assert_int_equal(leader_open(&loop, &options, &p->leader, &err), 0);
    return p;
}

static inline struct program *next_due(int64_t until_ms)
{
    struct program *next = NULL;
    for (int i = 0; i < PROGRAMS; i++) {
        struct program *p = &scene.programs[i];
        bool due = p->timer && p->due_ms <= until_ms;
        next = due && (!next || p->due_ms < next->due_ms) ? p : next;
    }
    return next;
}

/* Lets time pass; requests are answered at once, except those of programs that are cut off. */
static inline void let_pass(int64_t ms)
{
    int64_t until_ms = scene.now_ms + ms;
    struct program *p;
    while ((p = next_due(until_ms))) {
        scene.now_ms = p->due_ms;
        p->due_ms += p->every_ms;
        p->on_tick(p->timer);
        while (p->call.done && !p->is_cut_off) {
            answer(p);
        }
    }
    scene.now_ms = until_ms;
}

static inline int scene_set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    scene.now_ms = START_MS;
    (void)snprintf(scene.host, sizeof scene.host, "host");
    return 0;
}

static inline int scene_tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        leader_close(scene.programs[i].leader);
        assert_null(scene.programs[i].call.done);
    }
    json_decref(scene.lease);
    return 0;
}

static inline void check_holder(const char *holder, int64_t changes)
{
    assert_string_equal(doc_text(scene.lease, "spec.holderIdentity", "?"), holder);
    assert_int_equal(doc_int(scene.lease, "spec.leaseTransitions", -1), changes);
}

/* Writes a Lease of another program, about which nothing else is known. */
static inline void write_holder(const char *holder)
{
    json_t *lease = json_deep_copy(scene.lease);
    json_object_set_new(json_object_get(lease, "spec"), "holderIdentity", json_string(holder));
    store(lease);
    json_decref(lease);
}
