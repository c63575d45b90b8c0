/* A coordinator gets any messages of workers that have the token, in any order, while processes
 * die, connections break and time passes: its invariants hold between steps (arbiter_check), and
 * its journal, or a snapshot of it, can be read again.
 *
 * The input is events of six bytes each; the run ends when workers contradict the ledger. If one
 * byte is left over, the size of the job's steps follows the number of its workers. */
#include "coordinator/arbiter/arbiter.h"
#include "coordinator/arbiter/entry.h"
#include "invariant.h"

enum { EVENT_BYTES = 6, RECORDS_MAX = 400, MESSAGES = 10, OWNERS = 4, FIRST_OWNER = 100 };

struct world {
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
    bool full;
    bool grows;
    uint64_t done[OWNERS]; /* the number of the last DONE, as its owner sees it */
};

static void append(struct world *w, const struct arbiter_effect *effect)
{
    w->full = w->full || w->journaled == RECORDS_MAX;
    if (!w->full) {
        uint8_t *bytes = malloc(effect->count + 1);
        invariant(bytes != NULL, "there is memory", "");
        if (effect->count > 0) {
            memcpy(bytes, arbiter_effect_bytes(&w->effects, effect), effect->count);
        }
        w->journal[w->journaled].kind = effect->record;
        w->journal[w->journaled].count = effect->count;
        w->journal[w->journaled++].bytes = bytes;
    }
}

/* Returns false if the arbiter cannot be used any more. */
static bool step(struct world *w, struct arbiter_event event)
{
    bool synced = false;
    event.now_ms = w->now_ms;
    int r = arbiter_step(w->arbiter, &event, &w->effects, &w->err);
    for (size_t i = 0; i < w->effects.count; i++) {
        const struct arbiter_effect *effect = &w->effects.list[i];
        if (effect->kind == ARBITER_APPEND) {
            append(w, effect);
        }
        synced = synced || effect->kind == ARBITER_SYNC;
    }
    if (r < 0) {
        invariant(r == MUSTER_EDATA && *w->err.text, "only contradictions end it", w->err.text);
        return false;
    }
    const char *broken = arbiter_check(w->arbiter);
    invariant(!broken, broken, "");
    return !synced || step(w, (struct arbiter_event){.kind = ARBITER_DURABLE});
}

static void begin(struct world *w)
{
    const struct arbiter_options options = {
        .sizes = {.min_size = 1, .max_size = 3, .first_size = 1},
        .peers = 6,
        .lease_ms = SHARD_LEASE_MS,
        .first_ms = 1000};
    arbiter_free(w->arbiter);
    invariant(arbiter_new(&options, &w->arbiter, &w->err) == 0, "there is memory", "");
    for (size_t i = 0; i < w->journaled; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = w->journal[i].kind,
                                            .bytes = w->journal[i].bytes,
                                            .count = w->journal[i].count};
        int r = arbiter_step(w->arbiter, &event, &w->effects, &w->err);
        invariant(r == 0, "what was appended is read", w->err.text);
    }
    (void)step(w, (struct arbiter_event){.kind = ARBITER_START});
}

static void forget_journal(struct world *w)
{
    while (w->journaled > 0) {
        free(w->journal[--w->journaled].bytes);
    }
}

static void restart(struct world *w, bool compacts)
{
    struct buf bytes;
    uint64_t version = arbiter_version(w->arbiter);
    buf_init(&bytes, 1 << 20);
    if (compacts && arbiter_may_compact(w->arbiter)) {
        invariant(arbiter_snapshot(w->arbiter, &bytes, &w->err) == 0, "a snapshot is made", "");
        forget_journal(w);
        w->journal[0].kind = ENTRY_SNAPSHOT;
        w->journal[0].count = bytes.used;
        w->journal[0].bytes = malloc(bytes.used + 1);
        invariant(w->journal[0].bytes != NULL, "there is memory", "");
        memcpy(w->journal[0].bytes, bytes.data, bytes.used);
        w->journaled = 1;
    }
    buf_done(&bytes);
    begin(w);
    invariant(arbiter_version(w->arbiter) == version, "the log is where it was", "");
}

/* The values of a member's message, which borrows from them. */
struct saying {
    const uint8_t *at;
    struct arbiter_figures now;
    uint64_t version;
    struct shard_range span;
    struct wire_step steps[2];
};

static void begin_saying(struct saying *s, const struct world *w, const uint8_t *at)
{
    s->at = at;
    arbiter_figures(w->arbiter, &s->now);
    uint32_t first = (uint32_t)(s->now.records_done % 20);
    uint32_t count = w->grows ? 4U + at[5] / 64 % 3 * 4 : 8U;
    s->version = s->now.version + at[3] % 4;
    s->span = (struct shard_range){.epoch = (uint32_t)(s->now.records_done / 20 + (at[4] == 255)),
                                   .first = first + (at[4] == 254),
                                   .count = first + count > 20 ? 20 - first : count};
    s->steps[0] = (struct wire_step){s->now.version + 1, 0, {&s->span, at[4] != 253}};
    s->steps[1] = (struct wire_step){s->now.version + 2, 0, {NULL, 0}};
}

static void write_report(struct saying *s, struct wire_message *m)
{
    const uint8_t *at = s->at;
    m->kind = WIRE_REPORT;
    m->report = (struct wire_report){.generation = s->now.generation - (at[5] % 8 == 7),
                                     .version = s->version,
                                     .lost = at[5] % 5,
                                     .ended = at[4] & 8,
                                     .closed = at[4] & 1,
                                     .loaded = at[4] & 2};
    if (s->version > s->now.version && s->version <= s->now.version + 2) {
        m->report.steps = (struct wire_steps){s->steps, (uint32_t)(s->version - s->now.version)};
    } else if (s->version == s->now.version && (at[4] & 4)) {
        m->report.prepared = (struct wire_steps){s->steps, 1};
    }
}

static void write_dataset(const struct world *w, const uint8_t *at, struct wire_message *m)
{
    m->kind = WIRE_DATASET;
    m->dataset = (struct wire_dataset){.name = {"abcdef", at[3] % 3 ? 1 : at[4] % 6},
                                       .task = at[5] % 5 ? 0 : at[5],
                                       .records = 20,
                                       .epochs = at[3] % 2 ? 3 : at[4],
                                       .batch = 4,
                                       .micro_batches = w->grows ? 1 : 2,
                                       .per_worker = w->grows};
}

static void write_pass(struct saying *s, struct wire_message *m)
{
    m->kind = WIRE_PASS;
    m->pass.generation = s->at[5] % 4;
    m->pass.at_hand = (struct wire_ranges){&s->span, s->at[3] % 2};
    s->span.count = s->at[4] % 2 ? 4 : s->span.count;
}

/* Seldom writes a failure, because it ends the job. */
static void write_failure(const uint8_t *at, struct wire_message *m)
{
    m->kind = at[3] == 1 ? WIRE_FAIL : WIRE_PASS;
    if (at[3] == 1) {
        m->fail.why = (struct wire_text){"why\n", at[4] % 5};
    }
}

/* Sends a member's message, in most cases one that fits: otherwise the job would make no progress.
 */
static bool say(struct world *w, const uint8_t *at)
{
    struct saying s;
    begin_saying(&s, w, at);
    struct wire_message m = {.term = s.now.term};
    switch (at[2] % MESSAGES) {
    case 0:
        m.kind = WIRE_JOIN;
        m.join.environment = at[3] % 3;
        break;
    case 1:
        m.kind = WIRE_LEAVE;
        m.leave.finished = at[3] & 1;
        m.leave.broken_off = at[3] & 2;
        break;
    case 2:
    case 3: write_report(&s, &m); break;
    case 4:
        m.kind = WIRE_COMMITS;
        m.commits = (struct wire_commits){s.now.generation, {s.steps, 1 + at[3] % 2}};
        break;
    case 5:
        m.kind = WIRE_CHECKPOINT;
        m.checkpoint = (struct wire_checkpoint){
            .generation = s.now.generation, .version = s.version - at[4] % 3, .path = {"m", 1}};
        break;
    case 6: write_dataset(w, at, &m); break;
    case 7: write_pass(&s, &m); break;
    case 8: write_failure(at, &m); break;
    default: m.kind = WIRE_ASK; m.ask.records = at[3];
    }
    return step(w, (struct arbiter_event){
                       .kind = ARBITER_MESSAGE, .incarnation = 1 + at[1] % 8, .message = &m});
}

static void write_done(const uint8_t *at, uint64_t sequence, const struct shard_range *range,
                       const uint64_t *bits, struct wire_message *m)
{
    m->kind = WIRE_DONE;
    m->done = (struct wire_done){.sequence = sequence,
                                 .done = {range, at[4] % 8 != 7},
                                 .failed = {range, at[4] % 8 == 7},
                                 .sums = {bits, 1}};
}

/* Sends a message of a worker by leases, which may report records as done that it does not hold. */
static bool say_of_leases(struct world *w, const uint8_t *at)
{
    uint32_t owner = at[1] % OWNERS;
    uint64_t bits = at[5];
    struct shard_range range = {
        .dataset = at[5] & 1, .epoch = at[4] & 1, .first = at[3] % 20, .count = 1 + at[4] % 5};
    struct wire_message m = {.kind = WIRE_ENROLL, .term = arbiter_term(w->arbiter)};
    switch (at[2] % 8) {
    case 0:
    case 1:
        m.enroll.dataset = (struct wire_dataset){
            .name = {"lm", 1 + (at[3] & 1)}, .task = 1, .records = 20, .epochs = 2, .batch = 5};
        m.enroll.sums = (struct wire_text){"n", 1};
        m.enroll.again = at[4] & 1;
        m.enroll.held = (struct wire_ranges){&range, at[5] & 1};
        break;
    case 2:
    case 3:
        m.kind = WIRE_FETCH;
        m.fetch.records = 1 + at[3];
        break;
    case 4:
    case 5:
        range = (struct shard_range){at[5] & 1, at[4] & 1, at[3] % 4 * 5, 5};
        w->done[owner] += at[5] % 16 != 15;
        write_done(at, w->done[owner], &range, &bits, &m);
        break;
    case 6:
        m.kind = WIRE_TO_DO;
        m.to_do = (struct wire_to_do){
            .begin = at[3] & 1, .epoch = range.epoch, .ranges = {&range, at[4] & 1}};
        break;
    default: m.kind = at[3] % 4 == 0 ? WIRE_LEAVE : WIRE_PROGRESS;
    }
    if (m.kind == WIRE_ENROLL && !m.enroll.again) {
        w->done[owner] = 0;
    }
    return step(w, (struct arbiter_event){
                       .kind = ARBITER_MESSAGE, .incarnation = FIRST_OWNER + owner, .message = &m});
}

static bool feed(struct world *w, const uint8_t *at)
{
    uint64_t who = at[1] & 16 ? FIRST_OWNER + at[1] % OWNERS : 1 + at[1] % 8;
    switch (at[0] % 16) {
    case 0:
        return step(w, (struct arbiter_event){.kind = ARBITER_DEAD,
                                              .incarnation = who,
                                              .cause = (enum arbiter_cause)(at[2] % 4)});
    case 15:
        return step(w, (struct arbiter_event){.kind = ARBITER_CAUSE,
                                              .incarnation = who,
                                              .cause = (enum arbiter_cause)(at[2] % 4)});
    case 1:
        return step(w, (struct arbiter_event){.kind = ARBITER_DISCONNECTED, .incarnation = who});
    case 2: w->now_ms += at[2] * 200; return step(w, (struct arbiter_event){.kind = ARBITER_TICK});
    case 3: restart(w, at[2] & 1); return true;
    case 4:
    case 5:
    case 6:
    case 7: return say_of_leases(w, at);
    default: return say(w, at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    w = (struct world){.err = MUSTER_ERR_INIT, .grows = size % EVENT_BYTES == 1};
    arbiter_effects_init(&w.effects);
    begin(&w);
    for (; size >= EVENT_BYTES && !w.full && feed(&w, data);
         data += EVENT_BYTES, size -= EVENT_BYTES) {
    }
    arbiter_free(w.arbiter);
    forget_journal(&w);
    arbiter_effects_done(&w.effects);
    return 0;
}
