/* arbiter_step: each event to rendezvous or the records, and what they say to the journal and the
 * members. See arbiter.h. */
#include "coordinator/arbiter/arbiter.h"

#include "base/err.h"
#include "coordinator/arbiter/internal.h"
#include "coordinator/arbiter/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

static int allocate(struct arbiter *a, const struct arbiter_options *options,
                    struct muster_err *err)
{
    size_t effects = RENDEZVOUS_EFFECTS_MAX(options->peers);
    a->rendezvous = malloc(rendezvous_size_bytes(options->peers));
    a->asked = (struct rendezvous_effects){.room = effects,
                                           .list = calloc(effects, sizeof *a->asked.list)};
    a->cards = calloc(options->peers, sizeof *a->cards);
    buf_init(&a->prepared, WIRE_FRAME_MAX);
    arbiter_effects_init(&a->grants);
    if (!a->rendezvous || !a->asked.list || !a->cards) {
        return err_no_memory(err);
    }
    rendezvous_init(a->rendezvous, options->sizes, options->peers);
    return ledger_init(&a->ledger, err);
}

int arbiter_new(const struct arbiter_options *options, struct arbiter **ret, struct muster_err *err)
{
    assert(options->peers <= ARBITER_PEERS_MAX && options->dataset_count <= SHARD_DATASETS_MAX);
    assert(options->lease_ms >= SHARD_LEASE_MS);
    struct arbiter *a = calloc(1, sizeof *a);
    if (!a) {
        return err_no_memory(err);
    }
    a->lease_ms = options->lease_ms;
    a->first_ms = options->first_ms;
    a->deadline_ms = INT64_MAX;
    a->micro_batches = options->micro_batches > 0 ? options->micro_batches : 1;
    a->dataset_count = options->dataset_count;
    for (size_t i = 0; i < options->dataset_count; i++) {
        a->datasets[i] = options->datasets[i];
    }
    int r = allocate(a, options, err);
    if (r < 0) {
        arbiter_free(a);
        return r;
    }
    *ret = a;
    return 0;
}

void arbiter_free(struct arbiter *a)
{
    if (!a) {
        return;
    }
    free(a->rendezvous);
    free(a->asked.list);
    free(a->cards);
    buf_done(&a->prepared);
    arbiter_effects_done(&a->grants);
    ledger_done(&a->ledger);
    free(a);
}

void arbiter_fail(struct arbiter *a, int code)
{
    if (code < 0 && a->failed == 0) {
        a->failed = code;
    }
}

struct card *arbiter_card(struct arbiter *a, uint64_t incarnation)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->cards[i].incarnation == incarnation &&
            a->rendezvous->peers[i].incarnation == incarnation) {
            return &a->cards[i];
        }
    }
    return NULL;
}

static void add(struct arbiter *a, enum arbiter_effect_kind kind)
{
    arbiter_fail(a, arbiter_effects_add(a->out, (struct arbiter_effect){.kind = kind}, a->err));
}

/* ---- What rendezvous says: the journal ---- */

static struct wire_steps steps_of(const struct wire_message *message)
{
    return message->kind == WIRE_REPORT ? message->report.steps : message->commits.steps;
}

/* The records first: what contradicts them is in no journal. */
static void append_steps(struct arbiter *a, const struct rendezvous_effect *effect)
{
    struct wire_steps steps = steps_of(a->event->message);
    uint64_t first = steps.list[0].version;
    struct wire_message message = {
        .kind = WIRE_COMMITS,
        .commits = {.generation = a->rendezvous->generation,
                    .steps = {steps.list + (effect->first - first),
                              (uint32_t)(effect->version - effect->first + 1)}}};
    arbiter_records_commit(a, &message);
    size_t offset = a->out->bytes.used;
    if (!a->failed) {
        message.term = a->rendezvous->term;
        arbiter_fail(a, entry_write_message(&message, &a->out->bytes, a->err));
    }
    arbiter_append(a, ENTRY_STEPS, offset);
}

static void keep_prepared(struct arbiter *a)
{
    const struct wire_message message = {.kind = WIRE_COMMITS,
                                         .commits.steps = a->event->message->report.prepared};
    buf_clear(&a->prepared);
    arbiter_fail(a, entry_write_message(&message, &a->prepared, a->err));
}

static void append_generation(struct arbiter *a, const struct rendezvous_effect *effect)
{
    size_t offset = a->out->bytes.used;
    arbiter_write_open(a, effect, true, &a->out->bytes);
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->rendezvous->peers[i].next) {
            entry_write_age(a->rendezvous->peers[i].age, &a->out->bytes);
        }
    }
    if (effect->prepared) {
        buf_add(&a->out->bytes, a->prepared.data, a->prepared.used);
        replay_steps(a, (const uint8_t *)a->prepared.data, a->prepared.used);
    }
    arbiter_append(a, ENTRY_GENERATION, offset);
}

static void append_checkpoint(struct arbiter *a, uint64_t version)
{
    const struct wire_message *heard = a->event->message;
    bool now = a->event->kind == ARBITER_MESSAGE && heard->kind == WIRE_CHECKPOINT &&
               heard->checkpoint.version == version;
    struct wire_message message = {.kind = WIRE_CHECKPOINT,
                                   .term = a->rendezvous->term,
                                   .checkpoint = now ? heard->checkpoint : a->offered.told};
    size_t offset = a->out->bytes.used;
    replay_checkpoint(a, &message.checkpoint);
    if (!a->failed) {
        arbiter_fail(a, entry_write_message(&message, &a->out->bytes, a->err));
    }
    arbiter_append(a, ENTRY_CHECKPOINT, offset);
}

static void append_term(struct arbiter *a, uint64_t term)
{
    size_t offset = a->out->bytes.used;
    entry_write_term(term, &a->out->bytes);
    arbiter_append(a, ENTRY_TERM, offset);
}

/* ---- What rendezvous says: members ---- */

static const char *why_expelled(enum rendezvous_reason reason)
{
    switch (reason) {
    case RENDEZVOUS_LEFT: return "it has left, as it wished";
    case RENDEZVOUS_SILENT: return "it did not answer in time, and the others went on";
    case RENDEZVOUS_UNREACHABLE: return "an older member could not reach it";
    case RENDEZVOUS_UNKNOWN: return "it is no member of this job: join anew, as a new process";
    case RENDEZVOUS_BROKEN: return "the steps that it reports do not follow those in the log";
    case RENDEZVOUS_AHEAD:
        return "it is of a generation that this coordinator's journal does not have";
    case RENDEZVOUS_FULL: return "there are too many processes in this job";
    case RENDEZVOUS_DONE: return "the job is done";
    }
    return "";
}

static void expel(struct arbiter *a, const struct rendezvous_effect *effect)
{
    const char *why = why_expelled(effect->reason);
    struct wire_message message = {.kind = WIRE_EXPELLED,
                                   .expelled = {.incarnation = effect->to,
                                                .reason = effect->reason,
                                                .why = {why, (uint32_t)strlen(why)}}};
    arbiter_send(a, effect->to, &message);
}

static void send_close(struct arbiter *a, const struct rendezvous_effect *effect)
{
    struct wire_message message = {
        .kind = WIRE_CLOSE,
        .close = {.generation = effect->generation, .boundary = effect->boundary}};
    arbiter_send(a, effect->to, &message);
}

static void acknowledge(struct arbiter *a, const struct rendezvous_effect *effect)
{
    struct wire_message message = {.kind = WIRE_ACK, .ack.version = effect->version};
    arbiter_send(a, effect->to, &message);
}

/* Who waited for records of what does not count any more waits still. */
static void cut(struct arbiter *a)
{
    arbiter_fail(a, ledger_cut(&a->ledger, a->err));
    a->serving = false;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->cards[i].waits > 0) {
            arbiter_records_ask(a, &a->cards[i], a->cards[i].waits);
        }
    }
}

static void await_reports(struct arbiter *a, uint64_t generation, int64_t wait_ms)
{
    a->deadline_generation = generation;
    a->deadline_ms = a->now_ms + wait_ms;
}

static void end(struct arbiter *a)
{
    a->over = true;
    arbiter_append(a, ENTRY_END, a->out->bytes.used);
    add(a, ARBITER_SYNC);
    add(a, ARBITER_END);
}

static void carry_out(struct arbiter *a, const struct rendezvous_effect *effect)
{
    switch (effect->kind) {
    case RENDEZVOUS_APPEND_TERM: append_term(a, effect->term); break;
    case RENDEZVOUS_APPEND_LOG: append_steps(a, effect); break;
    case RENDEZVOUS_APPEND_GENERATION: append_generation(a, effect); break;
    case RENDEZVOUS_APPEND_CHECKPOINT: append_checkpoint(a, effect->version); break;
    case RENDEZVOUS_SYNC: add(a, ARBITER_SYNC); break;
    case RENDEZVOUS_SERVE: add(a, ARBITER_SERVE); break;
    case RENDEZVOUS_OPEN: arbiter_send_open(a, effect); break;
    case RENDEZVOUS_CLOSE: send_close(a, effect); break;
    case RENDEZVOUS_ACK: acknowledge(a, effect); break;
    case RENDEZVOUS_EXPEL: expel(a, effect); break;
    case RENDEZVOUS_KEEP_PREPARED: keep_prepared(a); break;
    case RENDEZVOUS_TAKE_LEASES:
        arbiter_records_take(a, effect->to, &a->event->message->report.leases);
        break;
    case RENDEZVOUS_RESEND_GRANTS: arbiter_records_resend(a, effect->to); break;
    case RENDEZVOUS_RETURN_LEASES: arbiter_records_return(a, effect->to); break;
    case RENDEZVOUS_CUT: cut(a); break;
    case RENDEZVOUS_AWAIT: await_reports(a, effect->generation, ARBITER_DEADLINE_MS); break;
    case RENDEZVOUS_END: end(a); break;
    }
}

/* ---- Telling rendezvous ---- */

static void tell(struct arbiter *a, const struct rendezvous_event *event)
{
    if (a->failed) {
        return;
    }
    rendezvous_step(a->rendezvous, event, &a->asked);
    a->open_written = false;
    for (size_t i = 0; i < a->asked.count && !a->failed; i++) {
        carry_out(a, &a->asked.list[i]);
    }
    if (a->rendezvous->phase != RENDEZVOUS_CLOSING) {
        a->deadline_ms = INT64_MAX;
    }
}

static void give_up_expired(struct arbiter *a)
{
    if (!a->any_expired) {
        return;
    }
    a->any_expired = false;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        struct card *card = &a->cards[i];
        if (card->expired && card->incarnation == a->rendezvous->peers[i].incarnation) {
            bool ended = a->rendezvous->complete;
            tell(a, &(struct rendezvous_event){.kind = ended ? RENDEZVOUS_LEAVE : RENDEZVOUS_DEAD,
                                               .incarnation = card->incarnation,
                                               .finished = ended});
        }
        card->expired = false;
    }
}

static void note_complete(struct arbiter *a)
{
    if (a->rendezvous->phase != RENDEZVOUS_READING && !a->rendezvous->complete &&
        ledger_is_full(&a->ledger)) {
        tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_COMPLETE});
    }
}

/* What follows from the event beside what rendezvous said. */
static void settle(struct arbiter *a)
{
    bool again = true;
    while (again && !a->failed && !a->over) {
        uint64_t generation = a->rendezvous->generation;
        if (a->told_generation != generation) {
            a->told_generation = generation;
            arbiter_records_join(a);
        }
        arbiter_records_serve(a);
        give_up_expired(a);
        note_complete(a);
        again = a->any_expired || a->rendezvous->generation != generation;
    }
}

/* ---- Events ---- */

static void start(struct arbiter *a)
{
    if (a->over) {
        add(a, ARBITER_END);
        return;
    }
    arbiter_datasets_declare(a);
    tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_START});
    arbiter_records_tick(a);
    arbiter_records_join(a);
    a->told_generation = a->rendezvous->generation;
    if (a->rendezvous->generation == 0) {
        await_reports(a, 0, a->first_ms);
    }
}

static void note_join(struct arbiter *a, const struct arbiter_event *event)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        if (peer->standing != RENDEZVOUS_FREE && peer->incarnation == event->incarnation) {
            struct card *card = &a->cards[i];
            if (card->incarnation != event->incarnation) {
                *card = (struct card){.incarnation = event->incarnation};
            }
            card->address = event->message->join.address;
            return;
        }
    }
}

static void hear_checkpoint(struct arbiter *a, const struct wire_checkpoint *told)
{
    tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_CHECKPOINT,
                                       .incarnation = a->event->incarnation,
                                       .generation = told->generation,
                                       .version = told->version});
    if (a->rendezvous->pending_checkpoint == told->version) {
        replay_keep(&a->offered, told);
    }
}

static void hear_report(struct arbiter *a, const struct wire_report *report)
{
    uint64_t first = report->steps.count > 0 ? report->steps.list[0].version : report->version + 1;
    tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_REPORT,
                                       .incarnation = a->event->incarnation,
                                       .generation = report->generation,
                                       .version = report->version,
                                       .first = first,
                                       .lost = report->lost,
                                       .closed = report->closed,
                                       .loaded = report->loaded,
                                       .prepared = report->prepared.count > 0});
}

static void hear_commits(struct arbiter *a, const struct wire_commits *commits)
{
    const struct wire_steps *steps = &commits->steps;
    tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_COMMITS,
                                       .incarnation = a->event->incarnation,
                                       .generation = commits->generation,
                                       .first = steps->list[0].version,
                                       .version = steps->list[steps->count - 1].version});
}

static void hear(struct arbiter *a)
{
    const struct wire_message *m = a->event->message;
    struct rendezvous_event event = {.incarnation = a->event->incarnation};
    struct card *card = arbiter_card(a, event.incarnation);
    arbiter_records_renew(a, event.incarnation);
    switch ((int)m->kind) {
    case WIRE_JOIN:
        event.kind = RENDEZVOUS_JOIN;
        tell(a, &event);
        note_join(a, a->event);
        break;
    case WIRE_LEAVE:
        event.kind = RENDEZVOUS_LEAVE;
        event.finished = m->leave.finished;
        tell(a, &event);
        break;
    case WIRE_REPORT: hear_report(a, &m->report); break;
    case WIRE_COMMITS: hear_commits(a, &m->commits); break;
    case WIRE_CHECKPOINT: hear_checkpoint(a, &m->checkpoint); break;
    case WIRE_DATASET: arbiter_datasets_hear(a, &m->dataset); break;
    case WIRE_ASK:
        if (card && m->ask.records > 0) {
            arbiter_records_ask(a, card, m->ask.records);
        }
        break;
    default: break; /* PROGRESS has renewed its leases; of the others the server lets none pass */
    }
}

/* A joiner that is gone comes back as a new one, or not at all. */
static void disconnected(struct arbiter *a)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, a->event->incarnation);
    struct card *card = arbiter_card(a, a->event->incarnation);
    bool joins = peer && peer->standing == RENDEZVOUS_JOINING;
    if (card) {
        card->asked = 0;
    }
    tell(a, &(struct rendezvous_event){.kind = joins ? RENDEZVOUS_DEAD : RENDEZVOUS_DISCONNECTED,
                                       .incarnation = a->event->incarnation});
}

static void dead(struct arbiter *a)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, a->event->incarnation);
    if (peer && !peer->gone) {
        tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DEAD,
                                           .incarnation = a->event->incarnation});
    }
}

static void tick(struct arbiter *a)
{
    arbiter_records_tick(a);
    if (a->now_ms >= a->deadline_ms) {
        a->deadline_ms = INT64_MAX;
        tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DEADLINE,
                                           .generation = a->deadline_generation});
    }
}

static void take(struct arbiter *a)
{
    switch (a->event->kind) {
    case ARBITER_REPLAY: replay(a, a->event); break;
    case ARBITER_START: start(a); break;
    case ARBITER_MESSAGE: hear(a); break;
    case ARBITER_DISCONNECTED: disconnected(a); break;
    case ARBITER_DEAD: dead(a); break;
    case ARBITER_DURABLE: tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DURABLE}); break;
    case ARBITER_TICK: tick(a); break;
    }
}

int arbiter_step(struct arbiter *a, const struct arbiter_event *event, struct arbiter_effects *ret,
                 struct muster_err *err)
{
    assert(!a->failed);
    arbiter_effects_clear(ret);
    a->now_ms = event->now_ms;
    a->event = event;
    a->out = ret;
    a->err = err;
    take(a);
    if (event->kind != ARBITER_REPLAY) {
        settle(a);
    }
    arbiter_send_grants(a);
    return a->failed;
}

/* ---- What is known ---- */

uint64_t arbiter_term(const struct arbiter *a)
{
    return a->rendezvous->term;
}

uint64_t arbiter_generation(const struct arbiter *a)
{
    return a->rendezvous->generation;
}

uint64_t arbiter_version(const struct arbiter *a)
{
    return a->ledger.version;
}

int64_t arbiter_next_ms(const struct arbiter *a)
{
    int64_t lease_ms = shard_next_ms(a->ledger.shard);
    return a->deadline_ms < lease_ms ? a->deadline_ms : lease_ms;
}

const char *arbiter_check(const struct arbiter *a)
{
    const char *broken = rendezvous_check(a->rendezvous);
    broken = broken ? broken : shard_check(a->ledger.shard);
    if (!broken && a->rendezvous->logged != a->ledger.version &&
        !(a->rendezvous->phase == RENDEZVOUS_RECORDING && a->rendezvous->next_restore)) {
        broken = "the records are those of the log";
    }
    return broken;
}
