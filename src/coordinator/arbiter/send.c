/* Makes frames for members, and records for the journal. See internal.h. */
#include "coordinator/arbiter/internal.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <string.h>

void arbiter_append(struct arbiter *a, enum entry_kind kind, size_t offset)
{
    if (a->failed) {
        return;
    }
    if (buf_failed(&a->out->bytes)) {
        arbiter_fail(a, err_no_memory(a->err));
        return;
    }
    const struct arbiter_effect effect = {.kind = ARBITER_APPEND,
                                          .record = kind,
                                          .offset = offset,
                                          .count = a->out->bytes.used - offset};
    arbiter_fail(a, arbiter_effects_add(a->out, effect, a->err));
}

static void write_frame(struct arbiter *a, struct wire_message *message, struct buf *ret)
{
    message->term = a->rendezvous->term;
    if (!a->failed) {
        arbiter_fail(a, entry_write_message(message, ret, a->err));
    }
}

static void add_send(struct arbiter *a, uint64_t to, size_t offset, size_t count)
{
    const struct arbiter_effect effect = {
        .kind = ARBITER_SEND, .to = to, .offset = offset, .count = count};
    if (!a->failed) {
        arbiter_fail(a, arbiter_effects_add(a->out, effect, a->err));
    }
}

void arbiter_send(struct arbiter *a, uint64_t to, struct wire_message *message)
{
    size_t offset = a->out->bytes.used;
    write_frame(a, message, &a->out->bytes);
    add_send(a, to, offset, a->out->bytes.used - offset);
}

void arbiter_refuse(struct arbiter *a, uint64_t to, const char *why)
{
    const struct arbiter_effect ends = {.kind = ARBITER_HANG_UP, .to = to};
    struct wire_message message = {.kind = WIRE_REFUSED,
                                   .refused.why = {why, (uint32_t)strlen(why)}};
    arbiter_send(a, to, &message);
    if (!a->failed) {
        arbiter_fail(a, arbiter_effects_add(a->out, ends, a->err));
    }
}

/* ---- Grants ---- */

uint32_t arbiter_granted_to_one(const struct shard_effects *effects, size_t first,
                                struct shard_range ret[SHARD_EFFECTS_MAX])
{
    uint64_t owner = effects->list[first].owner;
    uint32_t count = 0;
    for (size_t i = first; i < effects->count; i++) {
        const struct shard_effect *effect = &effects->list[i];
        if (effect->kind != SHARD_GRANTED || effect->owner != owner) {
            break;
        }
        ret[count++] = effect->range;
    }
    return count;
}

/* Sends a grant, as one of the last effects of the step: until it returns, effects are added to
 * those. The member may see records that follow from a step only when the step is in the journal.
 */
void arbiter_send_grant(struct arbiter *a, uint64_t to, const struct wire_grant *grant)
{
    struct wire_message message = {.kind = WIRE_GRANT, .grant = *grant};
    struct arbiter_effects *out = a->out;
    a->out = &a->grants;
    arbiter_send(a, to, &message);
    a->out = out;
}

void arbiter_send_grants(struct arbiter *a)
{
    size_t offset = a->out->bytes.used;
    if (a->grants.count > 0 && !a->failed) {
        buf_add(&a->out->bytes, a->grants.bytes.data, a->grants.bytes.used);
    }
    for (size_t i = 0; i < a->grants.count; i++) {
        const struct arbiter_effect *grant = &a->grants.list[i];
        add_send(a, grant->to, offset + grant->offset, grant->count);
    }
    arbiter_effects_clear(&a->grants);
}

/* ---- OPEN ---- */

/* The address of a process that joins with the current event is in its message. */
static const struct wire_address *address_of(const struct arbiter *a, uint32_t slot)
{
    static const struct wire_address unknown;
    uint64_t incarnation = a->rendezvous->peers[slot].incarnation;
    const struct arbiter_event *event = a->event;
    if (event->kind == ARBITER_MESSAGE && event->message->kind == WIRE_JOIN &&
        event->incarnation == incarnation) {
        return &event->message->join.address;
    }
    return a->cards[slot].incarnation == incarnation ? &a->cards[slot].address : &unknown;
}

void arbiter_clean_name(const struct wire_text *name, char ret[ARBITER_NAME_BYTES])
{
    size_t count = name->count < ARBITER_NAME_BYTES ? name->count : ARBITER_NAME_BYTES - 1;
    memset(ret, 0, ARBITER_NAME_BYTES);
    for (size_t i = 0; i < count; i++) {
        ret[i] = name->bytes[i] > ' ' && name->bytes[i] < 0x7f ? name->bytes[i] : '?';
    }
}

/* The name is found in the same way as the address. */
static void name_of(const struct arbiter *a, uint32_t slot, char ret[ARBITER_NAME_BYTES])
{
    uint64_t incarnation = a->rendezvous->peers[slot].incarnation;
    const struct arbiter_event *event = a->event;
    memset(ret, 0, ARBITER_NAME_BYTES);
    if (event->kind == ARBITER_MESSAGE && event->message->kind == WIRE_JOIN &&
        event->incarnation == incarnation) {
        arbiter_clean_name(&event->message->join.name, ret);
    } else if (a->cards[slot].incarnation == incarnation) {
        memcpy(ret, a->cards[slot].name, ARBITER_NAME_BYTES);
    }
}

void arbiter_write_names(const struct arbiter *a, bool next, struct buf *ret)
{
    char name[ARBITER_NAME_BYTES];
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        if (next ? peer->next : peer->standing == RENDEZVOUS_MEMBER) {
            name_of(a, i, name);
            buf_add(ret, name, sizeof name);
        }
    }
}

static uint32_t list_members(const struct arbiter *a, bool next, struct wire_member *ret)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        if (next ? peer->next : peer->standing == RENDEZVOUS_MEMBER) {
            ret[count++] = (struct wire_member){.incarnation = peer->incarnation,
                                                .loaded = next ? peer->loaded : peer->opened_loaded,
                                                .address = *address_of(a, i)};
        }
    }
    return count;
}

/* Returns the index of the oldest checkpoint of that version or later. If the generation began long
 * ago, none may be left, because it has continued since. */
static size_t oldest_after(const struct arbiter *a, uint64_t version)
{
    size_t i = 0;
    while (i + 1 < a->saved_count && a->saved[i].told.version < version) {
        i++;
    }
    return i;
}

void arbiter_write_open(struct arbiter *a, const struct rendezvous_effect *effect, bool next,
                        struct buf *ret)
{
    muster_auto(free) struct wire_member *members = calloc(a->rendezvous->room, sizeof *members);
    struct shard_range suspects[WIRE_SUSPECTS_MAX], aside[WIRE_ASIDE_MAX];
    if (!members) {
        arbiter_fail(a, err_no_memory(a->err));
        return;
    }
    struct wire_message message = {.kind = WIRE_OPEN,
                                   .open = {.generation = effect->generation,
                                            .base = effect->version,
                                            .lineage = effect->lineage,
                                            .restore = effect->restore}};
    if (effect->restore && effect->version > 0 && a->saved_count > 0) {
        const struct wire_checkpoint *told = &a->saved[oldest_after(a, effect->version)].told;
        message.open.checkpoint = told->path;
        memcpy(message.open.digest, told->digest, sizeof message.open.digest);
    }
    message.open.members = (struct wire_members){members, list_members(a, next, members)};
    message.open.suspects = (struct wire_ranges){suspects, arbiter_blame_list(a, suspects)};
    a->asides_opened = next ? a->asides.count : a->asides_opened;
    message.open.aside =
        (struct wire_ranges){aside, asides_list(&a->asides, a->asides_opened, aside)};
    message.open.anchor = *arbiter_anchor_of(a, effect->generation);
    write_frame(a, &message, ret);
}

void arbiter_send_open(struct arbiter *a, const struct rendezvous_effect *effect)
{
    if (!a->open_written) {
        arbiter_blame_note_open(a);
        a->open_offset = a->out->bytes.used;
        arbiter_write_open(a, effect, false, &a->out->bytes);
        a->open_count = a->out->bytes.used - a->open_offset;
        a->open_written = true;
    }
    add_send(a, effect->to, a->open_offset, a->open_count);
}
