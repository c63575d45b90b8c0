/* recording [print] FILE…: gives the pure cores, linked as in the simulator, the inputs that the
 * shipped cores got according to a recording (core/recording.h), and compares the answers and the
 * final states byte for byte. Exits with 1 at the first difference, and prints where it is; or
 * prints how many steps were alike, and exits with 0. `print`: prints a line for each message,
 * pass and effect, for tests that compare recordings of several processes with each other.
 *
 * The recording of a killed process may have a torn end.
 */
#include "core/recording.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "client/plan/plan.h"
#include "commit/code.h"
#include "coordinator/arbiter/code.h"
#include "coordinator/arbiter/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 8, PASS_HEAD = 7, PLAN_FIELDS = 14, RECORDS_MAX = 1 << 16 };

struct entry {
    uint32_t kind;
    const uint8_t *bytes;
    size_t count;
};

struct replay {
    const char *path;
    bool prints;
    uint64_t steps, effects, passes;
    /* a worker's */
    struct commit_member member;
    struct plan plan;
    /* a coordinator's */
    struct arbiter *arbiter;
    struct arbiter_effects answered;
    struct buf again;
};

static uint32_t number_of_4(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool next_entry(const uint8_t *bytes, size_t count, size_t *at, struct entry *ret)
{
    if (count - *at < HEAD_BYTES || number_of_4(bytes + *at + 4) > count - *at - HEAD_BYTES) {
        return false;
    }
    *ret = (struct entry){.kind = number_of_4(bytes + *at),
                          .bytes = bytes + *at + HEAD_BYTES,
                          .count = number_of_4(bytes + *at + 4)};
    *at += HEAD_BYTES + ret->count;
    return true;
}

/* ---- A worker ---- */

static bool member_begins(struct replay *r, const struct entry *e)
{
    if (e->count == 8) {
        commit_member_init(&r->member, recording_number(e->bytes));
    }
    return e->count == 8;
}

static void print_step(const struct replay *r, const struct commit_event *event,
                       const struct commit_effects *effects)
{
    uint64_t incarnation = r->member.incarnation;
    if (event->kind == COMMIT_OPEN) {
        printf("hears %" PRIu64 " open %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", incarnation,
               event->term, event->generation, event->version, event->restore);
    }
    if (event->kind == COMMIT_ACK) {
        printf("hears %" PRIu64 " ack %" PRIu64 " %" PRIu64 "\n", incarnation, event->term,
               event->version);
    }
    uint64_t generation = event->kind == COMMIT_OPEN ? event->generation - 1 : r->member.generation;
    for (size_t i = 0; i < effects->count; i++) {
        if (effects->list[i].kind == COMMIT_DO_APPLY) { /* from the decision in OPEN */
            printf("applies %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", incarnation, generation,
                   effects->list[i].version);
        }
    }
}

static bool member_steps(struct replay *r, const struct entry *e)
{
    uint8_t again[COMMIT_CODE_BYTES_MAX];
    struct commit_event event;
    struct commit_effects effects;
    if (!commit_code_read(e->bytes, e->count, &event)) {
        return false;
    }
    commit_member_step(&r->member, &event, &effects);
    size_t count = commit_code(&event, &effects, &r->member, again);
    r->steps++;
    r->effects += effects.count;
    if (r->prints) {
        print_step(r, &event, &effects);
    }
    return count == e->count && memcmp(again, e->bytes, count) == 0;
}

static bool plan_settles(struct replay *r, const struct entry *e)
{
    uint64_t f[PLAN_FIELDS];
    for (size_t i = 0; i < PLAN_FIELDS && e->count == sizeof f; i++) {
        f[i] = recording_number(e->bytes + 8 * i);
    }
    if (e->count == sizeof f) {
        r->plan = (struct plan){.records = f[0],
                                .seed = f[1],
                                .epochs = (uint32_t)f[2],
                                .batch = (uint32_t)f[3],
                                .micro_batches = (uint32_t)f[4],
                                .shuffle = (uint32_t)f[5],
                                .dataset = (uint32_t)f[6],
                                .max_steps = f[7],
                                .per_worker = f[8] != 0,
                                .anchor = {.version = f[9],
                                           .epoch = (uint32_t)f[10],
                                           .position = f[11],
                                           .next = (uint32_t)f[12],
                                           .later = (uint32_t)f[13]}};
    }
    return e->count == sizeof f && !plan_check(&r->plan);
}

/* Checks that the records are the plan's at these positions, which belong to the micro-batch. */
static bool pass_begins(struct replay *r, const struct entry *e)
{
    static uint64_t records[RECORDS_MAX];
    uint64_t f[PASS_HEAD];
    for (size_t i = 0; i < PASS_HEAD && e->count >= sizeof f; i++) {
        f[i] = recording_number(e->bytes + 8 * i);
    }
    if (e->count < sizeof f || f[6] > RECORDS_MAX || f[0] <= r->plan.anchor.version ||
        f[0] > plan_steps(&r->plan)) {
        return false;
    }
    struct plan_step step = plan_step(&r->plan, f[0]);
    if (f[4] >= step.micro_batches) {
        return false;
    }
    struct shard_range range = plan_micro_batch(&r->plan, &step, (uint32_t)f[4]);
    if (f[5] < range.first || f[5] + f[6] > shard_range_end(range)) {
        return false;
    }
    range.first = f[5];
    range.count = (uint32_t)f[6];
    plan_records(&r->plan, range, records);
    bool alike = e->count == sizeof f + 8 * f[6]; /* none is set aside */
    for (size_t i = 0; i < f[6] && alike; i++) {
        alike = recording_number(e->bytes + sizeof f + 8 * i) == records[i];
    }
    r->passes++;
    if (r->prints) {
        printf("pass %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
               r->member.incarnation, f[1], f[0], f[4], f[5], f[6]);
    }
    return alike;
}

/* ---- A coordinator ---- */

static bool arbiter_begins(struct replay *r, const struct entry *e)
{
    struct arbiter_options options;
    return !r->arbiter && arbiter_code_read_options(e->bytes, e->count, &options) &&
           arbiter_new(&options, &r->arbiter, NULL) == 0;
}

static void print_sent(const struct arbiter_effect *effect, const uint8_t *bytes)
{
    struct wire_message m;
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(effect->count)), WIRE_ROOM_BYTES(effect->count),
                             0};
    bool is_read = room.memory && wire_read(bytes, effect->count, &room, &m, NULL) == 0;
    if (is_read && m.kind == WIRE_OPEN) {
        printf("sends %" PRIu64 " open %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", effect->to,
               m.term, m.open.generation, m.open.base, m.open.restore);
    } else if (is_read && m.kind == WIRE_ACK) {
        printf("sends %" PRIu64 " ack %" PRIu64 " %" PRIu64 "\n", effect->to, m.term,
               m.ack.version);
    }
    free(room.memory);
}

static void print_appended(const struct arbiter_effect *effect, const uint8_t *bytes)
{
    printf("appends %u ", effect->record);
    for (size_t i = 0; i < effect->count; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

static void print_decision(const struct replay *r)
{
    for (size_t i = 0; i < r->answered.count; i++) {
        const struct arbiter_effect *effect = &r->answered.list[i];
        const uint8_t *bytes = arbiter_effect_bytes(&r->answered, effect);
        if (effect->kind == ARBITER_SEND) {
            print_sent(effect, bytes);
        } else if (effect->kind == ARBITER_APPEND) {
            print_appended(effect, bytes);
        }
    }
}

static bool arbiter_steps(struct replay *r, const struct entry *e)
{
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(e->count) + 1), WIRE_ROOM_BYTES(e->count), 0};
    struct wire_message message;
    struct arbiter_event event;
    struct muster_err err = MUSTER_ERR_INIT;
    size_t told;
    bool alike = false;
    if (room.memory && r->arbiter &&
        arbiter_code_read_event(e->bytes, e->count, &room, &message, &event, &told)) {
        int result = arbiter_step(r->arbiter, &event, &r->answered, &err);
        buf_clear(&r->again);
        arbiter_code_event(&event, &r->again);
        arbiter_code_answer(r->arbiter, &event, result, &r->answered, &r->again);
        alike = r->again.used == e->count && memcmp(r->again.data, e->bytes, e->count) == 0;
        r->steps++;
        r->effects += r->answered.count;
        if (r->prints) {
            print_decision(r);
        }
    }
    free(room.memory);
    return alike;
}

/* ---- Both ---- */

static bool replay_entry(struct replay *r, const struct entry *e)
{
    switch (e->kind) {
    case RECORDING_MEMBER: return member_begins(r, e);
    case RECORDING_COMMIT: return member_steps(r, e);
    case RECORDING_PLAN: return plan_settles(r, e);
    case RECORDING_PASS: return pass_begins(r, e);
    case RECORDING_ARBITER: return arbiter_begins(r, e);
    case RECORDING_DECIDE: return arbiter_steps(r, e);
    default: return false;
    }
}

static int replay_file(struct replay *r, const char *path)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *text = NULL;
    size_t count, at = 0, number = 0;
    struct entry entry;
    r->path = path;
    if (file_read(path, SIZE_MAX / 2, &text, &count, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    arbiter_effects_init(&r->answered);
    buf_init(&r->again, ARBITER_BYTES_MAX);
    bool alike = true;
    while (alike && next_entry((const uint8_t *)text, count, &at, &entry)) {
        alike = replay_entry(r, &entry);
        number++;
    }
    if (!alike) {
        (void)fprintf(stderr, "%s: entry %zu, of kind %u: the core answers otherwise\n", path,
                      number, entry.kind);
    }
    arbiter_free(r->arbiter);
    r->arbiter = NULL;
    arbiter_effects_done(&r->answered);
    buf_done(&r->again);
    return alike ? 0 : 1;
}

int main(int count, char **words)
{
    struct replay r = {.prints = count > 1 && strcmp(words[1], "print") == 0};
    for (int i = r.prints ? 2 : 1; i < count; i++) {
        int result = replay_file(&r, words[i]);
        if (result != 0) {
            return result;
        }
    }
    (void)fprintf(stderr, "%" PRIu64 " steps, %" PRIu64 " effects, %" PRIu64 " passes are alike\n",
                  r.steps, r.effects, r.passes);
    return 0;
}
