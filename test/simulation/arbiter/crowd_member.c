/* The members of a crowd: they do what src/commit tells them. See crowd.h. */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 4096 };

uint64_t crowd_incarnation(const struct crowd *c, const struct worker *w)
{
    return (uint64_t)(w - c->workers) + 1;
}

/* Sends the message through src/wire; it arrives at once. */
static void say(struct crowd *c, const struct worker *w, struct wire_message m)
{
    uint8_t bytes[FRAME_MAX], memory[WIRE_ROOM_BYTES(FRAME_MAX)] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct wire_message again;
    m.term = w->term;
    int64_t count = wire_write(&m, bytes, sizeof bytes, NULL);
    assert_true(count > 0 && count <= FRAME_MAX);
    assert_int_equal(wire_read(bytes, (size_t)count, &room, &again, NULL), 0);
    if (w->connected) {
        crowd_feed(c, (struct arbiter_event){.kind = ARBITER_MESSAGE,
                                             .incarnation = crowd_incarnation(c, w),
                                             .message = &again});
    }
}

static struct shard_range range_of(const struct crowd *c, uint64_t version)
{
    struct plan_step step = plan_step(&c->plan, version);
    return plan_step_range(&c->plan, &step);
}

static void say_steps(struct crowd *c, struct worker *w, const struct commit_effect *effect)
{
    const struct commit_member *core = &w->core;
    bool commits = effect->kind == COMMIT_DO_COMMITS;
    uint64_t first = commits ? effect->version : core->acked + 1;
    uint64_t last = commits ? effect->version : core->version;
    struct wire_step list[STEPS + 1], prepared;
    struct shard_range ranges[STEPS + 1], next;
    struct wire_steps steps = {.list = list};
    for (uint64_t v = first; v <= last; v++) {
        ranges[steps.count] = range_of(c, v);
        list[steps.count] = (struct wire_step){.version = v, .ranges = {&ranges[steps.count], 1}};
        steps.count++;
    }
    struct wire_message m = {.kind = commits ? WIRE_COMMITS : WIRE_REPORT};
    if (commits) {
        m.commits = (struct wire_commits){core->generation, steps};
    } else {
        m.report = (struct wire_report){.generation = core->generation,
                                        .version = core->version,
                                        .lost = effect->incarnation,
                                        .ended = effect->ended,
                                        .closed = core->stage == COMMIT_CLOSED,
                                        .loaded = core->loaded,
                                        .steps = steps};
        if (core->prepared) {
            next = range_of(c, core->version + 1);
            prepared = (struct wire_step){.version = core->version + 1, .ranges = {&next, 1}};
            m.report.prepared = (struct wire_steps){&prepared, 1};
        }
    }
    say(c, w, m);
}

static struct generation *generation_of(struct crowd *c, const struct worker *w)
{
    return &c->generations[w->core.generation];
}

/* Shows all members of its generation that it is gone or closed. */
static void show_end(struct crowd *c, const struct worker *w, bool gone)
{
    struct generation *g = generation_of(c, w);
    g->closed = true;
    g->lost = gone ? crowd_incarnation(c, w) : g->lost;
}

void crowd_die(struct crowd *c, struct worker *w)
{
    if (w->core.generation > 0) {
        show_end(c, w, true);
    }
    w->lives = w->connected = false;
    w->heard_count = 0;
}

static void apply(struct worker *w, uint64_t version)
{
    assert_true(w->core.loaded && !w->loading && !w->restoring);
    assert_int_equal(w->model + 1, version);
    w->model = version;
}

static void finish(struct crowd *c, struct worker *w)
{
    assert_int_equal(w->model, plan_steps(&c->plan));
    assert_int_equal(c->durable_version, plan_steps(&c->plan));
    w->finished = true;
    w->lives = w->connected = false;
    w->heard_count = 0;
    c->finished++;
}

static void do_effect(struct crowd *c, struct worker *w, const struct commit_effect *effect)
{
    struct generation *g = generation_of(c, w);
    uint64_t version = effect->version;
    switch (effect->kind) {
    case COMMIT_DO_JOIN: say(c, w, (struct wire_message){.kind = WIRE_JOIN}); break;
    case COMMIT_DO_LEAVE:
        say(c, w, (struct wire_message){.kind = WIRE_LEAVE, .leave.finished = effect->finished});
        break;
    case COMMIT_DO_COMMITS:
    case COMMIT_DO_REPORT: say_steps(c, w, effect); break;
    case COMMIT_DO_ENTER: g->entered[version]++; break;
    case COMMIT_DO_BARRIER: g->prepared[version]++; break;
    case COMMIT_DO_APPLY: apply(w, version); break;
    case COMMIT_DO_ABORT: w->loading = w->restoring = false; break;
    case COMMIT_DO_LOAD: w->loading = true; break;
    case COMMIT_DO_RESTORE:
        w->restoring = true;
        w->loading = false;
        break;
    case COMMIT_DO_FINISH: finish(c, w); break;
    case COMMIT_DO_FAIL: fail_msg("a member cannot follow the decision"); break;
    case COMMIT_DO_FORM:
    case COMMIT_DO_DISCARD:
    case COMMIT_DO_TRIM:
    case COMMIT_DO_KEEP:
    case COMMIT_DO_REJOIN: break;
    }
}

void crowd_tell(struct crowd *c, struct worker *w, struct commit_event event)
{
    struct commit_effects effects;
    commit_member_step(&w->core, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        do_effect(c, w, &effects.list[i]);
    }
    if (!w->lives) {
        return;
    }
    assert_null(commit_member_check(&w->core));
    if (w->core.stage == COMMIT_CLOSED) {
        show_end(c, w, false);
    }
    if (w->core.generation > 0 && w->core.loaded && !w->core.complete && !w->loading &&
        !w->restoring && w->core.version == plan_steps(&c->plan)) {
        crowd_tell(c, w, (struct commit_event){.kind = COMMIT_COMPLETE});
    }
}

static void of_generation(struct crowd *c, struct worker *w, enum commit_event_kind kind,
                          uint64_t version)
{
    crowd_tell(
        c, w,
        (struct commit_event){.kind = kind, .generation = w->core.generation, .version = version});
}

void crowd_launch(struct crowd *c)
{
    assert_true(c->worker_count < c->worker_room);
    struct worker *w = &c->workers[c->worker_count++];
    w->lives = true;
    commit_member_init(&w->core, c->worker_count);
}

static void connect_to(struct crowd *c, struct worker *w)
{
    w->connected = true;
    w->term = arbiter_term(c->arbiter);
    if (w->known) {
        crowd_feed(c, (struct arbiter_event){.kind = ARBITER_CONNECTED,
                                             .incarnation = crowd_incarnation(c, w)});
    }
    w->known = true;
    say(c, w,
        (struct wire_message){.kind = WIRE_DATASET,
                              .dataset = {.name = {"train", 5},
                                          .records = c->plan.records,
                                          .epochs = c->plan.epochs,
                                          .batch = c->plan.batch,
                                          .micro_batches = c->plan.micro_batches}});
}

static void be_expelled(struct crowd *c, struct worker *w, const struct heard *h)
{
    bool ends = h->reason == RENDEZVOUS_LEFT || h->reason == RENDEZVOUS_DONE;
    crowd_tell(c, w,
               (struct commit_event){
                   .kind = COMMIT_EXPELLED, .term = h->term, .incarnation = h->incarnation});
    crowd_die(c, w);
    w->buried = true;
    if (!ends) {
        crowd_launch(c);
    }
}

static void hear(struct crowd *c, struct worker *w, const struct heard *h)
{
    struct commit_event event = {.term = h->term,
                                 .generation = h->generation,
                                 .version = h->base,
                                 .lineage = h->lineage,
                                 .restore = h->restore,
                                 .boundary = h->boundary};
    switch ((int)h->kind) {
    case WIRE_DATASET:
        event = (struct commit_event){.kind = COMMIT_CONNECTED, .term = w->term};
        break;
    case WIRE_OPEN: event.kind = COMMIT_OPEN; break;
    case WIRE_CLOSE: event.kind = COMMIT_CLOSE; break;
    case WIRE_ACK: event.kind = COMMIT_ACK; break;
    case WIRE_EXPELLED: be_expelled(c, w, h); return;
    default: return;
    }
    crowd_tell(c, w, event);
}

/* Does what the worker can do by itself, each thing once. */
static void act(struct crowd *c, struct worker *w)
{
    const struct commit_member *core = &w->core;
    const struct generation *g = generation_of(c, w);
    bool inside = core->stage == COMMIT_WORKING || core->stage == COMMIT_PREPARED;
    uint64_t next = core->version + 1;
    if (inside && (g->lost != 0 || g->closed) && test_draw(&c->random, 2) == 0) {
        crowd_tell(c, w,
                   (struct commit_event){.kind = COMMIT_LOST,
                                         .generation = core->generation,
                                         .incarnation = g->lost,
                                         .ended = g->lost != 0});
    } else if (inside && (w->restoring || w->loading)) {
        w->model = w->restoring ? 0 : core->version;
        w->restoring = w->loading = false;
        of_generation(c, w, COMMIT_LOADED, core->version);
    } else if (core->stage == COMMIT_WORKING && !core->entered && !core->complete) {
        of_generation(c, w, COMMIT_READY, 0);
    } else if (core->stage == COMMIT_WORKING && core->entered && !core->reduced &&
               g->entered[next] == g->members) {
        of_generation(c, w, COMMIT_REDUCED, next);
    } else if (core->stage == COMMIT_PREPARED && g->prepared[next] == g->members) {
        of_generation(c, w, COMMIT_PASSED, next);
    }
}

void crowd_take_turn(struct crowd *c, struct worker *w)
{
    struct heard heard[HEARD_MAX];
    uint32_t count = w->heard_count;
    memcpy(heard, w->heard, count * sizeof *heard);
    w->heard_count = 0;
    if (!w->connected && c->serving) {
        connect_to(c, w);
    }
    for (uint32_t i = 0; i < count && w->lives; i++) {
        hear(c, w, &heard[i]);
    }
    if (w->lives) {
        act(c, w);
    }
}
