/* Workers that train by leases and die, because of the records that they held or killed from
 * outside: what the journal records about it, and which records the other workers get. */
#include "coordinator/arbiter/arbiter.h"

#include "base/testing/test.h"
#include "coordinator/arbiter/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 8, SHARD = 4, EPOCHS = 2, JOURNAL_MAX = 128 };

struct scene {
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    struct muster_err err;
    int64_t now_ms;
    bool set_aside;
    struct {
        uint32_t kind;
        size_t count;
        uint8_t *bytes;
    } journal[JOURNAL_MAX];
    size_t journaled;
    /* the worker, and what the last event has sent to it */
    uint64_t who;
    struct shard_range granted; /* count 0: nothing */
    uint32_t to_do, held;       /* ranges of TO_DO */
    uint64_t to_do_records;
    bool ended;
    uint64_t left_out; /* once `ended`: the records that were left out */
    size_t appended;   /* number of journal records before `granted` was sent */
    char expelled[512];
    char failure[512], aside[512]; /* the last texts */
    uint64_t lost;                 /* the worker that was lost last; 0: none */
    enum rendezvous_reason reason; /* why it was lost */
};

/* ---- The world around the arbiter ---- */

static void note_sent(struct scene *scene, const struct arbiter_effect *effect)
{
    uint8_t memory[1 << 14] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct wire_message m;
    assert_int_equal(
        wire_read(arbiter_effect_bytes(&scene->effects, effect), effect->count, &room, &m, NULL),
        0);
    if (effect->to != scene->who) {
        return;
    }
    if (m.kind == WIRE_LEASED && !m.leased.all) {
        scene->granted = m.leased.ranges.count > 0 ? m.leased.ranges.list[0] : scene->granted;
        scene->ended = m.leased.ended;
        scene->left_out = m.leased.left_out;
        scene->appended = scene->journaled;
    } else if (m.kind == WIRE_TO_DO) {
        scene->to_do = m.to_do.ranges.count;
        scene->held = m.to_do.held.count;
        for (uint32_t i = 0; i < m.to_do.ranges.count; i++) {
            scene->to_do_records += m.to_do.ranges.list[i].count;
        }
    } else if (m.kind == WIRE_EXPELLED) {
        assert_true(m.expelled.reason == RENDEZVOUS_FAILED ||
                    m.expelled.reason == RENDEZVOUS_SILENT);
        snprintf(scene->expelled, sizeof scene->expelled, "%.*s", (int)m.expelled.why.count,
                 m.expelled.why.bytes);
    }
}

static void append(struct scene *scene, uint32_t kind, const void *bytes, size_t count)
{
    uint8_t *copy = malloc(count + 1);
    assert_non_null(copy);
    assert_true(scene->journaled < JOURNAL_MAX);
    memcpy(copy, count > 0 ? bytes : "", count);
    scene->journal[scene->journaled].kind = kind;
    scene->journal[scene->journaled].count = count;
    scene->journal[scene->journaled++].bytes = copy;
}

static void forget_journal(struct scene *scene, size_t kept)
{
    while (scene->journaled > kept) {
        free(scene->journal[--scene->journaled].bytes);
    }
}

static void copy_text(const struct scene *scene, const struct arbiter_effect *effect, char *ret)
{
    snprintf(ret, 512, "%.*s", (int)effect->count,
             (const char *)arbiter_effect_bytes(&scene->effects, effect));
}

static void feed(struct scene *scene, struct arbiter_event event)
{
    bool synced = false;
    event.now_ms = scene->now_ms;
    assert_int_equal(arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err), 0);
    for (size_t i = 0; i < scene->effects.count; i++) {
        const struct arbiter_effect *effect = &scene->effects.list[i];
        switch ((int)effect->kind) {
        case ARBITER_APPEND:
            append(scene, effect->record, arbiter_effect_bytes(&scene->effects, effect),
                   effect->count);
            break;
        case ARBITER_SYNC: synced = true; break;
        case ARBITER_SEND: note_sent(scene, effect); break;
        case ARBITER_ASIDE: copy_text(scene, effect, scene->aside); break;
        case ARBITER_LEASER_LOST:
            assert_string_equal(scene->failure, ""); /* a failure follows from it, later */
            scene->lost = effect->to;
            scene->reason = (enum rendezvous_reason)effect->record;
            break;
        case ARBITER_FAILED: copy_text(scene, effect, scene->failure); break;
        default: break;
        }
    }
    assert_null(arbiter_check(scene->arbiter));
    if (synced && !*scene->failure) {
        feed(scene, (struct arbiter_event){.kind = ARBITER_DURABLE});
    }
}

/* Starts a coordinator with the scene's journal. */
static void begin(struct scene *scene)
{
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS, .first_ms = SHARD_LEASE_MS};
    arbiter_free(scene->arbiter);
    scene->failure[0] = scene->aside[0] = 0;
    assert_int_equal(arbiter_new(&options, &scene->arbiter, &scene->err), 0);
    for (size_t i = 0; i < scene->journaled; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = scene->journal[i].kind,
                                            .bytes = scene->journal[i].bytes,
                                            .count = scene->journal[i].count};
        assert_int_equal(arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err), 0);
    }
    feed(scene, (struct arbiter_event){.kind = ARBITER_START});
}

static struct scene *new_scene(bool set_aside)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->set_aside = set_aside;
    arbiter_effects_init(&scene->effects);
    begin(scene);
    return scene;
}

static void end_scene(struct scene *scene)
{
    forget_journal(scene, 0);
    arbiter_free(scene->arbiter);
    arbiter_effects_done(&scene->effects);
    free(scene);
}

/* ---- Workers ---- */

static void says(struct scene *scene, uint64_t who, struct wire_message message)
{
    scene->who = who;
    scene->granted.count = 0;
    scene->ended = false;
    scene->expelled[0] = 0;
    feed(scene,
         (struct arbiter_event){.kind = ARBITER_MESSAGE, .incarnation = who, .message = &message});
}

static void enrolls(struct scene *scene, uint64_t who)
{
    says(scene, who,
         (struct wire_message){.kind = WIRE_ENROLL,
                               .enroll.sums = {"", 0},
                               .enroll.name = {"pod\n1", 5},
                               .enroll.dataset = {.name = {"data", 4},
                                                  .task = SHARD_EVALUATE,
                                                  .records = RECORDS,
                                                  .epochs = EPOCHS,
                                                  .batch = SHARD,
                                                  .set_aside = scene->set_aside}});
}

static void fetches(struct scene *scene, uint64_t who)
{
    says(scene, who, (struct wire_message){.kind = WIRE_FETCH, .fetch.records = SHARD});
}

static void does(struct scene *scene, uint64_t who, uint64_t sequence, struct shard_range range)
{
    says(scene, who,
         (struct wire_message){.kind = WIRE_DONE,
                               .done = {.sequence = sequence, .done = {&range, 1}}});
}

static void dies(struct scene *scene, uint64_t who, enum arbiter_cause cause)
{
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = who, .cause = cause});
}

/* Lets workers die one after the other because of the first records that each gets. Returns the
 * next incarnation. */
static uint64_t die(struct scene *scene, uint64_t first, int times, enum arbiter_cause cause)
{
    for (int i = 0; i < times; i++) {
        enrolls(scene, first);
        fetches(scene, first);
        assert_true(scene->granted.count > 0 && scene->granted.first == 0);
        dies(scene, first++, cause);
    }
    return first;
}

/* Lets a new worker do all records that are left. Returns how many it got. */
static uint64_t does_all(struct scene *scene, uint64_t who)
{
    uint64_t records = 0, sequence = 0;
    enrolls(scene, who);
    for (fetches(scene, who); !scene->ended; fetches(scene, who)) {
        struct shard_range range = scene->granted;
        assert_true(range.count > 0);
        assert_false(range.first == 0 && scene->set_aside);
        records += range.count;
        does(scene, who, ++sequence, range);
    }
    return records;
}

/* ---- Tests ---- */

static const char named[] = "3 workers died, one after the other, of record 0 of data set \"data\"";

static void the_third_death_fails_the_job(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    enrolls(scene, 100);
    (void)die(scene, 1, 2, ARBITER_CAUSE_OWN);
    assert_string_equal(scene->failure, "");
    enrolls(scene, 3);
    fetches(scene, 3);
    scene->who = 100;
    dies(scene, 3, ARBITER_CAUSE_OWN);
    assert_non_null(strstr(scene->failure, named));
    assert_string_equal(scene->expelled, scene->failure);
    enrolls(scene, 4);
    assert_string_equal(scene->expelled, scene->failure);
    fetches(scene, 100);
    assert_string_equal(scene->expelled, scene->failure);
    begin(scene);
    assert_non_null(strstr(scene->failure, named));
    end_scene(scene);
}

static void what_is_set_aside_is_in_the_journal(void **state)
{
    (void)state;
    for (int restart = 0; restart < 3; restart++) {
        struct scene *scene = new_scene(true);
        struct arbiter_aside each;
        uint64_t next = die(scene, 1, 3, ARBITER_CAUSE_OWN);
        assert_string_equal(scene->failure, "");
        assert_non_null(strstr(scene->aside, named));
        if (restart == 2) {
            struct buf bytes;
            buf_init(&bytes, ARBITER_BYTES_MAX);
            assert_true(arbiter_may_compact(scene->arbiter));
            assert_int_equal(arbiter_snapshot(scene->arbiter, &bytes, &scene->err), 0);
            forget_journal(scene, 0);
            append(scene, ENTRY_SNAPSHOT, bytes.data, bytes.used);
            buf_done(&bytes);
        }
        if (restart > 0) {
            begin(scene);
        }
        assert_true(arbiter_aside(scene->arbiter, 0, &each) && each.leased);
        assert_true(each.aside.record == 0 && each.aside.deaths == 3 && each.aside.epoch == 0);
        assert_string_equal(each.dataset, "data");
        assert_false(arbiter_aside(scene->arbiter, 1, &each));
        assert_int_equal(arbiter_left_out(scene->arbiter, 0), 1);
        assert_int_equal(does_all(scene, next), EPOCHS * (RECORDS - 1));
        assert_int_equal(scene->left_out, EPOCHS);
        end_scene(scene);
    }
}

/* Other workers get the records that are left only after the journal has the entry about the record
 * that is set aside. */
static void nobody_hears_before_the_journal(void **state)
{
    (void)state;
    struct scene *scene = new_scene(true);
    uint64_t next = die(scene, 1, 2, ARBITER_CAUSE_OWN);
    enrolls(scene, next);
    fetches(scene, next);
    enrolls(scene, 100);
    uint64_t sequence = 0; /* worker 100 does the rest of the epoch, and waits */
    for (fetches(scene, 100); scene->granted.count > 0; fetches(scene, 100)) {
        does(scene, 100, ++sequence, scene->granted);
    }
    assert_int_equal(sequence, 3);
    size_t before = scene->journaled;
    dies(scene, next, ARBITER_CAUSE_OWN);
    assert_int_equal(scene->granted.epoch, 1);
    bool found = false;
    for (size_t i = before; i < scene->appended; i++) {
        found = found || scene->journal[i].kind == ENTRY_LEASE_ASIDE;
    }
    assert_true(found);
    end_scene(scene);
}

static void who_is_killed_from_outside_costs_nothing(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    uint64_t next = die(scene, 1, 5, ARBITER_CAUSE_OUTSIDE);
    enrolls(scene, next);
    fetches(scene, next);
    assert_int_equal(scene->granted.count, SHARD);
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = next});
    assert_int_equal(does_all(scene, next + 1), EPOCHS * RECORDS);
    end_scene(scene);
}

/* Until then no worker gets the records that the dead worker held, and the dead worker gets
 * none. */
static void a_death_waits_for_its_cause(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 1);
        fetches(scene, 1);
        enrolls(scene, 2);
        fetches(scene, 2);
        fetches(scene, 1); /* worker 1 waits */
        dies(scene, 1, ARBITER_CAUSE_PENDING);
        does(scene, 2, 1, (struct shard_range){.first = SHARD, .count = SHARD});
        fetches(scene, 2);
        assert_int_equal(scene->granted.count, 0);
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE,
                                    .incarnation = 1,
                                    .cause = own ? ARBITER_CAUSE_OWN : ARBITER_CAUSE_OUTSIDE});
        assert_int_equal(scene->granted.count, own ? SHARD / 2 : SHARD);
        assert_int_equal(scene->granted.first, 0);
        assert_false(arbiter_knows(scene->arbiter, 1));
        end_scene(scene);
    }
}

/* The lease of a dead worker may end before its cause of death is known, because the worker was
 * silent before it died. */
static void a_death_outlives_its_lease(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 1);
        fetches(scene, 1);
        scene->now_ms = SHARD_LEASE_MS - 1;
        dies(scene, 1, ARBITER_CAUSE_PENDING);
        scene->now_ms = SHARD_LEASE_MS;
        feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
        assert_true(arbiter_knows(scene->arbiter, 1));
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE,
                                    .incarnation = 1,
                                    .cause = own ? ARBITER_CAUSE_OWN : ARBITER_CAUSE_OUTSIDE});
        assert_false(arbiter_knows(scene->arbiter, 1));
        enrolls(scene, 2);
        fetches(scene, 2);
        assert_int_equal(scene->granted.count, own ? SHARD / 2 : SHARD);
        end_scene(scene);
    }
}

/* Does the granted records until record 0 is among them. Returns false if the worker must wait. */
static bool works(struct scene *scene, uint64_t who, uint64_t *sequence)
{
    while (scene->granted.count > 0 && scene->granted.first > 0) {
        does(scene, who, ++*sequence, scene->granted);
        fetches(scene, who);
    }
    return scene->granted.count > 0;
}

/* A parent starts the next worker at once: this worker begins before the earlier death is seen, or
 * before its cause is known, and that does not count as a try. */
static void the_next_one_may_come_before_a_death_is_seen(void **state)
{
    (void)state;
    for (int pending = 0; pending < 2; pending++) {
        struct scene *scene = new_scene(false);
        uint64_t sequence = 0;
        enrolls(scene, 1);
        fetches(scene, 1);
        for (uint64_t who = 1; who <= 3; who++, sequence = 0) {
            assert_int_equal(scene->granted.first, 0);
            if (pending) {
                dies(scene, who, ARBITER_CAUSE_PENDING);
            }
            enrolls(scene, who + 1);
            fetches(scene, who + 1);
            assert_false(works(scene, who + 1, &sequence));
            assert_string_equal(scene->failure, "");
            feed(scene, (struct arbiter_event){.kind = pending ? ARBITER_CAUSE : ARBITER_DEAD,
                                               .incarnation = who,
                                               .cause = ARBITER_CAUSE_OWN});
            assert_true(who == 3 || works(scene, who + 1, &sequence));
        }
        assert_non_null(strstr(scene->failure, named));
        end_scene(scene);
    }
}

/* A worker on another host counts as dead if its connection has ended, too. A worker that is only
 * silent may be stopped, and on this host the end of a process is seen. */
static void who_does_not_come_back_has_died(void **state)
{
    (void)state;
    for (int disconnected = 0; disconnected < 4; disconnected++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 1);
        fetches(scene, 1);
        if (disconnected) {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                               .incarnation = 1,
                                               .cause = disconnected == 3 ? ARBITER_CAUSE_PENDING
                                                                          : ARBITER_CAUSE_UNKNOWN});
        }
        if (disconnected == 2) {
            feed(scene, (struct arbiter_event){.kind = ARBITER_CONNECTED, .incarnation = 1});
        }
        scene->now_ms = SHARD_LEASE_MS;
        feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
        enrolls(scene, 2);
        fetches(scene, 2);
        assert_int_equal(scene->granted.count, disconnected == 1 ? SHARD / 2 : SHARD);
        end_scene(scene);
    }
}

static void check_loss(struct scene *scene, enum rendezvous_reason reason)
{
    const struct losses *losses = arbiter_losses(scene->arbiter);
    assert_int_equal(losses->count, 1);
    assert_int_equal(losses->list[0].incarnation, 1);
    assert_int_equal(losses->list[0].reason, reason);
    assert_string_equal(losses->list[0].name, "pod?1");
    assert_string_equal(arbiter_name(scene->arbiter, 1), "pod?1");
}

/* The loss is reported once the cause of death is known, because people are informed of the cause,
 * too. */
static void who_dies_is_lost(void **state)
{
    (void)state;
    static const enum arbiter_cause causes[] = {ARBITER_CAUSE_OWN, ARBITER_CAUSE_OUTSIDE,
                                                ARBITER_CAUSE_UNKNOWN, ARBITER_CAUSE_ENDED};
    for (size_t i = 0; i < 2 * sizeof causes / sizeof *causes; i++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 1);
        fetches(scene, 1);
        if (i % 2) {
            dies(scene, 1, ARBITER_CAUSE_PENDING);
            assert_int_equal(scene->lost, 0);
            feed(scene, (struct arbiter_event){
                            .kind = ARBITER_CAUSE, .incarnation = 1, .cause = causes[i / 2]});
        } else {
            dies(scene, 1, causes[i / 2]);
        }
        assert_int_equal(scene->lost, 1);
        assert_int_equal(scene->reason, RENDEZVOUS_DIED);
        check_loss(scene, RENDEZVOUS_DIED);
        begin(scene);
        check_loss(scene, RENDEZVOUS_DIED);
        end_scene(scene);
    }
}

static void who_is_silent_is_lost(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    enrolls(scene, 1);
    scene->now_ms = SHARD_LEASE_MS;
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_int_equal(scene->lost, 1);
    check_loss(scene, RENDEZVOUS_SILENT);
    end_scene(scene);
}

static void who_ends_is_not_lost(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 2);
        if (leaves) {
            enrolls(scene, 1);
            fetches(scene, 1);
            says(scene, 1, (struct wire_message){.kind = WIRE_LEAVE});
        } else {
            (void)does_all(scene, 1);
        }
        dies(scene, 1, ARBITER_CAUSE_ENDED);
        assert_int_equal(scene->lost, 0);
        assert_int_equal(arbiter_losses(scene->arbiter)->count, 0);
        assert_false(arbiter_knows(scene->arbiter, 1));
        end_scene(scene);
    }
}

/* The host of the worker refuses connections: the records that the worker held can be granted at
 * once, and they are suspects if the end of its connection was seen. */
static void who_is_gone_on_another_host_is_not_waited_for(void **state)
{
    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        struct scene *scene = new_scene(false);
        enrolls(scene, 1);
        fetches(scene, 1);
        if (restarted) {
            begin(scene);
        } else {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DISCONNECTED, .incarnation = 1});
        }
        feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 1});
        assert_false(arbiter_knows(scene->arbiter, 1));
        enrolls(scene, 2);
        fetches(scene, 2);
        assert_int_equal(scene->granted.count, restarted ? SHARD : SHARD / 2);
        end_scene(scene);
    }
}

/* TO_DO includes the suspects: a worker that keeps a position, and begins there, loses no
 * records. */
static void what_is_suspected_is_to_do(void **state)
{
    (void)state;
    struct scene *scene = new_scene(false);
    uint64_t next = die(scene, 1, 1, ARBITER_CAUSE_OWN);
    enrolls(scene, next);
    says(scene, next, (struct wire_message){.kind = WIRE_TO_DO});
    assert_int_equal(scene->to_do, 3);
    assert_int_equal(scene->to_do_records, RECORDS);
    assert_int_equal(scene->held, 0);
    end_scene(scene);
}

/* An entry that is cut is refused: the journal comes from a disk, and may have any content. */
static void an_entry_that_is_none_is_refused(void **state)
{
    (void)state;
    struct scene *scene = new_scene(true);
    (void)die(scene, 1, 3, ARBITER_CAUSE_OWN);
    size_t place = 0;
    while (scene->journal[place].kind != ENTRY_LEASE_ASIDE) {
        place++;
    }
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
    for (size_t cut = 0; cut <= scene->journal[place].count; cut++) {
        struct arbiter *another;
        int r = arbiter_new(&options, &another, &scene->err);
        for (size_t i = 0; r == 0 && i <= place; i++) {
            const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                                .record = scene->journal[i].kind,
                                                .bytes = scene->journal[i].bytes,
                                                .count =
                                                    i == place ? cut : scene->journal[i].count};
            r = arbiter_step(another, &event, &scene->effects, &scene->err);
        }
        bool whole = cut == scene->journal[place].count;
        bool in_table = cut == scene->journal[place].count - 8; /* as in a snapshot */
        assert_int_equal(r, whole || in_table ? 0 : MUSTER_EDATA);
        arbiter_free(another);
    }
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_third_death_fails_the_job),
        cmocka_unit_test(what_is_set_aside_is_in_the_journal),
        cmocka_unit_test(nobody_hears_before_the_journal),
        cmocka_unit_test(who_is_killed_from_outside_costs_nothing),
        cmocka_unit_test(a_death_waits_for_its_cause),
        cmocka_unit_test(a_death_outlives_its_lease),
        cmocka_unit_test(the_next_one_may_come_before_a_death_is_seen),
        cmocka_unit_test(who_does_not_come_back_has_died),
        cmocka_unit_test(who_dies_is_lost),
        cmocka_unit_test(who_is_silent_is_lost),
        cmocka_unit_test(who_ends_is_not_lost),
        cmocka_unit_test(who_is_gone_on_another_host_is_not_waited_for),
        cmocka_unit_test(what_is_suspected_is_to_do),
        cmocka_unit_test(an_entry_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
