/* See replay.h. */
#include "coordinator/arbiter/replay.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <string.h>

static void tell(struct arbiter *a, struct rendezvous_event event)
{
    if (!a->failed) {
        rendezvous_step(a->rendezvous, &event, &a->asked);
    }
}

static struct wire_room make_room(struct arbiter *a, size_t count)
{
    struct wire_room room = {.memory = malloc(WIRE_ROOM_BYTES(count) + 1),
                             .size_bytes = WIRE_ROOM_BYTES(count)};
    if (!room.memory) {
        arbiter_fail(a, err_no_memory(a->err));
        room.size_bytes = 0;
    }
    return room;
}

void replay_steps(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    struct wire_room room = make_room(a, count);
    struct wire_message message;
    if (!a->failed) {
        arbiter_fail(a, entry_read_message(bytes, count, WIRE_COMMITS, &room, &message, a->err));
    }
    if (!a->failed) {
        arbiter_records_commit(a, &message);
    }
    free(room.memory);
}

void replay_keep(struct saved *saved, const struct wire_checkpoint *told)
{
    saved->told = *told;
    memcpy(saved->path, told->path.bytes, told->path.count);
    saved->told.path.bytes = saved->path;
}

/* Adds a checkpoint. Each entry contains its path, so that entries cannot be moved by copying
 * alone. */
static void push_saved(struct arbiter *a, const struct wire_checkpoint *told)
{
    if (a->saved_count == RENDEZVOUS_CHECKPOINTS_MAX) {
        for (size_t i = 1; i < a->saved_count; i++) {
            replay_keep(&a->saved[i - 1], &a->saved[i].told);
        }
        a->saved_count--;
    }
    replay_keep(&a->saved[a->saved_count++], told);
}

void replay_forget_checkpoints(struct arbiter *a, uint64_t version)
{
    while (a->saved_count > 0 && a->saved[a->saved_count - 1].told.version > version) {
        a->saved_count--;
    }
}

void replay_checkpoint(struct arbiter *a, const struct wire_checkpoint *told)
{
    if (told->version < a->ledger.first || told->version <= a->ledger.checkpoint ||
        told->version > a->ledger.version || told->path.count > WIRE_TEXT_MAX) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA,
                                    "the checkpoint of version %llu is none of this log",
                                    (unsigned long long)told->version));
        return;
    }
    arbiter_fail(a, ledger_set_checkpoint(&a->ledger, told->version, a->err));
    push_saved(a, told);
}

/* Replays the members in their order, each in its slot. */
static void replay_members(struct arbiter *a, const struct entry_generation *generation)
{
    const struct wire_members *members = &generation->open.open.members;
    for (uint32_t i = 0; i < members->count && !a->failed; i++) {
        const struct wire_member *member = &members->list[i];
        tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_MEMBER,
                                          .incarnation = member->incarnation,
                                          .age = entry_age(generation, i),
                                          .loaded = member->loaded});
        if (i < a->rendezvous->room) {
            a->cards[i] =
                (struct card){.incarnation = member->incarnation, .address = member->address};
        }
    }
}

static void open_generation(struct arbiter *a, const struct entry_generation *generation)
{
    const struct wire_open *open = &generation->open.open;
    tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_GENERATION,
                                      .generation = open->generation,
                                      .version = open->base,
                                      .lineage = open->lineage,
                                      .restore = open->restore});
    a->asides_opened = open->aside.count;
    arbiter_anchor_take(a, open);
    replay_members(a, generation);
}

static void replay_generation(struct arbiter *a, const struct arbiter_event *event)
{
    struct wire_room room = make_room(a, event->count);
    struct entry_generation generation = {0};
    if (!a->failed) {
        arbiter_fail(a,
                     entry_read_generation(event->bytes, event->count, &room, &generation, a->err));
    }
    const struct wire_open *open = &generation.open.open;
    if (!a->failed && open->restore) {
        arbiter_fail(a, ledger_cut(&a->ledger, open->base, a->err));
        replay_forget_checkpoints(a, open->base);
    }
    if (!a->failed && generation.commits) {
        arbiter_records_commit(a, &generation.step);
    }
    if (!a->failed && open->base != a->ledger.version) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA,
                                    "generation %llu begins at version %llu, the log ends at %llu",
                                    (unsigned long long)open->generation,
                                    (unsigned long long)open->base,
                                    (unsigned long long)a->ledger.version));
    }
    if (!a->failed) {
        open_generation(a, &generation);
    }
    free(room.memory);
}

/* Replays the names, in the order of the members as they were opened: each name belongs to the slot
 * of its place. */
static void replay_names(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    size_t members = count / ARBITER_NAME_BYTES;
    bool wrong = count % ARBITER_NAME_BYTES != 0;
    for (size_t i = 0; i < members && !wrong && i < a->rendezvous->room; i++) {
        const uint8_t *name = bytes + i * ARBITER_NAME_BYTES;
        wrong = !memchr(name, 0, ARBITER_NAME_BYTES);
        if (!wrong) {
            memcpy(a->cards[i].name, name, ARBITER_NAME_BYTES);
        }
    }
    if (wrong) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA, "a record of the journal has no names"));
    }
}

/* The environment is written once. */
static void replay_environment(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    enum { NUMBER_BYTES = 8 };
    uint64_t number = count == NUMBER_BYTES ? entry_read_number(bytes) : 0;
    if (number == 0 || a->environment != 0) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA,
                                    "a record of the journal is no environment of workers"));
    }
    a->environment = number;
}

/* The limit is written once, before all steps. */
static void replay_max_steps(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    enum { NUMBER_BYTES = 8 };
    uint64_t number = count == NUMBER_BYTES ? entry_read_number(bytes) : 0;
    if (number == 0 || a->ledger.max_steps != 0 || a->ledger.version != 0) {
        arbiter_fail(
            a, muster_fail(a->err, MUSTER_EDATA, "a record of the journal is no limit of steps"));
    }
    a->ledger.max_steps = number;
}

static void replay_told_checkpoint(struct arbiter *a, const struct arbiter_event *event)
{
    struct wire_room room = {0};
    struct wire_message message;
    int r =
        entry_read_message(event->bytes, event->count, WIRE_CHECKPOINT, &room, &message, a->err);
    arbiter_fail(a, r);
    if (r == 0) {
        replay_checkpoint(a, &message.checkpoint);
        tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_CHECKPOINT,
                                          .version = message.checkpoint.version});
    }
}

static void replay_dataset(struct arbiter *a, const struct arbiter_event *event)
{
    struct shard_dataset spec;
    bool added;
    int r = entry_read_dataset(event->bytes, event->count, &spec, a->err);
    arbiter_fail(a, r < 0 ? r : ledger_add(&a->ledger, &spec, &added, a->err));
}

static void replay_term(struct arbiter *a, const struct arbiter_event *event)
{
    uint64_t term = 0;
    arbiter_fail(a, entry_read_term(event->bytes, event->count, &term, a->err));
    tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_TERM, .term = term});
}

/* ---- A snapshot ---- */

/* Restores the generation. Its log continues after its base. */
static void restore_generation(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    struct wire_room room = make_room(a, count);
    struct entry_generation generation;
    if (!a->failed) {
        arbiter_fail(a, entry_read_generation(bytes, count, &room, &generation, a->err));
    }
    if (!a->failed) {
        open_generation(a, &generation);
    }
    free(room.memory);
}

static void restore_checkpoint(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    struct wire_room room = {0};
    struct wire_message message;
    int r = entry_read_message(bytes, count, WIRE_CHECKPOINT, &room, &message, a->err);
    arbiter_fail(a, r);
    if (r == 0) {
        push_saved(a, &message.checkpoint);
        tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_CHECKPOINT,
                                          .version = message.checkpoint.version});
    }
}

/* Reads a number, and the records at that version. */
static void restore_older(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    enum { NUMBER_BYTES = 8 };
    arbiter_fail(a,
                 count < NUMBER_BYTES
                     ? muster_fail(a->err, MUSTER_EDATA, "a snapshot has a wrong section")
                     : older_add(&a->ledger.older, a->ledger.checkpoint, entry_read_number(bytes),
                                 bytes + NUMBER_BYTES, count - NUMBER_BYTES, a->err));
}

static void restore_section(struct arbiter *a, uint32_t kind, const uint8_t *bytes, size_t count)
{
    struct arbiter_event event = {
        .kind = ARBITER_REPLAY, .record = kind, .bytes = bytes, .count = count};
    uint64_t version = 0;
    switch (kind) {
    case ENTRY_LEDGER: arbiter_fail(a, ledger_read(&a->ledger, bytes, count, a->err)); break;
    case ENTRY_GENERATION: restore_generation(a, bytes, count); break;
    case ENTRY_CHECKPOINT: restore_checkpoint(a, bytes, count); break;
    case ENTRY_OLDER: restore_older(a, bytes, count); break;
    case ENTRY_LOGGED:
        arbiter_fail(a, entry_read_term(bytes, count, &version, a->err));
        tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_LOG, .version = version});
        break;
    case ENTRY_LEASES: leases_read(a, bytes, count); break;
    case ENTRY_DATASET:
    case ENTRY_LOST:
    case ENTRY_ASIDE:
    case ENTRY_LEASE_ASIDE:
    case ENTRY_NAMES:
    case ENTRY_ENVIRONMENT:
    case ENTRY_MAX_STEPS:
    case ENTRY_TERM: replay(a, &event); break;
    default: arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA, "a snapshot has a wrong section"));
    }
}

static void replay_snapshot(struct arbiter *a, const struct arbiter_event *event)
{
    const uint8_t *bytes;
    size_t at = 0, count;
    uint32_t kind;
    bool wrong = a->rendezvous->term > 0; /* it must be the first record */
    while (!wrong && !a->failed &&
           entry_read_section(event->bytes, event->count, &at, &kind, &bytes, &count, &wrong)) {
        restore_section(a, kind, bytes, count);
    }
    if (!a->failed && (wrong || a->rendezvous->logged != a->ledger.version)) {
        arbiter_fail(a,
                     muster_fail(a->err, MUSTER_EDATA, "a record of the journal is no snapshot"));
    }
}

static void replay_failure(struct arbiter *a, const struct arbiter_event *event)
{
    a->over = true;
    buf_clear(&a->failure);
    buf_add(&a->failure, event->bytes, event->count);
    if (event->count == 0 || event->count > WIRE_TEXT_MAX ||
        memchr(event->bytes, 0, event->count) || buf_failed(&a->failure)) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA, "a record of the journal is no failure"));
    }
}

void replay(struct arbiter *a, const struct arbiter_event *event)
{
    switch (event->record) {
    case ENTRY_DATASET: replay_dataset(a, event); break;
    case ENTRY_TERM: replay_term(a, event); break;
    case ENTRY_GENERATION: replay_generation(a, event); break;
    case ENTRY_STEPS:
        replay_steps(a, event->bytes, event->count);
        tell(a, (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_LOG,
                                          .version = a->ledger.version});
        break;
    case ENTRY_CHECKPOINT: replay_told_checkpoint(a, event); break;
    case ENTRY_END: a->over = true; break;
    case ENTRY_LOST:
        arbiter_fail(a, losses_read(&a->losses, event->bytes, event->count, a->err));
        break;
    case ENTRY_ASIDE:
        arbiter_fail(a, asides_read(&a->asides, event->bytes, event->count, a->err));
        break;
    case ENTRY_LEASE_ASIDE: leases_replay_aside(a, event->bytes, event->count); break;
    case ENTRY_NAMES: replay_names(a, event->bytes, event->count); break;
    case ENTRY_ENVIRONMENT: replay_environment(a, event->bytes, event->count); break;
    case ENTRY_MAX_STEPS: replay_max_steps(a, event->bytes, event->count); break;
    case ENTRY_SNAPSHOT: replay_snapshot(a, event); break;
    case ENTRY_LEASED: leases_replay_dataset(a, event); break;
    case ENTRY_OWNER: leases_replay_owner(a, event); break;
    case ENTRY_DONE: leases_replay_done(a, event); break;
    case ENTRY_BEGIN: leases_replay_begin(a, event); break;
    case ENTRY_FAILURE: replay_failure(a, event); break;
    default:
        arbiter_fail(a, muster_fail(a->err, MUSTER_EUNSUPPORTED,
                                    "the journal has a record of kind %u, of a newer version",
                                    event->record));
    }
}
