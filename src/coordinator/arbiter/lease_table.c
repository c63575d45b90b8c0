/* The table of leases and their holders, and the effects of its changes. See leasing.h. */
#include "coordinator/arbiter/leasing.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <string.h>

enum { RANGES_OF_A_FRAME = 4096 };

/* ---- Memory ---- */

int leases_init(struct leases *leases, struct muster_err *err)
{
    *leases = (struct leases){.shard = shard_new(0)};
    return leases->shard ? 0 : err_no_memory(err);
}

void leases_done(struct leases *leases)
{
    shard_free(leases->shard);
    free(leases->owners);
}

/* ---- Owners ---- */

static size_t place_of(const struct leases *leases, uint64_t incarnation)
{
    size_t low = 0, high = leases->owner_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (leases->owners[middle].incarnation < incarnation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct lease_owner *leases_owner(const struct leases *leases, uint64_t incarnation)
{
    size_t place = place_of(leases, incarnation);
    bool there = place < leases->owner_count && leases->owners[place].incarnation == incarnation;
    return there ? &leases->owners[place] : NULL;
}

struct lease_owner *leases_add_owner(struct leases *leases, uint64_t incarnation)
{
    if (leases->owner_count == leases->owner_room) {
        size_t room = leases->owner_room ? 2 * leases->owner_room : 64;
        struct lease_owner *larger =
            room <= LEASES_OWNERS_MAX ? reallocarray(leases->owners, room, sizeof *larger) : NULL;
        if (!larger) {
            return NULL;
        }
        leases->owners = larger;
        leases->owner_room = room;
    }
    size_t place = place_of(leases, incarnation);
    struct lease_owner *owner = &leases->owners[place];
    memmove(owner + 1, owner, (leases->owner_count - place) * sizeof *owner);
    *owner = (struct lease_owner){.incarnation = incarnation};
    leases->owner_count++;
    leases->away++;
    return owner;
}

void leases_remove_owner(struct leases *leases, struct lease_owner *owner)
{
    size_t place = (size_t)(owner - leases->owners);
    leases->away -= !owner->here;
    leases->owner_count--;
    memmove(owner, owner + 1, (leases->owner_count - place) * sizeof *owner);
}

/* ---- Messages to members ---- */

/* Sends a lease. The member may see it only when the records from which it follows are in the
 * journal. */
static void send_leased(struct arbiter *a, uint64_t to, const struct wire_leased *leased)
{
    struct wire_message message = {.kind = WIRE_LEASED, .leased = *leased};
    struct arbiter_effects *out = a->out;
    a->out = &a->grants;
    arbiter_send(a, to, &message);
    a->out = out;
}

void leases_send_ended(struct arbiter *a, const struct lease_owner *owner)
{
    const struct lease_sums *sums = &a->leases.sums[owner->dataset];
    uint64_t bits[WIRE_SUMS_MAX];
    memcpy(bits, sums->list, sizeof bits);
    send_leased(a, owner->incarnation,
                &(struct wire_leased){.ended = true,
                                      .sums = {bits, sums->count},
                                      .left_out = leases_left_out(&a->leases, owner->dataset)});
}

/* Notes that the member must be informed of the end, once the last records are durable. */
static void note_ended(struct arbiter *a, uint64_t incarnation)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner) {
        owner->ends = true;
        a->leases.appended = true;
    }
}

void leases_expel(struct arbiter *a, uint64_t to, const char *why)
{
    const struct arbiter_effect ends = {.kind = ARBITER_HANG_UP, .to = to};
    struct wire_message message = {.kind = WIRE_EXPELLED,
                                   .expelled = {.incarnation = to,
                                                .reason = RENDEZVOUS_SILENT,
                                                .why = {why, (uint32_t)strlen(why)}}};
    arbiter_send(a, to, &message);
    if (!a->failed) {
        arbiter_fail(a, arbiter_effects_add(a->out, ends, a->err));
    }
}

static void send_all(struct arbiter *a, uint64_t to, const struct shard_range *ranges,
                     uint32_t count)
{
    const struct lease_owner *owner = leases_owner(&a->leases, to);
    send_leased(a, to,
                &(struct wire_leased){.all = true,
                                      .sequence = owner ? owner->sequence : 0,
                                      .ranges = {ranges, count}});
}

void leases_send_held(struct arbiter *a, uint64_t owner)
{
    muster_auto(free) struct shard_range *ranges = calloc(RANGES_OF_A_FRAME, sizeof *ranges);
    const struct shard_range *last = NULL;
    struct shard_range range;
    uint32_t count = 0;
    if (!ranges) {
        arbiter_fail(a, err_no_memory(a->err));
        return;
    }
    while (shard_held_next(a->leases.shard, owner, last, &range)) {
        if (count == RANGES_OF_A_FRAME) {
            send_all(a, owner, ranges, count);
            count = 0;
        }
        ranges[count++] = range;
        last = &ranges[count - 1];
    }
    if (count > 0) {
        send_all(a, owner, ranges, count);
    }
}

/* ---- Effects of the table ---- */

static void waits_no_more(struct arbiter *a, uint64_t incarnation)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner) {
        owner->wanted = 0;
    }
}

static size_t send_granted(struct arbiter *a, const struct shard_effects *effects, size_t first)
{
    struct shard_range ranges[SHARD_EFFECTS_MAX];
    uint64_t owner = effects->list[first].owner;
    uint32_t count = arbiter_granted_to_one(effects, first, ranges);
    waits_no_more(a, owner);
    send_leased(a, owner, &(struct wire_leased){.ranges = {ranges, count}});
    return first + count;
}

/* Removes an owner; its records are to do again. */
void leases_put_out(struct arbiter *a, uint64_t incarnation)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner) {
        leases_append_owner(a, owner, false);
        leases_remove_owner(&a->leases, owner);
        (void)leases_tell(a, &(struct shard_event){.kind = SHARD_GONE, .owner = incarnation});
    }
}

/* The lease of an owner has ended. If its connection has ended and it did not come back, it has
 * died on another host. If its cause of death will be reported soon, the decision waits for that:
 * killed or not, the owner is not only silent any more. */
static void expire(struct arbiter *a, uint64_t incarnation)
{
    const struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner && owner->dying) {
        return;
    }
    bool died = owner && owner->disconnected;
    leases_expel(a, incarnation, "its lease ran out, and its records went to others");
    leases_die(a, incarnation, died ? ARBITER_CAUSE_UNKNOWN : ARBITER_CAUSE_OUTSIDE,
               RENDEZVOUS_SILENT);
}

static bool carry_out(struct arbiter *a, const struct shard_effects *effects)
{
    bool good = true;
    for (size_t i = 0; i < effects->count;) {
        const struct shard_effect *effect = &effects->list[i];
        if (effect->kind == SHARD_GRANTED) {
            i = send_granted(a, effects, i);
            continue;
        }
        if (effect->kind == SHARD_END) {
            waits_no_more(a, effect->owner);
            note_ended(a, effect->owner);
        } else if (effect->kind == SHARD_WAIT) {
            send_leased(a, effect->owner, &(struct wire_leased){0});
        } else if (effect->kind == SHARD_EXPIRED) {
            expire(a, effect->owner);
        } else if (effect->kind == SHARD_SET_ASIDE || effect->kind == SHARD_FAILED) {
            leases_name(a, effect);
        } else if (effect->kind == SHARD_REFUSED) {
            good = false;
        }
        i++;
    }
    return good;
}

bool leases_tell(struct arbiter *a, const struct shard_event *event)
{
    static const struct shard_event go_on = {.kind = SHARD_GO_ON};
    struct shard_effects effects = {.more = true};
    bool good = true;
    while (effects.more && !a->failed) {
        int r = shard_step(a->leases.shard, event, &effects);
        if (r < 0) {
            arbiter_fail(a, ledger_fail(r, a->err));
            return false;
        }
        good = carry_out(a, &effects) && good;
        event = &go_on;
    }
    return good && !a->failed;
}

bool leases_tell_parts(struct arbiter *a, enum shard_event_kind kind, uint64_t owner,
                       const struct wire_ranges *ranges)
{
    if (ranges->count == 0) {
        return true;
    }
    muster_auto(free) struct shard_part *parts = calloc(ranges->count, sizeof *parts);
    if (!parts) {
        arbiter_fail(a, err_no_memory(a->err));
        return false;
    }
    for (uint32_t i = 0; i < ranges->count; i++) {
        parts[i] = (struct shard_part){owner, ranges->list[i]};
    }
    return leases_tell(
        a, &(struct shard_event){.kind = kind, .parts = parts, .part_count = ranges->count});
}

bool leases_commit(struct arbiter *a, uint64_t owner, const struct wire_ranges *ranges)
{
    return leases_tell_parts(a, SHARD_COMMIT, owner, ranges);
}

/* ---- What is known ---- */

bool leases_are_unused(const struct leases *leases)
{
    struct shard_progress data;
    return !shard_progress(leases->shard, 0, &data);
}

bool leases_are_over(const struct leases *leases)
{
    struct shard_progress data;
    for (uint32_t i = 0; shard_progress(leases->shard, i, &data); i++) {
        if (data.epoch < data.dataset.epochs) {
            return false;
        }
    }
    return leases->owner_count == 0 && !leases->appended && !leases->syncing;
}
