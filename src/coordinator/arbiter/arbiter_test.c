/* The coordinator's decisions in small scenes, with a journal that is a list, and members that are
 * messages: what is appended before what is sent, restarts after every record, the end. */
#include "coordinator/arbiter/arbiter.h"

#include "base/testing/test.h"
#include "coordinator/arbiter/entry.h"
#include "wire/incarnation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 256, SENT_MAX = 256, BATCH = 4 };

struct sent {
    enum wire_kind kind;
    uint64_t to;
    uint64_t version; /* ACK, OPEN: base */
    bool restore;
    bool last;
    struct shard_range range; /* GRANT, OPEN: the first */
    uint32_t ranges;
    uint32_t members;
    uint32_t asides; /* OPEN: how many records are set aside, the first of them */
    uint64_t aside;
    struct shard_anchor anchor;
    char loaded[8]; /* OPEN: a 1 for each member that has the state, else a 0 */
    struct wire_dataset dataset;
    char why[256];   /* REFUSED, EXPELLED */
    size_t appended; /* records of the journal before it was sent */
};

struct scene {
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    struct muster_err err;
    int64_t now_ms;
    struct {
        uint32_t kind;
        size_t count;
        uint8_t *bytes;
    } journal[RECORDS_MAX];
    size_t journaled;
    struct sent sent[SENT_MAX];
    size_t sent_count;
    uint64_t hung_up; /* the last one */
    uint64_t lost;    /* the last one, and why */
    int told;         /* how many effects were of that */
    enum rendezvous_reason reason;
    int opened;
    bool served, ended;
    bool planned;             /* no data set in the options */
    struct wire_dataset plan; /* of planned_scene */
    char failure[512];
    char aside[512]; /* the last one */
    uint64_t hangs;  /* the last one */
};

static const struct shard_dataset twenty = {.name = "a", .size = 20, .epochs = 1, .batch = BATCH};

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

static int feed(struct scene *scene, struct arbiter_event event)
{
    bool synced = false;
    event.now_ms = scene->now_ms;
    int r = arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err);
    for (size_t i = 0; i < scene->effects.count; i++) {
        const struct arbiter_effect *effect = &scene->effects.list[i];
        switch (effect->kind) {
        case ARBITER_APPEND: note_appended(scene, effect); break;
        case ARBITER_SYNC: synced = true; break;
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
    if (r == 0 && arbiter_check(scene->arbiter)) {
        fail_msg("%s", arbiter_check(scene->arbiter));
    }
    return r == 0 && synced ? feed(scene, (struct arbiter_event){.kind = ARBITER_DURABLE}) : r;
}

/* Of scenes that begin. */
static int64_t pass_max_ms;
static uint64_t max_steps;

/* From the first `records` of the journal: what START says to it. */
static int try_begin(struct scene *scene, size_t records)
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

static void begin(struct scene *scene, size_t records)
{
    assert_int_equal(try_begin(scene, records), 0);
}

static struct scene *new_scene_of(bool planned)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->planned = planned;
    arbiter_effects_init(&scene->effects);
    begin(scene, 0);
    assert_true(scene->served);
    return scene;
}

static struct scene *new_scene(void)
{
    return new_scene_of(false);
}

static void end_scene(struct scene *scene)
{
    for (size_t i = 0; i < scene->journaled; i++) {
        free(scene->journal[i].bytes);
    }
    arbiter_free(scene->arbiter);
    arbiter_effects_done(&scene->effects);
    free(scene);
}

/* ---- Members ---- */

static int says(struct scene *scene, uint64_t who, struct wire_message message)
{
    scene->sent_count = 0;
    return feed(scene, (struct arbiter_event){
                           .kind = ARBITER_MESSAGE, .incarnation = who, .message = &message});
}

static void joins_as(struct scene *scene, uint64_t who, struct wire_text name)
{
    const struct wire_message join = {.kind = WIRE_JOIN, .join.name = name};
    assert_int_equal(says(scene, who, join), 0);
}

static void joins(struct scene *scene, uint64_t who)
{
    joins_as(scene, who, (struct wire_text){0});
}

static void asks(struct scene *scene, uint64_t who, uint64_t records)
{
    struct wire_message ask = {.kind = WIRE_ASK, .ask.records = records};
    assert_int_equal(says(scene, who, ask), 0);
}

static int commits(struct scene *scene, uint64_t who, uint64_t version, uint64_t first,
                   uint32_t count)
{
    const struct shard_range range = {.first = first, .count = count};
    const struct wire_step step = {.version = version, .ranges = {&range, 1}};
    return says(scene, who,
                (struct wire_message){.kind = WIRE_COMMITS,
                                      .commits = {.generation = arbiter_generation(scene->arbiter),
                                                  .steps = {&step, 1}}});
}

static void reports(struct scene *scene, uint64_t who, uint64_t version, uint64_t first,
                    uint32_t count, bool closed)
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

static const struct sent *sent_to(const struct scene *scene, uint64_t who, enum wire_kind kind)
{
    for (size_t i = 0; i < scene->sent_count; i++) {
        if (scene->sent[i].to == who && scene->sent[i].kind == kind) {
            return &scene->sent[i];
        }
    }
    return NULL;
}

static void finishes(struct scene *scene, uint64_t who)
{
    struct wire_message leave = {.kind = WIRE_LEAVE, .leave.finished = true};
    assert_int_equal(says(scene, who, leave), 0);
}

static void declares(struct scene *scene, uint64_t who, struct wire_dataset dataset)
{
    scene->hung_up = 0;
    assert_int_equal(says(scene, who, (struct wire_message){WIRE_DATASET, .dataset = dataset}), 0);
}

/* The journal becomes one record. */
static void compacts(struct scene *scene)
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

/* ---- Tests ---- */

static void what_is_announced_is_in_the_journal(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    assert_int_equal(scene->journaled, 2); /* the data set, the term */
    joins(scene, 1);
    assert_int_equal(scene->sent_count, 0); /* the first generation waits for two */
    joins(scene, 2);
    assert_int_equal(scene->journaled, 4); /* the generation, the names of its members */
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->members, 2);
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->appended, 4);
    asks(scene, 1, BATCH);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.count, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    assert_int_equal(sent_to(scene, 1, WIRE_ACK)->version, 1);
    assert_int_equal(sent_to(scene, 2, WIRE_ACK)->appended, 5);
    end_scene(scene);
}

static void the_end_is_in_the_ledger(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t v = 1; v <= 5; v++) {
        asks(scene, 1, BATCH);
        assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, (v - 1) * BATCH);
        assert_false(sent_to(scene, 1, WIRE_GRANT)->last);
        assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
    }
    asks(scene, 1, BATCH);
    assert_true(sent_to(scene, 1, WIRE_GRANT)->last);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->ranges, 0);
    assert_false(scene->ended);
    finishes(scene, 1);
    assert_false(scene->ended);
    finishes(scene, 2);
    assert_true(scene->ended);
    begin(scene, scene->journaled); /* it is not begun again */
    assert_true(scene->ended);
    end_scene(scene);
}

static void who_ended_well_needs_not_have_said_so(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t v = 1; v <= 5; v++) {
        asks(scene, 1, BATCH);
        assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
    }
    for (uint64_t who = 1; who <= 2; who++) {
        assert_false(scene->ended);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = who, .cause = ARBITER_CAUSE_ENDED});
    }
    assert_true(scene->ended);
    end_scene(scene);
}

/* The process is seen to be dead before it is known how it ended, and its LEAVE is lost. What is
 * trained is kept until then, also where another worker has joined, which does not have the model.
 */
static void who_may_have_ended_well_is_not_dead_before_its_cause_is_known(void **state)
{
    (void)state;
    static const enum arbiter_cause causes[] = {ARBITER_CAUSE_ENDED, ARBITER_CAUSE_OWN,
                                                ARBITER_CAUSE_OUTSIDE, ARBITER_CAUSE_UNKNOWN};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        struct scene *scene = new_scene();
        bool well = causes[i] == ARBITER_CAUSE_ENDED;
        joins(scene, 1);
        joins(scene, 2);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = 2, .cause = ARBITER_CAUSE_OUTSIDE});
        reports(scene, 1, 0, 0, 0, true);
        for (uint64_t v = 1; v <= 5; v++) {
            asks(scene, 1, BATCH);
            assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
        }
        joins(scene, 3);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = 1, .cause = ARBITER_CAUSE_PENDING});
        assert_int_equal(arbiter_version(scene->arbiter), 5);
        assert_int_equal(arbiter_generation(scene->arbiter), 2);
        assert_false(scene->ended);
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE, .incarnation = 1, .cause = causes[i]});
        assert_int_equal(scene->ended, well);
        assert_int_equal(arbiter_version(scene->arbiter), well ? 5 : 0);
        assert_int_equal(arbiter_generation(scene->arbiter), well ? 2 : 3);
        end_scene(scene);
    }
}

static void nothing_is_granted_after_a_restart_before_all_have_said_what_they_hold(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    asks(scene, 2, BATCH);
    assert_int_equal(sent_to(scene, 2, WIRE_GRANT)->range.first, BATCH);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_term(scene->arbiter), 2);
    reports(scene, 1, 0, 0, BATCH, false);
    asks(scene, 1, BATCH);
    assert_null(sent_to(scene, 1, WIRE_GRANT));
    reports(scene, 2, 0, BATCH, BATCH, false);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, 2 * BATCH);
    end_scene(scene);
}

/* After every record that was ever appended: the log, the members and the term are those of the
 * records before, and what was not committed there can be committed again, once. */
static void a_restart_after_any_record(void **state)
{
    (void)state;
    for (size_t records = 0;; records++) {
        struct scene *scene = new_scene();
        joins(scene, 1);
        joins(scene, 2);
        asks(scene, 1, 20);
        asks(scene, 2, 20);
        assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
        assert_int_equal(commits(scene, 2, 2, BATCH, BATCH), 0);
        if (records > scene->journaled) {
            end_scene(scene);
            return;
        }
        uint64_t version = records > 4 ? records - 4 : 0;
        begin(scene, records);
        assert_true(scene->served);
        assert_int_equal(arbiter_version(scene->arbiter), version);
        assert_int_equal(arbiter_generation(scene->arbiter), records >= 3);
        if (records >= 3 && version < 2) {
            reports(scene, 1, version, version * BATCH, BATCH, false);
            reports(scene, 2, version, 0, 0, false);
            assert_int_equal(commits(scene, 1, version + 1, version * BATCH, BATCH), 0);
            assert_int_equal(commits(scene, 1, version + 2, version * BATCH, BATCH), MUSTER_EDATA);
            assert_non_null(strstr(scene->err.text, "step"));
        }
        end_scene(scene);
    }
}

/* As those that do not know of the newest generation yet. */
static void reports_of(struct scene *scene, uint64_t who, uint64_t generation)
{
    const struct wire_message m = {
        .kind = WIRE_REPORT,
        .report = {.generation = generation, .version = 1, .loaded = true, .closed = true}};
    assert_int_equal(says(scene, who, m), 0);
}

/* Its first step is shared by those that had the state when it began: all must be told of the same
 * ones, also who hears of it from another coordinator, or when others have loaded it meanwhile. */
static void a_generation_is_opened_for_all_with_the_same_words(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    joins(scene, 3);
    reports(scene, 1, 1, 0, 0, true);
    reports(scene, 2, 1, 0, 0, true);
    assert_string_equal(sent_to(scene, 1, WIRE_OPEN)->loaded, "110");
    begin(scene, scene->journaled);
    reports_of(scene, 1, 1);
    assert_string_equal(sent_to(scene, 1, WIRE_OPEN)->loaded, "110");
    reports(scene, 3, 1, 0, 0, true); /* it has it now, and closes the generation */
    reports_of(scene, 2, 1);
    assert_string_equal(sent_to(scene, 2, WIRE_OPEN)->loaded, "110");
    end_scene(scene);
}

static void all_die_and_the_log_goes_back_to_the_checkpoint(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(says(scene, 1, saves), 0);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 2, BATCH, BATCH), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 1);
    asks(scene, 3, BATCH);
    assert_int_equal(sent_to(scene, 3, WIRE_GRANT)->range.first, BATCH);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_version(scene->arbiter), 1);
    end_scene(scene);
}

/* The others say that they have lost it: it has been silent to them for 0.9 s already. */
static void who_alone_is_late_and_was_lost_is_waited_for_shortly(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    const struct wire_message lost = {
        .kind = WIRE_REPORT,
        .report = {.generation = 2, .lost = 3, .closed = true, .loaded = true}};
    joins(scene, 1);
    joins(scene, 2);
    joins(scene, 3);
    reports(scene, 1, 0, 0, 0, true);
    reports(scene, 2, 0, 0, 0, true);
    assert_int_equal(arbiter_generation(scene->arbiter), 2);
    assert_int_equal(says(scene, 1, lost), 0);
    assert_int_equal(arbiter_next_ms(scene->arbiter), scene->now_ms + ARBITER_DEADLINE_MS);
    assert_int_equal(says(scene, 2, lost), 0);
    scene->now_ms += ARBITER_MISSED_MS;
    assert_int_equal(arbiter_next_ms(scene->arbiter), scene->now_ms);
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_int_equal(arbiter_generation(scene->arbiter), 3);
    assert_int_equal(scene->lost, 3);
    assert_int_equal(scene->reason, RENDEZVOUS_SILENT);
    end_scene(scene);
}

/* The coordinator and its members end together, and others join. */
static void who_is_gone_in_the_next_term_is_not_waited_for(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    begin(scene, scene->journaled);
    joins(scene, 3);
    assert_null(sent_to(scene, 3, WIRE_OPEN));
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 9});
    assert_null(sent_to(scene, 3, WIRE_OPEN)); /* the other one may have the model */
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 2});
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 0);
    end_scene(scene);
}

/* They may have ended as the last step was acknowledged: nothing is trained once more. */
static void who_is_gone_after_the_last_step_has_ended_well(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t step = 1; step <= 20 / BATCH; step++) {
        asks(scene, 1, BATCH);
        assert_int_equal(commits(scene, 1, step, (step - 1) * BATCH, BATCH), 0);
    }
    begin(scene, scene->journaled);
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 1});
    assert_false(scene->ended);
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 2});
    assert_true(scene->ended);
    end_scene(scene);
}

static void who_is_silent_for_a_lease_is_given_up(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 2, BATCH);
    scene->now_ms = SHARD_LEASE_MS / 2;
    reports(scene, 1, 0, 0, 0, false);
    assert_int_equal(arbiter_next_ms(scene->arbiter), SHARD_LEASE_MS);
    scene->now_ms = SHARD_LEASE_MS;
    scene->sent_count = 0;
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->members, 1);
    assert_int_equal(scene->lost, 2);
    assert_int_equal(scene->reason, RENDEZVOUS_SILENT); /* its process may be there, stopped */
    asks(scene, 1, BATCH);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, 0);
    end_scene(scene);
}

/* 22 records: steps of 8, 8 and 6. */
static const struct wire_dataset mnist = {
    .name = {"mnist", 5}, .records = 22, .epochs = 1, .batch = 4, .micro_batches = 2, .seed = 9};

static struct scene *scene_of_plan(struct wire_dataset plan)
{
    struct scene *scene = new_scene_of(true);
    scene->plan = plan;
    declares(scene, 1, plan);
    joins(scene, 1);
    declares(scene, 2, plan);
    joins(scene, 2);
    return scene;
}

static struct scene *planned_scene(void)
{
    return scene_of_plan(mnist);
}

static void the_first_declares_and_all_have_the_same(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset silent = mnist;
    silent.micro_batches = 0;
    declares(scene, 1, mnist);
    assert_int_equal(scene->journaled, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->appended, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.seed, 9);
    declares(scene, 2, silent); /* as the job has it */
    assert_int_equal(sent_to(scene, 2, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(scene->journaled, 2);
    declares(scene, 3, (struct wire_dataset){{"b", 1}, .records = 5, .epochs = 1, .batch = 1});
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.micro_batches, 1);
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.number, 1);
    begin(scene, scene->journaled);
    declares(scene, 4, silent); /* and after a restart */
    assert_int_equal(sent_to(scene, 4, WIRE_DATASET)->dataset.micro_batches, 2);
    assert_int_equal(sent_to(scene, 4, WIRE_DATASET)->dataset.number, 0);
    end_scene(scene);
}

static void another_data_set_is_refused_by_what_differs(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset wrong = mnist;
    declares(scene, 1, mnist);
    wrong.records = 23;
    declares(scene, 2, wrong);
    assert_non_null(sent_to(scene, 2, WIRE_REFUSED));
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why,
                           "\"mnist\" has records 23 here, and 22 in the job"));
    assert_int_equal(scene->hung_up, 2);
    wrong = mnist;
    wrong.micro_batches = 3;
    declares(scene, 2, wrong);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "micro_batches 3 here, and 2"));
    wrong = (struct wire_dataset){{"c", 1}, .records = 1, .batch = UINT32_MAX, .micro_batches = 2};
    declares(scene, 2, wrong);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "out of range"));
    wrong = (struct wire_dataset){{"c", 1}, .task = 99, .records = 1, .batch = 1};
    declares(scene, 2, wrong);
    assert_non_null(sent_to(scene, 2, WIRE_REFUSED));
    declares(scene, 2, mnist);
    assert_null(sent_to(scene, 2, WIRE_REFUSED));
    assert_int_equal(scene->hung_up, 0);
    end_scene(scene);
}

static void planned_steps_need_no_grant(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(sent_to(scene, 2, WIRE_ACK)->version, 1);
    asks(scene, 2, 4);
    assert_true(sent_to(scene, 2, WIRE_GRANT)->last);
    assert_int_equal(sent_to(scene, 2, WIRE_GRANT)->ranges, 0);
    begin(scene, scene->journaled);
    reports(scene, 1, 1, 0, 0, false);
    reports(scene, 2, 1, 0, 0, false);
    assert_int_equal(commits(scene, 2, 2, 8, 8), 0);
    assert_int_equal(commits(scene, 1, 3, 16, 6), 0);
    finishes(scene, 1);
    finishes(scene, 2);
    assert_true(scene->ended);
    end_scene(scene);
}

static void other_records_than_the_plan_are_a_contradiction(void **state)
{
    (void)state;
    static const struct shard_range wrong[] = {
        {.first = 8, .count = 8}, {.first = 0, .count = 4}, {.first = 0, .count = 16}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct scene *scene = planned_scene();
        size_t journaled = scene->journaled;
        assert_int_equal(commits(scene, 1, 1, wrong[i].first, wrong[i].count), MUSTER_EDATA);
        assert_non_null(strstr(scene->err.text, "not the records that the plan has next"));
        assert_int_equal(scene->journaled, journaled);
        assert_int_equal(scene->sent_count, 0);
        end_scene(scene);
    }
}

/* Two steps are lost with all members; the plan begins again after the checkpoint, also of a data
 * set that was declared later. */
static void a_plan_goes_back_to_the_checkpoint(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    declares(scene, 1, (struct wire_dataset){{"late", 4}, .records = 5, .epochs = 1, .batch = 5});
    assert_int_equal(says(scene, 1, saves), 0);
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    declares(scene, 3, mnist);
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(commits(scene, 3, 2, 8, 8), 0);
    declares(scene, 3, (struct wire_dataset){{"late", 4}, .records = 5, .epochs = 1, .batch = 5});
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.number, 1);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_version(scene->arbiter), 2);
    end_scene(scene);
}

/* ---- Steps whose size follows the workers ---- */

/* 40 records, two for each worker and step. */
static const struct wire_dataset growing = {.name = {"mnist", 5},
                                            .records = 40,
                                            .epochs = 1,
                                            .batch = 2,
                                            .micro_batches = 1,
                                            .per_worker = true};

static void opens(const struct scene *scene, uint64_t who, struct shard_anchor due)
{
    const struct sent *open = sent_to(scene, who, WIRE_OPEN);
    assert_non_null(open);
    assert_int_equal(open->version, due.version);
    assert_int_equal(open->anchor.version, due.version);
    assert_int_equal(open->anchor.epoch, due.epoch);
    assert_int_equal(open->anchor.position, due.position);
    assert_int_equal(open->anchor.next, due.next);
    assert_int_equal(open->anchor.later, due.later);
}

/* Another one joins a job that has come to that version. */
static void comes(struct scene *scene, uint64_t who, const uint64_t *members, size_t count,
                  uint64_t version)
{
    declares(scene, who, growing);
    joins(scene, who);
    for (size_t i = 0; i < count; i++) {
        reports(scene, members[i], version, 0, 0, true);
    }
}

/* The journal is read again, or is compacted first: the generation's members hear the same. */
static void goes_on_after_a_restart(struct scene *scene, bool compacted, uint64_t who,
                                    struct shard_anchor due)
{
    if (compacted) {
        compacts(scene);
    }
    begin(scene, scene->journaled);
    declares(scene, who, growing);
    joins(scene, who);
    opens(scene, who, due);
}

static void a_step_has_as_many_records_as_its_workers_take(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = scene_of_plan(growing);
        opens(scene, 2, (struct shard_anchor){.next = 2, .later = 2});
        goes_on_after_a_restart(scene, compacted, 2, (struct shard_anchor){.next = 2, .later = 2});
        assert_int_equal(commits(scene, 1, 1, 0, 4), 0);
        comes(scene, 3, (uint64_t[]){1, 2}, 2, 1);
        const struct shard_anchor grown = {.version = 1, .position = 4, .next = 2, .later = 3};
        opens(scene, 3, grown);
        goes_on_after_a_restart(scene, compacted, 3, grown);
        assert_int_equal(commits(scene, 1, 2, 4, 4), 0);
        goes_on_after_a_restart(scene, compacted, 3, grown);
        assert_int_equal(commits(scene, 1, 3, 8, 6), 0);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 3});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        reports(scene, 1, 3, 0, 0, true);
        const struct shard_anchor alone = {.version = 3, .position = 14, .next = 3, .later = 1};
        opens(scene, 1, alone);
        assert_int_equal(commits(scene, 1, 4, 14, 6), 0);
        for (uint64_t v = 5; v <= 14; v++) {
            assert_int_equal(commits(scene, 1, v, 20 + (v - 5) * 2, 2), 0);
        }
        finishes(scene, 1);
        assert_true(scene->ended);
        end_scene(scene);
    }
}

static void a_step_of_another_size_is_a_contradiction(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {2, 6, 40};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct scene *scene = scene_of_plan(growing);
        size_t journaled = scene->journaled;
        assert_int_equal(commits(scene, 1, 1, 0, wrong[i]), MUSTER_EDATA);
        assert_non_null(strstr(scene->err.text, "by the workers of its generation it has 4"));
        assert_int_equal(scene->journaled, journaled);
        end_scene(scene);
    }
}

/* All who are left have prepared it: the generation's record has it, by the sizes of the one
 * before. */
static void the_step_that_a_generation_commits_is_of_the_one_before(void **state)
{
    (void)state;
    struct scene *scene = scene_of_plan(growing);
    const struct shard_range range = {.count = 4};
    const struct wire_step step = {.version = 1, .ranges = {&range, 1}};
    const struct wire_message prepared = {
        .kind = WIRE_REPORT,
        .report = {
            .generation = 1, .lost = 2, .closed = true, .loaded = true, .prepared = {&step, 1}}};
    const struct shard_anchor alone = {.version = 1, .position = 4, .next = 2, .later = 1};
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    assert_int_equal(says(scene, 1, prepared), 0);
    opens(scene, 1, alone);
    goes_on_after_a_restart(scene, false, 1, alone);
    assert_int_equal(arbiter_version(scene->arbiter), 1);
    assert_int_equal(commits(scene, 1, 2, 4, 4), 0);
    assert_int_equal(commits(scene, 1, 3, 8, 2), 0);
    end_scene(scene);
}

/* It may be one before the newest; nobody has begun with the step after it. */
static void who_begins_from_a_checkpoint_takes_its_own_number(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = scene_of_plan(growing);
        struct wire_message saves = {
            .kind = WIRE_CHECKPOINT,
            .checkpoint = {.generation = 1, .version = 2, .path = {"model", 5}, .digest = {7}}};
        for (uint64_t v = 1; v <= 3; v++) {
            assert_int_equal(commits(scene, 1, v, (v - 1) * 4, 4), 0);
        }
        assert_int_equal(says(scene, 1, saves), 0);
        saves.checkpoint.version = 3;
        assert_int_equal(says(scene, 1, saves), 0);
        if (compacted) {
            compacts(scene);
            begin(scene, scene->journaled);
        }
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        declares(scene, 3, growing);
        joins(scene, 3);
        opens(scene, 3, (struct shard_anchor){.version = 3, .position = 12, .next = 1, .later = 1});
        const struct wire_message unreadable = {
            .kind = WIRE_CHECKPOINT_FAILED,
            .checkpoint_failed = {.generation = 2, .version = 3, .reading = true}};
        assert_int_equal(says(scene, 3, unreadable), 0);
        const struct wire_message closed = {.kind = WIRE_REPORT,
                                            .report = {.generation = 2, .version = 3, .closed = 1}};
        assert_int_equal(says(scene, 3, closed), 0);
        const struct shard_anchor older = {.version = 2, .position = 8, .next = 1, .later = 1};
        opens(scene, 3, older);
        goes_on_after_a_restart(scene, compacted, 3, older);
        assert_int_equal(commits(scene, 3, 3, 8, 2), 0);
        end_scene(scene);
    }
}

static void who_counts_micro_batches_otherwise_is_refused(void **state)
{
    (void)state;
    struct scene *scene = new_scene_of(true);
    struct wire_dataset other = growing;
    declares(scene, 1, growing);
    assert_true(sent_to(scene, 1, WIRE_DATASET)->dataset.per_worker);
    other.per_worker = false;
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why,
                           "micro_batches_per_worker 0 here, and 1 in the job"));
    other.micro_batches = 0; /* it does not say: as the job has it */
    declares(scene, 2, other);
    assert_true(sent_to(scene, 2, WIRE_DATASET)->dataset.per_worker);
    other = (struct wire_dataset){{"b", 1}, .records = 5, .epochs = 1, .batch = 1};
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "no other data set"));
    end_scene(scene);
    scene = planned_scene();
    other.per_worker = true;
    other.micro_batches = 1;
    declares(scene, 2, other);
    assert_non_null(strstr(sent_to(scene, 2, WIRE_REFUSED)->why, "no other data set"));
    end_scene(scene);
}

/* What follows the workers is told by nothing but its own records: the others are as they were. */
static void a_job_of_steps_that_are_alike_has_no_anchor(void **state)
{
    (void)state;
    enum { DATASET_BYTES = SHARD_NAME_BYTES + 9 * 8 };
    struct scene *scene = planned_scene();
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->anchor.later, 0);
    assert_int_equal(scene->journal[1].kind, ENTRY_DATASET);
    assert_int_equal(scene->journal[1].count, DATASET_BYTES);
    end_scene(scene);
    scene = scene_of_plan(growing);
    assert_int_equal(scene->journal[1].count, DATASET_BYTES + 8);
    scene->journal[1].bytes[DATASET_BYTES] = 2; /* it is 1, or not there */
    struct shard_dataset spec;
    assert_int_equal(entry_read_dataset(scene->journal[1].bytes, DATASET_BYTES + 8, &spec, NULL),
                     MUSTER_EDATA);
    end_scene(scene);
}

/* As many as its steps have if the workers stay. */
static void a_limit_of_steps_counts_the_records_of_this_generation(void **state)
{
    (void)state;
    struct arbiter_figures figures;
    max_steps = 4;
    struct scene *scene = scene_of_plan(growing);
    max_steps = 0;
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.records, 16);
    assert_int_equal(commits(scene, 1, 1, 0, 4), 0);
    comes(scene, 3, (uint64_t[]){1, 2}, 2, 1);
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.records_done, 4);
    assert_int_equal(figures.records, 4 + 4 + 6 + 6);
    assert_int_equal(figures.records_asked, 40);
    end_scene(scene);
}

static void breaks_off(struct scene *scene, uint64_t who)
{
    says(scene, who, (struct wire_message){.kind = WIRE_LEAVE, .leave.broken_off = true});
}

/* Their programs have ended their loops: nobody would ever train the rest. */
static void a_job_of_which_all_workers_break_off_has_failed(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    breaks_off(scene, 1);
    reports(scene, 1, 1, 0, 0, true);
    reports(scene, 2, 1, 0, 0, true);
    assert_int_equal(scene->lost, 1);
    assert_string_equal(scene->failure, ""); /* the other one goes on */
    breaks_off(scene, 2);
    reports(scene, 2, 1, 0, 0, true);
    assert_string_equal(scene->failure,
                        "all workers have ended their loops by themselves, and 14 of 22 records "
                        "are not trained: to train less, ask for fewer epochs");
    begin(scene, scene->journaled);
    assert_false(scene->served);
    end_scene(scene);
}

/* Who was killed comes back, who was asked to leave has a successor, who waits goes on. */
static void a_job_goes_on_where_another_may_come(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct scene *scene = planned_scene();
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        if (i == 2) {
            declares(scene, 3, mnist);
            joins(scene, 3);
        }
        breaks_off(scene, 1);
        if (i == 1) {
            says(scene, 2, (struct wire_message){.kind = WIRE_LEAVE});
        } else {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        }
        reports(scene, 1, 1, 0, 0, true);
        reports(scene, 2, 1, 0, 0, true);
        assert_string_equal(scene->failure, "");
        if (i < 2) {
            declares(scene, 3, mnist);
            joins(scene, 3);
        }
        assert_int_equal(arbiter_generation(scene->arbiter), 2);
        end_scene(scene);
    }
}

static void people_are_told_who_was_lost_and_how_far_it_is(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    struct arbiter_figures figures;
    assert_int_equal(scene->opened, 1);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 1, 0, 0, true);
    assert_int_equal(scene->opened, 2);
    assert_int_equal(scene->lost, 2);
    assert_int_equal(scene->reason, RENDEZVOUS_DIED);
    assert_string_equal(arbiter_why(scene->reason), "its process has ended");
    arbiter_figures(scene->arbiter, &figures);
    assert_int_equal(figures.generation, 2);
    assert_int_equal(figures.members, 1);
    assert_int_equal(figures.version, 1);
    assert_int_equal(figures.epoch, 0);
    assert_int_equal(figures.epochs, 1);
    assert_int_equal(figures.records_done, 8);
    assert_int_equal(figures.records, 22);
    end_scene(scene);
}

/* ---- A limit of steps ---- */

/* Two members, and a coordinator that was told the limit once: the journal has it then. */
static struct scene *limited_scene(uint64_t steps)
{
    max_steps = steps;
    struct scene *scene = planned_scene();
    max_steps = 0;
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->members, 2);
    return scene;
}

/* Two of three steps, with restarts between them, of a journal that is compacted and of one that is
 * not. */
static void a_limit_ends_the_job_in_the_middle_of_an_epoch(void **state)
{
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        struct scene *scene = limited_scene(2);
        struct arbiter_figures figures;
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        assert_int_equal(scene->journal[0].kind, ENTRY_MAX_STEPS);
        if (compacted) {
            compacts(scene);
        }
        begin(scene, scene->journaled);
        declares(scene, 1, mnist);
        assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.max_steps, 2);
        reports(scene, 1, 1, 0, 0, false);
        reports(scene, 2, 1, 0, 0, false);
        arbiter_figures(scene->arbiter, &figures);
        assert_int_equal(figures.records, 16);
        assert_int_equal(figures.records_asked, 22);
        assert_int_equal(figures.max_steps, 2);
        assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        begin(scene, scene->journaled); /* the log is full already */
        reports(scene, 1, 2, 0, 0, false);
        reports(scene, 2, 2, 0, 0, false);
        finishes(scene, 1);
        assert_false(scene->ended);
        finishes(scene, 2);
        assert_true(scene->ended);
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

static void a_limit_beyond_the_last_epoch_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t steps = 3; steps < 5; steps++) {
        struct scene *scene = limited_scene(steps);
        struct arbiter_figures figures;
        arbiter_figures(scene->arbiter, &figures);
        assert_int_equal(figures.records, 22);
        assert_int_equal(figures.records_asked, 22);
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        assert_int_equal(commits(scene, 1, 3, 16, 6), 0);
        finishes(scene, 1);
        finishes(scene, 2);
        assert_true(scene->ended);
        end_scene(scene);
    }
}

static void a_step_beyond_the_limit_is_a_contradiction(void **state)
{
    (void)state;
    struct scene *scene = limited_scene(1);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    size_t journaled = scene->journaled;
    assert_int_equal(commits(scene, 1, 2, 8, 8), MUSTER_EDATA);
    assert_string_equal(scene->err.text, "step 2 cannot count: the job ends with step 1");
    assert_int_equal(scene->journaled, journaled);
    end_scene(scene);
}

/* One of two dies in it: the other was prepared, and it counts, or was not, and does it alone. */
static void the_generation_changes_at_the_last_step(void **state)
{
    (void)state;
    static const struct shard_range last = {.first = 8, .count = 8};
    static const struct wire_step step = {.version = 2, .ranges = {&last, 1}};
    for (uint32_t prepared = 0; prepared < 2; prepared++) {
        struct scene *scene = limited_scene(2);
        assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        const struct wire_message report = {.kind = WIRE_REPORT,
                                            .report = {.generation = 1,
                                                       .version = 1,
                                                       .loaded = true,
                                                       .closed = true,
                                                       .prepared = {&step, prepared}}};
        assert_int_equal(says(scene, 1, report), 0);
        assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->version, 1 + prepared);
        if (!prepared) {
            assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
        }
        assert_int_equal(arbiter_version(scene->arbiter), 2);
        finishes(scene, 1);
        assert_true(scene->ended);
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

/* All die after the last step and before they have ended: the log goes back, and the limit is its.
 */
static void undone_steps_do_not_count(void **state)
{
    (void)state;
    struct scene *scene = limited_scene(2);
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(says(scene, 1, saves), 0);
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    declares(scene, 3, mnist);
    assert_int_equal(sent_to(scene, 3, WIRE_DATASET)->dataset.max_steps, 2);
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 1);
    assert_false(scene->ended);
    assert_int_equal(commits(scene, 3, 2, 8, 8), 0);
    finishes(scene, 3);
    assert_true(scene->ended);
    assert_int_equal(arbiter_version(scene->arbiter), 2);
    end_scene(scene);
}

/* The same again is no other one. */
static void the_limit_of_a_journal_cannot_be_another(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, then;
        const char *why;
    } cases[] = {{2, 2, ""}, {2, 3, "ends with step 2, and"}, {0, 3, "ends with its last epoch"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = limited_scene(cases[i].first);
        max_steps = cases[i].then;
        int r = try_begin(scene, scene->journaled);
        max_steps = 0;
        assert_int_equal(r, *cases[i].why ? MUSTER_EINVAL : 0);
        assert_non_null(strstr(scene->err.text, cases[i].why));
        end_scene(scene);
    }
}

/* Of a journal that was changed: none, or a second one. */
static void a_limit_is_one_number(void **state)
{
    (void)state;
    static const uint8_t seven[8] = {7}, none[8] = {0};
    struct scene *scene = new_scene_of(true);
    for (int i = 0; i < 3; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = ENTRY_MAX_STEPS,
                                            .bytes = i == 0 ? none : seven,
                                            .count = 8};
        const struct arbiter_options options = {
            .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
        struct arbiter *another = NULL;
        assert_int_equal(arbiter_new(&options, &another, &scene->err), 0);
        int r = arbiter_step(another, &event, &scene->effects, &scene->err);
        if (i == 2) {
            assert_int_equal(r, 0);
            r = arbiter_step(another, &event, &scene->effects, &scene->err);
        }
        assert_int_equal(r, i == 1 ? 0 : MUSTER_EDATA);
        arbiter_free(another);
    }
    end_scene(scene);
}

static void a_limit_comes_before_all_steps(void **state)
{
    (void)state;
    static const uint8_t seven[8] = {7};
    struct scene *scene = planned_scene();
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
    struct arbiter *another = NULL;
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(arbiter_new(&options, &another, &scene->err), 0);
    for (size_t i = 0; i <= scene->journaled; i++) {
        struct arbiter_event event = {
            .kind = ARBITER_REPLAY, .record = ENTRY_MAX_STEPS, .bytes = seven, .count = 8};
        if (i < scene->journaled) {
            event.record = scene->journal[i].kind;
            event.bytes = scene->journal[i].bytes;
            event.count = scene->journal[i].count;
        }
        assert_int_equal(arbiter_step(another, &event, &scene->effects, &scene->err),
                         i < scene->journaled ? 0 : MUSTER_EDATA);
    }
    arbiter_free(another);
    end_scene(scene);
}

/* ---- Workers that die of what they compute ---- */

static void has_at_hand_in(struct scene *scene, uint64_t who, uint64_t generation, uint64_t first,
                           uint32_t count)
{
    const struct shard_range range = {.first = first, .count = count};
    assert_int_equal(says(scene, who,
                          (struct wire_message){
                              .kind = WIRE_PASS,
                              .pass = {.generation = generation, .at_hand = {&range, count > 0}}}),
                     0);
}

static void has_at_hand(struct scene *scene, uint64_t who, uint64_t first, uint32_t count)
{
    has_at_hand_in(scene, who, arbiter_generation(scene->arbiter), first, count);
}

/* Every other one is told of when it is dead for a while. */
static void dies(struct scene *scene, uint64_t who, enum arbiter_cause cause)
{
    bool later = who % 2;
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD,
                                       .incarnation = who,
                                       .cause = later ? ARBITER_CAUSE_PENDING : cause});
    if (later) {
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE, .incarnation = who, .cause = cause});
    }
}

/* One dies, the other goes on with another that comes. */
static void next_of_two(struct scene *scene, uint64_t left, uint64_t comes)
{
    reports(scene, left, 0, 0, 0, true);
    scene->sent_count = 0;
    declares(scene, comes, scene->plan);
    joins(scene, comes);
    reports(scene, left, 0, 0, 0, true);
}

/* What workers 2, 3 and 4 have at hand when they die, and how many suspects there are then. */
struct deaths {
    struct {
        uint64_t first;
        uint32_t count, suspects;
    } of[3];
    const char *failure;
};

static void three_die(struct scene *scene, const struct deaths *deaths)
{
    for (uint64_t who = 2; who <= 4; who++) {
        has_at_hand(scene, 1, 0, 4);
        has_at_hand(scene, who, deaths->of[who - 2].first, deaths->of[who - 2].count);
        dies(scene, who, who == 3 ? ARBITER_CAUSE_UNKNOWN : ARBITER_CAUSE_OWN);
        if (who < 4) {
            assert_string_equal(scene->failure, "");
            next_of_two(scene, 1, who + 1);
            assert_int_equal(sent_to(scene, who + 1, WIRE_OPEN)->ranges,
                             deaths->of[who - 2].suspects);
        }
    }
    assert_string_equal(scene->failure, deaths->failure);
}

/* Of a worker that does not compute parts of passes, too. */
static void what_workers_die_of_is_tried_in_halves_and_named(void **state)
{
    (void)state;
    static const struct deaths all[] = {
        {{{4, 4, 2}, {4, 2, 3}, {5, 1, 0}},
         "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1"},
        {{{4, 4, 2}, {6, 2, 3}, {6, 1, 0}},
         "3 workers died, one after the other, of record 6 of data set \"mnist\", in epoch 1 of 1"},
        {{{4, 4, 2}, {4, 4, 4}, {4, 4, 0}},
         "3 workers died, one after the other, of the same pass: records 4, 5, 6, 7 of data set "
         "\"mnist\", in epoch 1 of 1"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct scene *scene = planned_scene();
        three_die(scene, &all[i]);
        end_scene(scene);
    }
}

/* All on other hosts: nobody sees how they end, and nobody is left to tell. */
static void who_dies_alone_on_another_host_died_of_its_pass(void **state)
{
    (void)state;
    static const struct {
        uint64_t who;
        uint32_t count;
    } deaths[] = {{1, 4}, {3, 2}, {4, 1}};
    struct scene *scene = planned_scene();
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 0, 0, 0, true);
    for (size_t i = 0; i < 3; i++) {
        uint64_t who = deaths[i].who, comes = i < 2 ? deaths[i + 1].who : 5;
        has_at_hand(scene, who, 4, deaths[i].count);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED, .incarnation = who});
        feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = who});
        declares(scene, comes, scene->plan);
        joins(scene, comes);
        assert_int_equal(scene->failure[0] != 0, i == 2);
    }
    assert_non_null(strstr(scene->failure, "3 workers died, one after the other, of record 4"));
    end_scene(scene);
}

/* Its connections end, and the other one, 1, goes on before its end is seen. */
static void is_left_out(struct scene *scene, uint64_t who)
{
    feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                       .incarnation = who,
                                       .cause = ARBITER_CAUSE_PENDING});
    uint64_t generation = arbiter_generation(scene->arbiter);
    says(scene, 1,
         (struct wire_message){.kind = WIRE_REPORT,
                               .report = {.generation = generation,
                                          .lost = who,
                                          .ended = true,
                                          .loaded = true,
                                          .closed = true}});
    assert_int_equal(arbiter_generation(scene->arbiter), generation + 1);
}

static void is_explained(struct scene *scene, uint64_t who, enum arbiter_cause cause)
{
    scene->sent_count = 0;
    dies(scene, who, cause);
}

/* A stopped worker is killed by those that share its memory: they tell of the loss before its end
 * is seen. Its pass is blamed by how it ended: the others compute it as a whole, as parts would
 * give other bits, or, where it is suspected, begin again with what is. */
static void who_is_left_out_before_its_end_is_seen_is_judged_by_its_end(void **state)
{
    (void)state;
    static const enum arbiter_cause causes[] = {ARBITER_CAUSE_OUTSIDE, ARBITER_CAUSE_OWN};
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = planned_scene();
        has_at_hand(scene, 2, 4, 4);
        is_left_out(scene, 2);
        assert_int_equal(scene->lost, 2);
        assert_int_equal(scene->reason, RENDEZVOUS_DIED);
        assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->ranges, 0);
        is_explained(scene, 2, causes[i]);
        assert_int_equal(sent_to(scene, 1, WIRE_CLOSE) != NULL, i == 1);
        reports(scene, 1, 0, 0, 0, i == 1);
        assert_int_equal(arbiter_generation(scene->arbiter), 2 + i);
        if (i == 1) {
            assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->ranges, 2);
        }
        next_of_two(scene, 1, 3);
        assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->ranges, 2 * i);
        end_scene(scene);
    }
}

/* It was explained too late for the others to compute the parts, and they die of the whole: nobody
 * knows of which part. */
static void who_was_not_told_of_the_parts_does_not_name_them_all(void **state)
{
    (void)state;
    static const struct {
        uint64_t first;
        uint32_t count;
    } deaths[] = {{4, 4}, {4, 2}, {4, 2}, {5, 1}};
    struct scene *scene = planned_scene();
    for (size_t i = 0; i < 4; i++) {
        uint64_t who = i + 2;
        has_at_hand(scene, who, deaths[i].first, deaths[i].count);
        if (i == 1) {
            is_left_out(scene, who);
            declares(scene, who + 1, scene->plan);
            joins(scene, who + 1);
            reports(scene, 1, 0, 0, 0, true);
            has_at_hand(scene, who + 1, deaths[i + 1].first, deaths[i + 1].count);
            is_explained(scene, who, ARBITER_CAUSE_OWN);
            continue;
        }
        assert_string_equal(scene->failure, "");
        dies(scene, who, ARBITER_CAUSE_OWN);
        next_of_two(scene, 1, who + 1);
    }
    assert_string_equal(
        scene->failure,
        "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1");
    end_scene(scene);
}

/* A pass goes on while its generation is closed and the next one is opened: what is said of it then
 * is of one whose members knew no parts. */
static void a_pass_of_the_generation_before_names_no_parts(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    dies(scene, 2, ARBITER_CAUSE_OWN);
    next_of_two(scene, 1, 3);
    has_at_hand(scene, 3, 4, 2);
    is_left_out(scene, 3);
    declares(scene, 4, scene->plan);
    joins(scene, 4);
    reports(scene, 1, 0, 0, 0, true);
    uint64_t generation = arbiter_generation(scene->arbiter);
    is_explained(scene, 3, ARBITER_CAUSE_OWN);
    reports(scene, 1, 0, 0, 0, true);
    reports(scene, 4, 0, 0, 0, true);
    assert_int_equal(arbiter_generation(scene->arbiter), generation + 1);
    has_at_hand_in(scene, 4, generation, 4, 2);
    dies(scene, 4, ARBITER_CAUSE_OWN);
    assert_string_equal(scene->failure, "");
    next_of_two(scene, 1, 5);
    has_at_hand(scene, 5, 5, 1);
    dies(scene, 5, ARBITER_CAUSE_OWN);
    assert_string_equal(
        scene->failure,
        "3 workers died, one after the other, of record 5 of data set \"mnist\", in epoch 1 of 1");
    end_scene(scene);
}

/* What it had at hand was too short to be told of, and the others have trained it since. */
static void a_late_death_of_what_is_trained_blames_nothing(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        struct scene *scene = planned_scene();
        is_left_out(scene, 2);
        if (trained) {
            assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
        }
        is_explained(scene, 2, ARBITER_CAUSE_OWN);
        assert_int_equal(sent_to(scene, 1, WIRE_CLOSE) != NULL, !trained);
        end_scene(scene);
    }
}

static void a_job_that_has_failed_says_so_to_all(void **state)
{
    (void)state;
    static const struct deaths deaths = {
        {{4, 4, 2}, {4, 2, 3}, {4, 1, 0}},
        "3 workers died, one after the other, of record 4 of data set \"mnist\", in epoch 1 of 1"};
    struct scene *scene = planned_scene();
    three_die(scene, &deaths);
    assert_string_equal(sent_to(scene, 1, WIRE_EXPELLED)->why, scene->failure);
    joins(scene, 5);
    assert_string_equal(sent_to(scene, 5, WIRE_EXPELLED)->why, scene->failure);
    scene->failure[0] = 0;
    begin(scene, scene->journaled); /* it says so again */
    assert_non_null(strstr(scene->failure, "record 4"));
    assert_false(scene->served);
    end_scene(scene);
}

static void deaths_that_no_pass_is_blamed_for(void **state)
{
    (void)state;
    static const struct {
        enum arbiter_cause cause;
        bool at_hand, leaves;
    } deaths[] = {{ARBITER_CAUSE_OUTSIDE, true, false},
                  {ARBITER_CAUSE_UNKNOWN, true, true},
                  {ARBITER_CAUSE_UNKNOWN, false, false}};
    for (size_t i = 0; i < 3; i++) {
        struct scene *scene = planned_scene();
        for (uint64_t who = 2; who <= 5; who++) {
            has_at_hand(scene, who, 4, 4);
            has_at_hand(scene, who, 4, deaths[i].at_hand ? 4 : 0);
            if (deaths[i].leaves) {
                says(scene, who, (struct wire_message){.kind = WIRE_LEAVE});
            }
            dies(scene, who, deaths[i].cause);
            next_of_two(scene, 1, who + 1);
            assert_int_equal(sent_to(scene, who + 1, WIRE_OPEN)->ranges, 0);
        }
        assert_string_equal(scene->failure, "");
        end_scene(scene);
    }
}

/* It crashed before it could say of what: the next ones say it. */
static void a_step_of_which_nothing_was_told_is_suspected(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    assert_int_equal(commits(scene, 2, 1, 0, 8), 0);
    dies(scene, 2, ARBITER_CAUSE_OWN);
    reports(scene, 1, 1, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.first, 8);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.count, 8);
    scene->sent_count = 0;
    assert_int_equal(commits(scene, 1, 2, 8, 8), 0); /* it was trained: nothing is wrong with it */
    declares(scene, 3, mnist);
    joins(scene, 3);
    reports(scene, 1, 2, 0, 0, true);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->ranges, 0);
    end_scene(scene);
}

static void ticks(struct scene *scene, int64_t ms)
{
    for (int64_t end = scene->now_ms + ms; scene->now_ms < end;) {
        scene->now_ms += 1000;
        says(scene, 1, (struct wire_message){.kind = WIRE_PROGRESS});
        says(scene, 2, (struct wire_message){.kind = WIRE_PROGRESS});
        feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    }
}

/* Passes of 2 s: 20 of them, then it is expelled, as the other one waits. */
static void who_does_not_come_back_is_expelled(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    for (int i = 0; i < 3; i++) {
        has_at_hand(scene, 1, 0, 4);
        has_at_hand(scene, 2, 4, 4);
        ticks(scene, 2000);
        has_at_hand(scene, 1, 0, 0);
        has_at_hand(scene, 2, 0, 0);
    }
    has_at_hand(scene, 1, 0, 4);
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 60000); /* both compute: nobody waits */
    assert_int_equal(scene->hangs, 0);
    has_at_hand(scene, 1, 0, 0);
    has_at_hand(scene, 2, 0, 0);
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 39000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    assert_string_equal(sent_to(scene, 2, WIRE_EXPELLED)->why,
                        "its step function has not come back for 40 s, while others waited: 4 "
                        "records from position 4 of epoch 1");
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.first, 4); /* suspected */
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

static void a_first_pass_may_take_long(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 119000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

static void a_first_pass_may_take_the_most_that_any_may(void **state)
{
    (void)state;
    pass_max_ms = 60000;
    struct scene *scene = planned_scene();
    pass_max_ms = 0;
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 59000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

static void a_worker_says_that_the_job_has_failed(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(says(scene, 2,
                          (struct wire_message){.kind = WIRE_FAIL,
                                                .fail.why = {"w: KeyError: 7\nTraceback", 24}}),
                     0);
    assert_string_equal(scene->failure, "w: KeyError: 7\nTraceback");
    assert_string_equal(sent_to(scene, 1, WIRE_EXPELLED)->why, scene->failure);
    assert_int_equal(scene->journal[scene->journaled - 1].kind, ENTRY_FAILURE);
    assert_false(scene->ended);
    end_scene(scene);
}

static void expect_loss(const struct scene *scene, uint64_t count, const char *name)
{
    const struct losses *losses = arbiter_losses(scene->arbiter);
    assert_int_equal(losses->count, count);
    assert_string_equal(losses->list[losses->kept - 1].name, name);
    assert_int_equal(losses->list[losses->kept - 1].reason, RENDEZVOUS_DIED);
}

/* Also of who was lost after a restart, and when the journal is one record. */
static void who_was_lost_is_in_the_journal(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins_as(scene, 1, (struct wire_text){"one", 3});
    joins_as(scene, 2, (struct wire_text){"t\033wo", 4});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 0, 0, 0, true);
    expect_loss(scene, 1, "t?wo");
    begin(scene, scene->journaled);
    expect_loss(scene, 1, "t?wo");
    assert_string_equal(arbiter_name(scene->arbiter, 1), "one");
    reports(scene, 1, 0, 0, 0, false);
    compacts(scene);
    begin(scene, scene->journaled);
    expect_loss(scene, 1, "t?wo");
    assert_string_equal(arbiter_name(scene->arbiter, 1), "one");
    end_scene(scene);
}

static void joins_with(struct scene *scene, uint64_t who, uint64_t environment)
{
    const struct wire_message join = {.kind = WIRE_JOIN, .join.environment = environment};
    assert_int_equal(says(scene, who, join), 0);
}

/* Refused is who computes other bits than members do, also those of an earlier coordinator, who say
 * nothing of it when they come back; who does not care is not. The journal has it once. */
static void the_environment_is_in_the_journal(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct scene *scene = new_scene();
        joins_with(scene, 1, 7);
        assert_int_equal(scene->journaled, 2);
        joins_with(scene, 2, 7);
        assert_int_equal(scene->journal[scene->journaled - 1].kind, ENTRY_ENVIRONMENT);
        if (how > 0) {
            begin(scene, scene->journaled);
            reports(scene, 1, 0, 0, 0, false);
            reports(scene, 2, 0, 0, 0, false);
        }
        if (how > 1) {
            compacts(scene);
            begin(scene, scene->journaled);
            reports(scene, 1, 0, 0, 0, false);
            reports(scene, 2, 0, 0, 0, false);
        }
        size_t journaled = scene->journaled;
        joins_with(scene, 3, 8);
        assert_non_null(sent_to(scene, 3, WIRE_REFUSED));
        assert_int_equal(scene->hung_up, 3);
        joins_with(scene, 4, 7);
        assert_null(sent_to(scene, 4, WIRE_REFUSED));
        joins_with(scene, 5, 0);
        assert_null(sent_to(scene, 5, WIRE_REFUSED));
        reports(scene, 1, 0, 0, 0, true);
        reports(scene, 2, 0, 0, 0, true);
        for (size_t i = journaled; i < scene->journaled; i++) {
            assert_int_not_equal(scene->journal[i].kind, ENTRY_ENVIRONMENT);
        }
        end_scene(scene);
    }
}

/* Of a journal that was changed: none, a second one, or half of one. */
static void an_environment_is_one_number(void **state)
{
    (void)state;
    static const uint8_t seven[9] = {7}, none[8] = {0};
    const struct {
        const uint8_t *bytes;
        size_t count;
        int expected;
    } records[] = {
        {seven, 8, 0}, {none, 8, MUSTER_EDATA}, {seven, 9, MUSTER_EDATA}, {seven, 7, MUSTER_EDATA}};
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS, .first_ms = SHARD_LEASE_MS};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct arbiter *arbiter = NULL;
        struct arbiter_effects effects;
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = ENTRY_ENVIRONMENT,
                                            .bytes = records[i].bytes,
                                            .count = records[i].count};
        arbiter_effects_init(&effects);
        assert_int_equal(arbiter_new(&options, &arbiter, NULL), 0);
        assert_int_equal(arbiter_step(arbiter, &event, &effects, NULL), records[i].expected);
        if (records[i].expected == 0) {
            assert_int_equal(arbiter_step(arbiter, &event, &effects, NULL), MUSTER_EDATA);
        }
        arbiter_free(arbiter);
        arbiter_effects_done(&effects);
    }
}

static void enrolls(struct scene *scene, uint64_t who)
{
    const struct wire_message enroll = {
        .kind = WIRE_ENROLL,
        .enroll = {.dataset = {.name = {"b", 1}, .records = 8, .epochs = 1, .batch = 4},
                   .name = {"two", 3},
                   .sums = {"", 0}}};
    assert_int_equal(says(scene, who, enroll), 0);
}

/* Whichever of the two is lost first: people are told once. */
static void a_process_that_trains_and_works_by_leases_is_one_loss(void **state)
{
    (void)state;
    const uint64_t leaser = INCARNATION_LEASES | UINT64_C(3) << 48 | 2;
    for (int leaser_first = 0; leaser_first < 2; leaser_first++) {
        struct scene *scene = new_scene();
        joins_as(scene, 1, (struct wire_text){"one", 3});
        joins_as(scene, 2, (struct wire_text){"two", 3});
        enrolls(scene, leaser);
        if (leaser_first) {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = leaser});
        }
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        reports(scene, 1, 0, 0, 0, true);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = leaser});
        expect_loss(scene, 1, "two");
        assert_int_equal(scene->told, 1 + leaser_first); /* that a member is out is to be known */
        begin(scene, scene->journaled);
        expect_loss(scene, 1, "two");
        joins_as(scene, UINT64_C(1) << 48 | 1, (struct wire_text){"one", 3});
        reports(scene, 1, 0, 0, 0, true);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        reports(scene, UINT64_C(1) << 48 | 1, 0, 0, 0, true);
        expect_loss(scene, 2, "one"); /* two that train are two, in one program, too */
        end_scene(scene);
    }
}

static void the_last_losses_are_kept_and_all_are_counted(void **state)
{
    (void)state;
    struct losses losses = {0}, again = {0};
    struct buf record;
    buf_init(&record, 1 << 10);
    for (uint64_t i = 1; i <= LOSSES_KEPT + 6; i++) {
        losses_add(&losses, &(struct loss){.incarnation = i, .reason = RENDEZVOUS_SILENT});
    }
    for (size_t i = 0; i < losses.kept; i++) {
        buf_clear(&record);
        losses_write(&losses, i, &record);
        assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used, NULL), 0);
    }
    assert_int_equal(again.count, LOSSES_KEPT + 6);
    assert_memory_equal(again.list, losses.list, sizeof losses.list);
    /* the same one is none that follows; and it ends too early */
    assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used, NULL), MUSTER_EDATA);
    again.count = 0;
    assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used - 1, NULL),
                     MUSTER_EDATA);
    buf_done(&record);
}

/* After each step of a job: what the snapshot gives is what the records gave. */
static void a_snapshot_takes_the_place_of_all_records(void **state)
{
    (void)state;
    static const struct wire_dataset late = {{"late", 4}, .records = 5, .epochs = 1, .batch = 5};
    struct wire_message saves = {.kind = WIRE_CHECKPOINT,
                                 .checkpoint = {.path = {"model", 5}, .digest = {7}}};
    for (uint64_t at = 0; at <= 2; at++) {
        struct scene *scene = planned_scene();
        for (uint64_t v = 1; v <= at; v++) {
            assert_int_equal(commits(scene, 1, v, 8 * (v - 1), 8), 0);
        }
        if (at > 0) {
            declares(scene, 1, late);
            saves.checkpoint.generation = saves.checkpoint.version = 1;
            assert_int_equal(says(scene, 1, saves), 0);
        }
        compacts(scene);
        begin(scene, scene->journaled);
        assert_int_equal(arbiter_term(scene->arbiter), 2);
        assert_int_equal(arbiter_version(scene->arbiter), at);
        assert_int_equal(arbiter_generation(scene->arbiter), 1);
        reports(scene, 1, at, 0, 0, false);
        reports(scene, 2, at, 0, 0, false);
        assert_int_equal(commits(scene, 2, at + 1, 8 * at, at == 2 ? 6 : 8), 0);
        assert_int_equal(sent_to(scene, 2, WIRE_ACK)->version, at + 1);
        declares(scene, 1, late);
        assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.number, 1);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        joins(scene, 3);
        assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, at > 0);
        begin(scene, scene->journaled); /* a snapshot, and records after it */
        assert_int_equal(arbiter_version(scene->arbiter), at > 0);
        end_scene(scene);
    }
}

static void expect_aside(struct scene *scene, uint64_t left, uint64_t comes)
{
    next_of_two(scene, left, comes);
    assert_int_equal(sent_to(scene, comes, WIRE_OPEN)->asides, 1);
    assert_int_equal(sent_to(scene, comes, WIRE_OPEN)->aside, 5);
}

/* By whoever forms from then on; after a restart, and in what a snapshot keeps, too. */
static void a_record_is_set_aside_where_its_data_set_has_that_option(void **state)
{
    (void)state;
    static const struct deaths deaths = {{{4, 4, 2}, {4, 2, 3}, {5, 1, 0}}, ""};
    struct wire_dataset lenient = mnist;
    lenient.set_aside = true;
    struct scene *scene = scene_of_plan(lenient);
    three_die(scene, &deaths);
    assert_string_equal(scene->aside,
                        "record 5 is set aside: 3 workers died, one after the other, of record 5 "
                        "of data set \"mnist\", in epoch 1 of 1");
    expect_aside(scene, 1, 5);
    assert_int_equal(sent_to(scene, 5, WIRE_OPEN)->ranges,
                     2); /* 4, and 6 to 7: nobody has trained them */
    for (int compacted = 0; compacted < 2; compacted++) {
        begin(scene, scene->journaled);
        struct arbiter_aside aside;
        assert_true(arbiter_aside(scene->arbiter, 0, &aside));
        assert_true(aside.aside.deaths == 3 && !aside.leased);
        assert_false(arbiter_aside(scene->arbiter, 1, &aside));
        compacts(scene);
    }
    reports(scene, 1, 0, 0, 0, false);
    reports(scene, 5, 0, 0, 0, false);
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0); /* its position is committed with its step */
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

/* The third death is explained when the others are at work again. */
static void a_record_that_is_named_late_is_set_aside_at_once(void **state)
{
    (void)state;
    struct wire_dataset lenient = mnist;
    lenient.set_aside = true;
    struct scene *scene = scene_of_plan(lenient);
    for (uint64_t who = 2; who <= 3; who++) {
        has_at_hand(scene, who, 4, who == 2 ? 4 : 2);
        dies(scene, who, ARBITER_CAUSE_OWN);
        next_of_two(scene, 1, who + 1);
    }
    has_at_hand(scene, 4, 5, 1);
    is_left_out(scene, 4);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->asides, 0);
    is_explained(scene, 4, ARBITER_CAUSE_OWN);
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->asides, 1);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->aside, 5);
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

/* Whatever a disk makes of it, it is refused with a sentence, or is something else. */
static void a_snapshot_with_a_wrong_byte(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    compacts(scene);
    size_t count = scene->journal[0].count, refused = 0;
    uint8_t *bytes = scene->journal[0].bytes;
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
    for (size_t i = 0; i < count; i++) {
        for (int cut = 0; cut < 2; cut++) {
            uint8_t was = bytes[i];
            bytes[i] = (uint8_t)(was ^ (cut ? 0 : 0xff));
            const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                                .record = ENTRY_SNAPSHOT,
                                                .bytes = bytes,
                                                .count = cut ? i : count};
            struct muster_err err = MUSTER_ERR_INIT;
            struct arbiter *another;
            assert_int_equal(arbiter_new(&options, &another, &err), 0);
            int r = arbiter_step(another, &event, &scene->effects, &err);
            assert_true(r == 0 || strlen(err.text) > 0);
            refused += r < 0;
            arbiter_free(another);
            bytes[i] = was;
        }
    }
    assert_true(refused > count / 2);
    end_scene(scene);
}

/* The journal comes from a disk: what is no record of ours is refused with a sentence. */
static void records_that_are_none_of_ours(void **state)
{
    (void)state;
    static const uint8_t bytes[100] = {1, 2, 3};
    for (uint32_t kind = 0; kind <= ENTRY_KINDS; kind++) {
        if (kind == ENTRY_END) {
            continue;
        }
        struct scene *scene = new_scene();
        const struct arbiter_event event = {
            .kind = ARBITER_REPLAY, .record = kind, .bytes = bytes, .count = sizeof bytes};
        assert_true(arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err) < 0);
        assert_true(strlen(scene->err.text) > 0);
        end_scene(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_announced_is_in_the_journal),
        cmocka_unit_test(the_end_is_in_the_ledger),
        cmocka_unit_test(who_ended_well_needs_not_have_said_so),
        cmocka_unit_test(who_may_have_ended_well_is_not_dead_before_its_cause_is_known),
        cmocka_unit_test(nothing_is_granted_after_a_restart_before_all_have_said_what_they_hold),
        cmocka_unit_test(a_restart_after_any_record),
        cmocka_unit_test(a_generation_is_opened_for_all_with_the_same_words),
        cmocka_unit_test(all_die_and_the_log_goes_back_to_the_checkpoint),
        cmocka_unit_test(who_alone_is_late_and_was_lost_is_waited_for_shortly),
        cmocka_unit_test(who_is_gone_in_the_next_term_is_not_waited_for),
        cmocka_unit_test(who_is_gone_after_the_last_step_has_ended_well),
        cmocka_unit_test(who_is_silent_for_a_lease_is_given_up),
        cmocka_unit_test(the_first_declares_and_all_have_the_same),
        cmocka_unit_test(another_data_set_is_refused_by_what_differs),
        cmocka_unit_test(planned_steps_need_no_grant),
        cmocka_unit_test(other_records_than_the_plan_are_a_contradiction),
        cmocka_unit_test(a_plan_goes_back_to_the_checkpoint),
        cmocka_unit_test(a_step_has_as_many_records_as_its_workers_take),
        cmocka_unit_test(a_step_of_another_size_is_a_contradiction),
        cmocka_unit_test(the_step_that_a_generation_commits_is_of_the_one_before),
        cmocka_unit_test(who_begins_from_a_checkpoint_takes_its_own_number),
        cmocka_unit_test(who_counts_micro_batches_otherwise_is_refused),
        cmocka_unit_test(a_job_of_steps_that_are_alike_has_no_anchor),
        cmocka_unit_test(a_limit_of_steps_counts_the_records_of_this_generation),
        cmocka_unit_test(a_job_of_which_all_workers_break_off_has_failed),
        cmocka_unit_test(a_job_goes_on_where_another_may_come),
        cmocka_unit_test(people_are_told_who_was_lost_and_how_far_it_is),
        cmocka_unit_test(a_limit_ends_the_job_in_the_middle_of_an_epoch),
        cmocka_unit_test(a_limit_beyond_the_last_epoch_changes_nothing),
        cmocka_unit_test(a_step_beyond_the_limit_is_a_contradiction),
        cmocka_unit_test(the_generation_changes_at_the_last_step),
        cmocka_unit_test(undone_steps_do_not_count),
        cmocka_unit_test(the_limit_of_a_journal_cannot_be_another),
        cmocka_unit_test(a_limit_is_one_number),
        cmocka_unit_test(a_limit_comes_before_all_steps),
        cmocka_unit_test(what_workers_die_of_is_tried_in_halves_and_named),
        cmocka_unit_test(who_dies_alone_on_another_host_died_of_its_pass),
        cmocka_unit_test(who_is_left_out_before_its_end_is_seen_is_judged_by_its_end),
        cmocka_unit_test(who_was_not_told_of_the_parts_does_not_name_them_all),
        cmocka_unit_test(a_pass_of_the_generation_before_names_no_parts),
        cmocka_unit_test(a_late_death_of_what_is_trained_blames_nothing),
        cmocka_unit_test(a_job_that_has_failed_says_so_to_all),
        cmocka_unit_test(a_record_is_set_aside_where_its_data_set_has_that_option),
        cmocka_unit_test(a_record_that_is_named_late_is_set_aside_at_once),
        cmocka_unit_test(deaths_that_no_pass_is_blamed_for),
        cmocka_unit_test(a_step_of_which_nothing_was_told_is_suspected),
        cmocka_unit_test(who_does_not_come_back_is_expelled),
        cmocka_unit_test(a_first_pass_may_take_long),
        cmocka_unit_test(a_first_pass_may_take_the_most_that_any_may),
        cmocka_unit_test(a_worker_says_that_the_job_has_failed),
        cmocka_unit_test(the_environment_is_in_the_journal),
        cmocka_unit_test(an_environment_is_one_number),
        cmocka_unit_test(a_process_that_trains_and_works_by_leases_is_one_loss),
        cmocka_unit_test(the_last_losses_are_kept_and_all_are_counted),
        cmocka_unit_test(who_was_lost_is_in_the_journal),
        cmocka_unit_test(a_snapshot_takes_the_place_of_all_records),
        cmocka_unit_test(a_snapshot_with_a_wrong_byte),
        cmocka_unit_test(records_that_are_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
