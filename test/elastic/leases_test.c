/* Workers by leases under random faults, in one process: the records that the client holds
 * (client/holdings.h) and the decisions of the coordinator (arbiter), with messages that are late
 * or lost with their connection, workers that die or fall silent, and restarts from the journal or
 * from a snapshot of it.
 *
 * Whatever happens, the coordinator's sums at the end count each record once.
 */
#include "base/testing/test.h"
#include "base/testing/test_seeds.h"
#include "client/holdings.h"
#include "coordinator/arbiter/arbiter.h"
#include "coordinator/arbiter/entry.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 3,
    RECORDS = 97,
    SHARD = 4,
    EPOCHS = 2,
    QUEUE_MAX = 64,
    JOURNAL_MAX = 4096,
    SEEDS = 500,
    EVENTS_MAX = 20000,
};

struct frame {
    uint8_t *bytes;
    size_t count;
};

struct queue {
    struct frame list[QUEUE_MAX];
    size_t count;
};

struct worker {
    uint64_t incarnation; /* 0: no worker */
    bool connected, enrolled, again, asked, ended;
    struct holdings holdings;
    struct queue up, down;
};

struct world {
    uint64_t random;
    uint64_t incarnations;
    int64_t now_ms;
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    struct worker workers[WORKERS];
    struct {
        uint32_t kind;
        struct frame frame;
    } journal[JOURNAL_MAX];
    size_t journaled;
    bool over;
    bool heard;     /* a worker has heard that all is done, and the sums */
    double sums[2]; /* the sums that it heard */
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

/* ---- Messages ---- */

static struct frame copy(const void *bytes, size_t count)
{
    struct frame frame = {malloc(count + 1), count};
    assert_non_null(frame.bytes);
    if (count > 0) {
        memcpy(frame.bytes, bytes, count);
    }
    return frame;
}

static void push(struct queue *queue, struct frame frame)
{
    assert_true(queue->count < QUEUE_MAX);
    queue->list[queue->count++] = frame;
}

static struct frame pop(struct queue *queue)
{
    struct frame frame = queue->list[0];
    memmove(queue->list, queue->list + 1, --queue->count * sizeof frame);
    return frame;
}

static void drop(struct queue *queue)
{
    while (queue->count > 0) {
        free(queue->list[--queue->count].bytes);
    }
}

static void say(struct worker *worker, struct wire_message *message)
{
    uint8_t bytes[1 << 14];
    int64_t count = wire_write(message, bytes, sizeof bytes, NULL);
    assert_true(count > 0 && (size_t)count <= sizeof bytes);
    push(&worker->up, copy(bytes, (size_t)count));
}

/* ---- The coordinator ---- */

static struct worker *worker_of(struct world *w, uint64_t incarnation)
{
    for (int i = 0; i < WORKERS; i++) {
        if (w->workers[i].incarnation == incarnation) {
            return &w->workers[i];
        }
    }
    return NULL;
}

static void carry_out(struct world *w, const struct arbiter_effect *effect)
{
    const uint8_t *bytes = arbiter_effect_bytes(&w->effects, effect);
    struct worker *to = worker_of(w, effect->to);
    if (effect->kind == ARBITER_APPEND) {
        assert_true(w->journaled < JOURNAL_MAX);
        w->journal[w->journaled].kind = effect->record;
        w->journal[w->journaled++].frame = copy(bytes, effect->count);
    } else if (effect->kind == ARBITER_SEND && to && to->connected) {
        push(&to->down, copy(bytes, effect->count));
    } else if (effect->kind == ARBITER_END) {
        w->over = true;
    }
}

static void tell(struct world *w, struct arbiter_event event)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool syncs = true;
    while (syncs && !w->over) {
        event.now_ms = w->now_ms;
        if (arbiter_step(w->arbiter, &event, &w->effects, &err) < 0) {
            fail_msg("%s", err.text);
        }
        const char *broken = arbiter_check(w->arbiter);
        assert_null(broken);
        syncs = false;
        for (size_t i = 0; i < w->effects.count; i++) {
            syncs = syncs || w->effects.list[i].kind == ARBITER_SYNC;
            carry_out(w, &w->effects.list[i]);
        }
        event = (struct arbiter_event){.kind = ARBITER_DURABLE};
    }
}

static void start(struct world *w)
{
    const struct arbiter_options options = {
        .sizes = {1, 4, 1}, .peers = 8, .lease_ms = SHARD_LEASE_MS, .first_ms = 1000};
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(arbiter_new(&options, &w->arbiter, NULL), 0);
    for (size_t i = 0; i < w->journaled; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .now_ms = w->now_ms,
                                            .record = w->journal[i].kind,
                                            .bytes = w->journal[i].frame.bytes,
                                            .count = w->journal[i].frame.count};
        if (arbiter_step(w->arbiter, &event, &w->effects, &err) < 0) {
            fail_msg("%s", err.text);
        }
    }
    tell(w, (struct arbiter_event){.kind = ARBITER_START});
}

static void forget_journal(struct world *w)
{
    while (w->journaled > 0) {
        free(w->journal[--w->journaled].frame.bytes);
    }
}

static void compact(struct world *w)
{
    struct buf bytes;
    buf_init(&bytes, 1 << 20);
    if (arbiter_may_compact(w->arbiter)) {
        assert_int_equal(arbiter_snapshot(w->arbiter, &bytes, NULL), 0);
        forget_journal(w);
        w->journal[0].kind = ENTRY_SNAPSHOT;
        w->journal[w->journaled++].frame = copy(bytes.data, bytes.used);
    }
    buf_done(&bytes);
}

/* ---- A worker ---- */

static void disconnect(struct world *w, struct worker *worker, bool told)
{
    bool was = worker->connected;
    worker->connected = worker->enrolled = false;
    drop(&worker->up);
    drop(&worker->down);
    if (was && told) {
        tell(w, (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                       .incarnation = worker->incarnation,
                                       .cause = ARBITER_CAUSE_PENDING});
    }
}

static void say_enroll(struct worker *worker)
{
    struct shard_range *held = NULL;
    uint32_t count = 0;
    assert_int_equal(holdings_list(&worker->holdings, true, &held, &count, NULL), 0);
    struct wire_message m = {.kind = WIRE_ENROLL,
                             .enroll = {.dataset = {.name = {"d", 1},
                                                    .task = SHARD_EVALUATE,
                                                    .records = RECORDS,
                                                    .epochs = EPOCHS,
                                                    .batch = SHARD},
                                        .sums = {"ones,positions", 14},
                                        .again = worker->again,
                                        .held = {held, count}}};
    say(worker, &m);
    free(held);
}

static void say_done(struct worker *worker)
{
    uint64_t bits[WIRE_SUMS_MAX];
    struct wire_message m = {.kind = WIRE_DONE, .done = holdings_message(&worker->holdings, bits)};
    say(worker, &m);
}

static void say_fetch(struct worker *worker, uint64_t records)
{
    struct wire_message m = {.kind = WIRE_FETCH, .fetch.records = records};
    worker->asked = true;
    say(worker, &m);
}

static void begin(struct world *w, struct worker *worker)
{
    holdings_done(&worker->holdings);
    *worker = (struct worker){.incarnation = ++w->incarnations};
    holdings_init(&worker->holdings, SHARD, 2);
}

static void die(struct world *w, struct worker *worker, bool proven)
{
    uint64_t incarnation = worker->incarnation;
    disconnect(w, worker, true);
    if (proven) {
        tell(w, (struct arbiter_event){.kind = ARBITER_DEAD,
                                       .incarnation = incarnation,
                                       .cause = ARBITER_CAUSE_OUTSIDE});
    }
    begin(w, worker);
}

static void hear(struct world *w, struct worker *worker)
{
    struct frame frame = pop(&worker->down);
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(frame.count) + 1), WIRE_ROOM_BYTES(frame.count),
                             0};
    struct wire_message m;
    assert_int_equal(wire_read(frame.bytes, frame.count, &room, &m, NULL), 0);
    if (m.kind == WIRE_DATASET) {
        worker->enrolled = worker->again = true;
        if (worker->holdings.under_way) {
            say_done(worker);
        }
        if (worker->asked) {
            say_fetch(worker, SHARD);
        }
    } else if (m.kind == WIRE_LEASED && m.leased.all) {
        assert_int_equal(
            holdings_grant_unknown(&worker->holdings, &m.leased.ranges, m.leased.sequence, NULL),
            0);
    } else if (m.kind == WIRE_LEASED) {
        worker->asked = m.leased.ranges.count == 0 && !m.leased.ended;
        worker->ended = m.leased.ended;
        assert_int_equal(holdings_grant(&worker->holdings, &m.leased.ranges, NULL), 0);
        if (m.leased.ended) {
            w->heard = true;
            memcpy(w->sums, m.leased.sums.list, sizeof w->sums);
        }
    } else if (m.kind == WIRE_RECEIPT) {
        holdings_receipt(&worker->holdings, m.receipt.sequence);
    } else if (m.kind == WIRE_EXPELLED) {
        disconnect(w, worker, true);
        begin(w, worker);
    } else {
        fail_msg("%s was sent", wire_kind_name(m.kind));
    }
    free(room.memory);
    free(frame.bytes);
}

/* Works on some of the granted records: a range that is fetched is reported at once, or fails. */
static void work(struct world *w, struct worker *worker)
{
    struct shard_range range;
    uint64_t number;
    if (!worker->enrolled) {
        return;
    }
    if (holdings_fetch(&worker->holdings, &number, &range, NULL) == 1) {
        double sums[2] = {0, 0};
        for (uint32_t i = 0; i < range.count; i++) {
            sums[0] += 1;
            sums[1] += (double)(range.first + i);
        }
        bool done = draw(w, 100) != 0 || worker->incarnation % 2;
        assert_int_equal(holdings_report(&worker->holdings, number, done, sums, NULL), 0);
    } else if (!worker->asked && !worker->ended && worker->up.count < QUEUE_MAX / 2) {
        say_fetch(worker, SHARD * (1 + draw(w, 3)));
    }
    if (holdings_next(&worker->holdings)) {
        say_done(worker);
    }
    if (worker->ended && holdings_all_durable(&worker->holdings) &&
        worker->holdings.granted.count == 0) {
        struct wire_message m = {.kind = WIRE_LEAVE, .leave.finished = true};
        say(worker, &m);
        worker->enrolled = false; /* the worker sends nothing after this */
        worker->ended = false;
    }
}

static void deliver(struct world *w, struct worker *worker)
{
    struct frame frame = pop(&worker->up);
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(frame.count) + 1), WIRE_ROOM_BYTES(frame.count),
                             0};
    struct wire_message m;
    assert_int_equal(wire_read(frame.bytes, frame.count, &room, &m, NULL), 0);
    bool leaves = m.kind == WIRE_LEAVE;
    tell(w, (struct arbiter_event){
                .kind = ARBITER_MESSAGE, .incarnation = worker->incarnation, .message = &m});
    free(room.memory);
    free(frame.bytes);
    if (leaves && !w->over) {
        disconnect(w, worker, true);
        begin(w, worker);
    }
}

/* ---- The run ---- */

static void restart(struct world *w, bool compacts)
{
    for (int i = 0; i < WORKERS; i++) {
        disconnect(w, &w->workers[i], false);
    }
    if (compacts) {
        compact(w);
    }
    arbiter_free(w->arbiter);
    start(w);
}

static void connect(struct world *w, struct worker *worker)
{
    (void)w;
    if (!worker->connected) {
        worker->connected = true;
        say_enroll(worker);
    }
}

static void turn(struct world *w, bool faults)
{
    struct worker *worker = &w->workers[draw(w, WORKERS)];
    uint64_t what = draw(w, faults ? 1000 : 980);
    if (what >= 996) {
        restart(w, what % 2);
    } else if (what >= 992) {
        die(w, worker, what % 2);
    } else if (what >= 988) {
        disconnect(w, worker, true);
    } else if (what >= 980) { /* a worker that is away long enough loses its leases */
        w->now_ms += (int64_t)draw(w, SHARD_LEASE_MS / 2);
        tell(w, (struct arbiter_event){.kind = ARBITER_TICK});
    } else if (!worker->connected) {
        connect(w, worker);
    } else if (what % 3 == 0 && worker->up.count > 0) {
        deliver(w, worker);
    } else if (what % 3 == 1 && worker->down.count > 0) {
        hear(w, worker);
    } else if (worker->up.count < QUEUE_MAX / 2 && worker->down.count < QUEUE_MAX / 2) {
        work(w, worker);
    }
}

static void run_seed(uint64_t seed)
{
    static struct world w;
    w = (struct world){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .now_ms = 1000};
    arbiter_effects_init(&w.effects);
    for (int i = 0; i < WORKERS; i++) {
        begin(&w, &w.workers[i]);
    }
    start(&w);
    int events = 0;
    for (; !w.over && events < EVENTS_MAX; events++) {
        turn(&w, events < EVENTS_MAX / 2);
        if (events % 64 == 0 && !w.over) { /* time passes */
            w.now_ms += SHARD_LEASE_MS / 8;
            tell(&w, (struct arbiter_event){.kind = ARBITER_TICK});
        }
    }
    struct shard_progress data;
    const char *names;
    const double *sums;
    assert_true(arbiter_leased(w.arbiter, 0, &data, &names, &sums));
    double want[2] = {EPOCHS * RECORDS, EPOCHS * RECORDS * (RECORDS - 1) / 2};
    bool told = w.heard ? memcmp(w.sums, want, sizeof want) == 0 : true;
    if (!w.over || !told || memcmp(sums, want, sizeof want) != 0) {
        fail_msg("seed %llu: over %d after %d events, %.0f records of %.0f, %.0f of %.0f",
                 (unsigned long long)seed, w.over, events, sums[0], want[0], sums[1], want[1]);
    }
    for (int i = 0; i < WORKERS; i++) {
        disconnect(&w, &w.workers[i], false);
        holdings_done(&w.workers[i].holdings);
    }
    arbiter_free(w.arbiter);
    forget_journal(&w);
    arbiter_effects_done(&w.effects);
}

static void every_record_counts_once_whatever_happens(void **state)
{
    (void)state;
    test_each_seed(SEEDS, run_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_counts_once_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
