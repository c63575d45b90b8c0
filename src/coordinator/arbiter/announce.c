/* Carries out the effects of rendezvous: records of the journal, and messages to members. See
 * internal.h. */
#include "coordinator/arbiter/internal.h"

#include "coordinator/arbiter/replay.h"

#include <string.h>

void arbiter_add(struct arbiter *a, enum arbiter_effect_kind kind)
{
    arbiter_fail(a, arbiter_effects_add(a->out, (struct arbiter_effect){.kind = kind}, a->err));
}

/* ---- Effects of rendezvous: the journal ---- */

static struct wire_steps steps_of(const struct wire_message *message)
{
    return message->kind == WIRE_REPORT ? message->report.steps : message->commits.steps;
}

/* Commits the records before it appends the steps: steps that contradict the records must not be in
 * a journal. */
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

/* Appends the environment of the first members: a worker with another one was refused. */
static void append_environment(struct arbiter *a)
{
    size_t offset = a->out->bytes.used;
    for (uint32_t i = 0; i < a->rendezvous->room && a->environment == 0; i++) {
        if (a->rendezvous->peers[i].next && a->cards[i].environment != 0) {
            a->environment = a->cards[i].environment;
            entry_write_number(a->environment, &a->out->bytes);
            arbiter_append(a, ENTRY_ENVIRONMENT, offset);
        }
    }
}

static void append_generation(struct arbiter *a, const struct rendezvous_effect *effect)
{
    size_t offset = a->out->bytes.used;
    arbiter_anchor_move(a, effect);
    if (effect->restore) {
        replay_forget_checkpoints(a, effect->version);
    }
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
    offset = a->out->bytes.used;
    arbiter_write_names(a, true, &a->out->bytes);
    arbiter_append(a, ENTRY_NAMES, offset);
    append_environment(a);
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

/* ---- Effects of rendezvous: members ---- */

const char *arbiter_why(enum rendezvous_reason reason)
{
    switch (reason) {
    case RENDEZVOUS_LEFT: return "it has left, as it wished";
    case RENDEZVOUS_SILENT: return "it did not answer, and the others went on";
    case RENDEZVOUS_UNREACHABLE: return "an older member could not reach it";
    case RENDEZVOUS_UNKNOWN: return "it is no member of this job: join anew, as a new process";
    case RENDEZVOUS_BROKEN: return "the steps that it reports do not follow those in the log";
    case RENDEZVOUS_AHEAD:
        return "it is of a generation that this coordinator's journal does not have";
    case RENDEZVOUS_FULL: return "there are too many processes in this job";
    case RENDEZVOUS_DONE: return "the job is done";
    case RENDEZVOUS_DIED: return "its process has ended";
    case RENDEZVOUS_FAILED: return "the job has failed";
    case RENDEZVOUS_HANGS: return "its step function did not come back";
    }
    return "";
}

static void expel(struct arbiter *a, const struct rendezvous_effect *effect)
{
    const char *why = arbiter_why(effect->reason);
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

static void append_loss(struct arbiter *a, uint64_t incarnation, enum rendezvous_reason reason)
{
    struct loss loss = {.incarnation = incarnation, .reason = reason};
    size_t offset = a->out->bytes.used;
    memcpy(loss.name, arbiter_name(a, incarnation), strlen(arbiter_name(a, incarnation)));
    losses_add(&a->losses, &loss);
    losses_write(&a->losses, a->losses.kept - 1, &a->out->bytes);
    arbiter_append(a, ENTRY_LOST, offset);
}

void arbiter_lose(struct arbiter *a, enum arbiter_effect_kind kind, uint64_t incarnation,
                  enum rendezvous_reason reason)
{
    struct arbiter_effect lost = {.kind = kind, .to = incarnation, .record = reason};
    bool again = losses_counts(reason) && losses_has_process(&a->losses, incarnation);
    if (again) {
        lost.kind = ARBITER_LOST_AGAIN;
    } else if (losses_counts(reason)) {
        append_loss(a, incarnation, reason);
    }
    if (!a->failed && !(again && kind == ARBITER_LEASER_LOST)) {
        arbiter_fail(a, arbiter_effects_add(a->out, lost, a->err));
    }
}

/* Whether the member was silent. Its slot may be free by now. */
static bool was_silent(const struct arbiter *a, uint64_t incarnation)
{
    uint32_t i = 0;
    while (i < a->rendezvous->room && a->cards[i].incarnation != incarnation) {
        i++;
    }
    return i < a->rendezvous->room && a->cards[i].silent;
}

static void leave_out(struct arbiter *a, const struct rendezvous_effect *effect)
{
    bool silent = effect->reason == RENDEZVOUS_DIED && was_silent(a, effect->to);
    enum rendezvous_reason reason = silent ? RENDEZVOUS_SILENT : effect->reason;
    arbiter_records_return(a, effect->to);
    arbiter_lose(a, ARBITER_LOST, effect->to, reason);
    arbiter_blame_left_out(a, effect->to, reason);
}

/* Cuts the log. A member that waited for records of a step that does not count any more still
 * waits. */
static void cut(struct arbiter *a, uint64_t version)
{
    arbiter_fail(a, ledger_cut(&a->ledger, version, a->err));
    a->serving = false;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->cards[i].waits > 0) {
            arbiter_records_ask(a, &a->cards[i], a->cards[i].waits);
        }
    }
}

void arbiter_await_reports(struct arbiter *a, uint64_t generation, int64_t wait_ms)
{
    a->deadline_generation = generation;
    a->deadline_ms = a->now_ms + wait_ms;
}

bool arbiter_has_failed(const struct arbiter *a)
{
    return a->failure.used > 0;
}

void arbiter_expel_failed(struct arbiter *a, uint64_t incarnation)
{
    struct wire_text why = {buf_str(&a->failure), (uint32_t)a->failure.used};
    struct wire_message message = {
        .kind = WIRE_EXPELLED,
        .expelled = {.incarnation = incarnation, .reason = RENDEZVOUS_FAILED, .why = why}};
    arbiter_send(a, incarnation, &message);
}

static void expel_all(struct arbiter *a)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        if (peer->standing != RENDEZVOUS_FREE && peer->connected && !peer->gone) {
            arbiter_expel_failed(a, peer->incarnation);
        }
    }
    for (size_t i = 0; i < a->leases.owner_count; i++) {
        if (a->leases.owners[i].here && !a->leases.owners[i].dying) {
            arbiter_expel_failed(a, a->leases.owners[i].incarnation);
        }
    }
}

void arbiter_announce_failure(struct arbiter *a)
{
    struct arbiter_effect effect = {
        .kind = ARBITER_FAILED, .offset = a->out->bytes.used, .count = a->failure.used};
    buf_add(&a->out->bytes, a->failure.data, a->failure.used);
    a->over = true;
    arbiter_fail(a, arbiter_effects_add(a->out, effect, a->err));
}

/* Fails the job. The reason is in the journal, so that a coordinator that is started again reports
 * it again. */
void arbiter_fail_job(struct arbiter *a, const char *text)
{
    size_t offset = a->out->bytes.used;
    if (a->over || a->failed) {
        return;
    }
    buf_add(&a->failure, text, strnlen(text, WIRE_TEXT_MAX));
    buf_add(&a->out->bytes, a->failure.data, a->failure.used);
    arbiter_append(a, ENTRY_FAILURE, offset);
    arbiter_add(a, ARBITER_SYNC);
    expel_all(a);
    arbiter_announce_failure(a);
}

void arbiter_end(struct arbiter *a)
{
    a->over = true;
    arbiter_append(a, ENTRY_END, a->out->bytes.used);
    arbiter_add(a, ARBITER_SYNC);
    arbiter_add(a, ARBITER_END);
}

/* The training has ended. Data sets that are evaluated at the end may still be worked on. */
static void end(struct arbiter *a)
{
    a->trained = true;
    if (leases_are_over(&a->leases)) {
        arbiter_end(a);
    }
}

/* Sends the names of the checkpoints, one on a line. */
static void tell_checkpoints(struct arbiter *a, uint64_t to)
{
    struct buf names;
    buf_init(&names, WIRE_TEXT_MAX);
    for (size_t i = 0; i < a->saved_count; i++) {
        buf_add(&names, "\n", i > 0);
        buf_add(&names, a->saved[i].told.path.bytes, a->saved[i].told.path.count);
    }
    if (a->saved_count > 0 && !buf_failed(&names)) {
        struct wire_message message = {.kind = WIRE_CHECKPOINT,
                                       .checkpoint = a->saved[a->saved_count - 1].told};
        message.checkpoint.path = (struct wire_text){names.data, (uint32_t)names.used};
        arbiter_send(a, to, &message);
    }
    buf_done(&names);
}

/* No checkpoint can be read. To begin again would throw away the training so far: a person must
 * decide that. */
static void lose_state(struct arbiter *a)
{
    static const char why[] = "no checkpoint of this job can be read, and no worker has the model";
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        if (a->rendezvous->peers[i].standing != RENDEZVOUS_FREE) {
            arbiter_refuse(a, a->rendezvous->peers[i].incarnation, why);
        }
    }
    const struct wire_text *path = &a->saved[a->saved_count - 1].told.path;
    arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA, "%s; the last of them is %.*s", why,
                                (int)path->count, path->bytes));
}

void arbiter_carry_out(struct arbiter *a, const struct rendezvous_effect *effect)
{
    switch (effect->kind) {
    case RENDEZVOUS_APPEND_TERM: append_term(a, effect->term); break;
    case RENDEZVOUS_APPEND_LOG: append_steps(a, effect); break;
    case RENDEZVOUS_APPEND_GENERATION: append_generation(a, effect); break;
    case RENDEZVOUS_APPEND_CHECKPOINT: append_checkpoint(a, effect->version); break;
    case RENDEZVOUS_SYNC: arbiter_add(a, ARBITER_SYNC); break;
    case RENDEZVOUS_SERVE: arbiter_add(a, ARBITER_SERVE); break;
    case RENDEZVOUS_OPEN: arbiter_send_open(a, effect); break;
    case RENDEZVOUS_CLOSE: send_close(a, effect); break;
    case RENDEZVOUS_ACK: acknowledge(a, effect); break;
    case RENDEZVOUS_EXPEL: expel(a, effect); break;
    case RENDEZVOUS_KEEP_PREPARED: keep_prepared(a); break;
    case RENDEZVOUS_TAKE_LEASES:
        arbiter_records_take(a, effect->to, &a->event->message->report.leases);
        break;
    case RENDEZVOUS_RESEND_GRANTS: arbiter_records_resend(a, effect->to); break;
    case RENDEZVOUS_RETURN_LEASES: leave_out(a, effect); break;
    case RENDEZVOUS_CUT: cut(a, effect->version); break;
    case RENDEZVOUS_AWAIT: arbiter_await_reports(a, effect->generation, ARBITER_DEADLINE_MS); break;
    case RENDEZVOUS_END: end(a); break;
    case RENDEZVOUS_TELL_CHECKPOINTS: tell_checkpoints(a, effect->to); break;
    case RENDEZVOUS_LOST_STATE: lose_state(a); break;
    }
}
