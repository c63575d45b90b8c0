/* See fixture.h. */
#include "coordinator/scenes/fixture.h"

const struct shard_dataset twenty = {.name = "a", .size = 20, .epochs = 1, .batch = BATCH};

/* ---- The world around it ---- */

static void note_sent(struct scene *scene, const struct arbiter_effect *effect)
{
    uint8_t memory[1 << 16] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct wire_message m;
    struct sent *sent = &scene->sent[scene->sent_count++];
    assert_true(scene->sent_count < SENT_MAX);
    assert_int_equal(
        wire_read(arbiter_effect_bytes(&scene->effects, effect), effect->count, &room, &m, NULL),
        0);
    assert_int_equal(m.term, arbiter_term(scene->arbiter));
    *sent = (struct sent){.kind = m.kind, .to = effect->to, .appended = scene->journaled};
    if (m.kind == WIRE_OPEN) {
        sent->version = m.open.base;
        sent->restore = m.open.restore;
        sent->members = m.open.members.count;
        for (uint32_t i = 0; i < m.open.members.count && i + 1 < sizeof sent->loaded; i++) {
            sent->loaded[i] = m.open.members.list[i].loaded ? '1' : '0';
        }
        sent->ranges = m.open.suspects.count;
        sent->range = sent->ranges ? m.open.suspects.list[0] : (struct shard_range){0};
        sent->anchor = m.open.anchor;
        sent->asides = m.open.aside.count;
        sent->aside = sent->asides ? m.open.aside.list[0].first : 0;
    } else if (m.kind == WIRE_ACK) {
        sent->version = m.ack.version;
    } else if (m.kind == WIRE_GRANT) {
        sent->last = m.grant.last;
        sent->ranges = m.grant.ranges.count;
        sent->range = sent->ranges ? m.grant.ranges.list[0] : (struct shard_range){0};
    } else if (m.kind == WIRE_DATASET) {
        sent->dataset = m.dataset;
    } else if (m.kind == WIRE_REFUSED) {
        snprintf(sent->why, sizeof sent->why, "%.*s", (int)m.refused.why.count,
                 m.refused.why.bytes);
    } else if (m.kind == WIRE_EXPELLED) {
        snprintf(sent->why, sizeof sent->why, "%.*s", (int)m.expelled.why.count,
                 m.expelled.why.bytes);
    }
}

static void note_appended(struct scene *scene, const struct arbiter_effect *effect)
{
    assert_true(scene->journaled < RECORDS_MAX);
    uint8_t *bytes = malloc(effect->count + 1);
    assert_non_null(bytes);
    if (effect->count > 0) {
        memcpy(bytes, arbiter_effect_bytes(&scene->effects, effect), effect->count);
    }
    scene->journal[scene->journaled].kind = effect->record;
    scene->journal[scene->journaled].count = effect->count;
    scene->journal[scene->journaled++].bytes = bytes;
}

static void note(struct scene *scene, const struct arbiter_effect *effect, bool *ret_synced)
{
    switch (effect->kind) {
    case ARBITER_APPEND: note_appended(scene, effect); break;
    case ARBITER_SYNC: *ret_synced = true; break;
    case ARBITER_SERVE: scene->served = true; break;
    case ARBITER_SEND: note_sent(scene, effect); break;
    case ARBITER_HANG_UP: scene->hung_up = effect->to; break;
    case ARBITER_OPENED: scene->opened++; break;
    case ARBITER_LOST_AGAIN:
        assert_true(scene->told > 0);
        scene->told++;
        break;
    case ARBITER_LOST:
    case ARBITER_LEASER_LOST:
        scene->told++;
        scene->lost = effect->to;
        scene->reason = (enum rendezvous_reason)effect->record;
        break;
    case ARBITER_END: scene->ended = true; break;
    case ARBITER_ASIDE:
        snprintf(scene->aside, sizeof scene->aside, "%.*s", (int)effect->count,
                 (const char *)arbiter_effect_bytes(&scene->effects, effect));
        break;
    case ARBITER_HANGS: scene->hangs = effect->to; break;
    case ARBITER_FAILED:
        snprintf(scene->failure, sizeof scene->failure, "%.*s", (int)effect->count,
                 (const char *)arbiter_effect_bytes(&scene->effects, effect));
        break;
    }
}

int feed(struct scene *scene, struct arbiter_event event)
{
    bool synced = false;
    event.now_ms = scene->now_ms;
    int r = arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err);
    for (size_t i = 0; i < scene->effects.count; i++) {
        note(scene, &scene->effects.list[i], &synced);
    }
    if (r == 0 && arbiter_check(scene->arbiter)) {
        fail_msg("%s", arbiter_check(scene->arbiter));
    }
    return r == 0 && synced ? feed(scene, (struct arbiter_event){.kind = ARBITER_DURABLE}) : r;
}

int64_t pass_max_ms;
uint64_t max_steps;

int try_begin(struct scene *scene, size_t records)
{
    const struct arbiter_options options = {.sizes = {1, 4, 2},
                                            .peers = 8,
                                            .datasets = &twenty,
                                            .dataset_count = scene->planned ? 0 : 1,
                                            .lease_ms = SHARD_LEASE_MS,
                                            .pass_max_ms = pass_max_ms,
                                            .first_ms = SHARD_LEASE_MS,
                                            .max_steps = max_steps};
    arbiter_free(scene->arbiter);
    scene->served = false;
    scene->sent_count = 0;
    assert_int_equal(arbiter_new(&options, &scene->arbiter, &scene->err), 0);
    for (size_t i = 0; i < records; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = scene->journal[i].kind,
                                            .bytes = scene->journal[i].bytes,
                                            .count = scene->journal[i].count};
        assert_int_equal(arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err), 0);
        assert_int_equal(scene->effects.count, 0);
    }
    for (size_t i = records; i < scene->journaled; i++) {
        free(scene->journal[i].bytes);
    }
    scene->journaled = records;
    return feed(scene, (struct arbiter_event){.kind = ARBITER_START});
}

void begin(struct scene *scene, size_t records)
{
    assert_int_equal(try_begin(scene, records), 0);
}

struct scene *new_scene_of(bool planned)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->planned = planned;
    arbiter_effects_init(&scene->effects);
    begin(scene, 0);
    assert_true(scene->served);
    return scene;
}

struct scene *new_scene(void)
{
    return new_scene_of(false);
}

void end_scene(struct scene *scene)
{
    for (size_t i = 0; i < scene->journaled; i++) {
        free(scene->journal[i].bytes);
    }
    arbiter_free(scene->arbiter);
    arbiter_effects_done(&scene->effects);
    free(scene);
}

/* ---- Members ---- */

int says(struct scene *scene, uint64_t who, struct wire_message message)
{
    scene->sent_count = 0;
    return feed(scene, (struct arbiter_event){
                           .kind = ARBITER_MESSAGE, .incarnation = who, .message = &message});
}

void joins_as(struct scene *scene, uint64_t who, struct wire_text name)
{
    const struct wire_message join = {.kind = WIRE_JOIN, .join.name = name};
    assert_int_equal(says(scene, who, join), 0);
}

void joins(struct scene *scene, uint64_t who)
{
    joins_as(scene, who, (struct wire_text){0});
}

void asks(struct scene *scene, uint64_t who, uint64_t records)
{
    struct wire_message ask = {.kind = WIRE_ASK, .ask.records = records};
    assert_int_equal(says(scene, who, ask), 0);
}

int commits(struct scene *scene, uint64_t who, uint64_t version, uint64_t first, uint32_t count)
{
    const struct shard_range range = {.first = first, .count = count};
    const struct wire_step step = {.version = version, .ranges = {&range, 1}};
    return says(scene, who,
                (struct wire_message){.kind = WIRE_COMMITS,
                                      .commits = {.generation = arbiter_generation(scene->arbiter),
                                                  .steps = {&step, 1}}});
}

void reports(struct scene *scene, uint64_t who, uint64_t version, uint64_t first, uint32_t count,
             bool closed)
{
    const struct shard_range lease = {.first = first, .count = count};
    struct wire_message m = {.kind = WIRE_REPORT,
                             .report = {.generation = arbiter_generation(scene->arbiter),
                                        .version = version,
                                        .loaded = true,
                                        .closed = closed,
                                        .leases = {&lease, count > 0}}};
    assert_int_equal(says(scene, who, m), 0);
}

const struct sent *sent_to(const struct scene *scene, uint64_t who, enum wire_kind kind)
{
    for (size_t i = 0; i < scene->sent_count; i++) {
        if (scene->sent[i].to == who && scene->sent[i].kind == kind) {
            return &scene->sent[i];
        }
    }
    return NULL;
}

void finishes(struct scene *scene, uint64_t who)
{
    struct wire_message leave = {.kind = WIRE_LEAVE, .leave.finished = true};
    assert_int_equal(says(scene, who, leave), 0);
}

void declares(struct scene *scene, uint64_t who, struct wire_dataset dataset)
{
    scene->hung_up = 0;
    assert_int_equal(says(scene, who, (struct wire_message){WIRE_DATASET, .dataset = dataset}), 0);
}

void compacts(struct scene *scene)
{
    struct buf bytes;
    buf_init(&bytes, 1 << 20);
    assert_true(arbiter_may_compact(scene->arbiter));
    assert_int_equal(arbiter_snapshot(scene->arbiter, &bytes, &scene->err), 0);
    for (size_t i = 0; i < scene->journaled; i++) {
        free(scene->journal[i].bytes);
    }
    scene->journal[0].kind = ENTRY_SNAPSHOT;
    scene->journal[0].count = bytes.used;
    scene->journal[0].bytes = malloc(bytes.used);
    assert_non_null(scene->journal[0].bytes);
    memcpy(scene->journal[0].bytes, bytes.data, bytes.used);
    scene->journaled = 1;
    buf_done(&bytes);
}

const struct wire_dataset mnist = {
    .name = {"mnist", 5}, .records = 22, .epochs = 1, .batch = 4, .micro_batches = 2, .seed = 9};

struct scene *scene_of_plan(struct wire_dataset plan)
{
    struct scene *scene = new_scene_of(true);
    scene->plan = plan;
    declares(scene, 1, plan);
    joins(scene, 1);
    declares(scene, 2, plan);
    joins(scene, 2);
    return scene;
}

struct scene *planned_scene(void)
{
    return scene_of_plan(mnist);
}

void has_at_hand_in(struct scene *scene, uint64_t who, uint64_t generation, uint64_t first,
                    uint32_t count)
{
    const struct shard_range range = {.first = first, .count = count};
    assert_int_equal(says(scene, who,
                          (struct wire_message){
                              .kind = WIRE_PASS,
                              .pass = {.generation = generation, .at_hand = {&range, count > 0}}}),
                     0);
}

void has_at_hand(struct scene *scene, uint64_t who, uint64_t first, uint32_t count)
{
    has_at_hand_in(scene, who, arbiter_generation(scene->arbiter), first, count);
}
