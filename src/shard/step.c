/* Takes one event after the other; the other files of this folder handle them. See shard.h. */
#include "shard/shard.h"

#include "shard/internal.h"

#include <muster/err.h>

#include <assert.h>
#include <stdlib.h>

/* ---- Memory ---- */

struct shard_state *shard_new(uint32_t ranges_max)
{
    struct shard_state *state = calloc(1, sizeof *state);
    if (!state) {
        return NULL;
    }
    state->next_expiry_ms = INT64_MAX;
    state->owners = calloc(SHARD_OWNERS_MAX, sizeof *state->owners);
    if (!state->owners ||
        shard_nodes_init(&state->nodes, ranges_max ? ranges_max : SHARD_RANGES_MAX) < 0) {
        shard_free(state);
        return NULL;
    }
    return state;
}

void shard_free(struct shard_state *state)
{
    if (!state) {
        return;
    }
    for (size_t i = 0; i < state->owner_count; i++) {
        free(state->owners[i]);
    }
    for (uint32_t i = 0; i < state->data_count; i++) {
        free(state->data[i].waiting.owners);
    }
    free(state->owners);
    shard_nodes_done(&state->nodes);
    free(state);
}

/* ---- Owners ---- */

static int join(struct shard_state *state, const struct shard_event *event)
{
    if (event->owner == 0) {
        shard_refuse(state, 0, 0, SHARD_BAD_REQUEST);
    } else if (shard_owner_of(state, event->owner)) {
        shard_refuse(state, event->owner, 0, SHARD_CONFLICT);
    } else if (state->owner_count == SHARD_OWNERS_MAX) {
        shard_refuse(state, event->owner, 0, SHARD_FULL);
    } else if (!shard_owner_add(state, event->owner, event->expires_ms)) {
        return MUSTER_ENOMEM;
    }
    return 0;
}

/* Returns NULL, and refuses the event, if the owner is unknown or expired. */
static struct shard_owner *living(struct shard_state *state, const struct shard_event *event)
{
    struct shard_owner *owner = shard_owner_of(state, event->owner);
    if (!owner || owner->expired) {
        shard_refuse(state, event->owner, event->dataset, SHARD_NO_OWNER);
        return NULL;
    }
    return owner;
}

static int renew(struct shard_state *state, const struct shard_event *event)
{
    struct shard_owner *owner = living(state, event);
    if (owner && event->expires_ms > owner->expires_ms) {
        owner->expires_ms = event->expires_ms;
    }
    return 0;
}

static void stop(struct shard_state *state, const struct shard_event *event)
{
    struct shard_owner *owner = shard_owner_of(state, event->owner);
    if (owner) {
        shard_owner_stop_waiting(state, owner);
    } else {
        shard_refuse(state, event->owner, 0, SHARD_NO_OWNER);
    }
}

static int gone(struct shard_state *state, const struct shard_event *event)
{
    struct shard_owner *owner = shard_owner_of(state, event->owner);
    int r = owner ? shard_give_back_all(state, owner) : 0;
    if (owner && r == 0) {
        shard_owner_remove(state, owner);
    } else if (!owner) {
        shard_refuse(state, event->owner, 0, SHARD_NO_OWNER);
    }
    return r;
}

static void expire(struct shard_state *state)
{
    int64_t next_ms = INT64_MAX;
    if (state->now_ms < state->next_expiry_ms) {
        return;
    }
    for (size_t i = 0; i < state->owner_count && shard_has_room(state); i++) {
        struct shard_owner *owner = state->owners[i];
        if (!owner->expired && owner->expires_ms <= state->now_ms) {
            owner->expired = true;
            shard_owner_stop_waiting(state, owner);
            shard_emit(state,
                       (struct shard_effect){.kind = SHARD_EXPIRED, .owner = owner->incarnation});
        } else if (!owner->expired && owner->expires_ms < next_ms) {
            next_ms = owner->expires_ms;
        }
    }
    state->next_expiry_ms = state->effects->more ? state->now_ms : next_ms;
}

/* ---- Steps ---- */

static int want(struct shard_state *state, const struct shard_event *event)
{
    struct shard_owner *owner = living(state, event);
    if (owner && (event->count == 0 || shard_is_planned(state, event->dataset))) {
        shard_refuse(state, event->owner, event->dataset, SHARD_BAD_REQUEST);
    } else if (owner) {
        shard_want(state, owner, event->dataset, event->count);
    }
    return 0;
}

static bool is_of_a_dataset(enum shard_event_kind kind)
{
    return kind == SHARD_EXTEND || kind == SHARD_SHRINK || kind == SHARD_WANT;
}

static bool has_few_parts(enum shard_event_kind kind)
{
    return kind == SHARD_HELD || kind == SHARD_BLAME;
}

static int apply(struct shard_state *state, const struct shard_event *event)
{
    switch (event->kind) {
    case SHARD_DATASET: return shard_data_add(state, event->dataset_spec);
    case SHARD_EXTEND: shard_data_extend(state, event->dataset, event->count); return 0;
    case SHARD_SHRINK: shard_data_shrink(state, event->dataset, event->count); return 0;
    case SHARD_JOIN: return join(state, event);
    case SHARD_RENEW: return renew(state, event);
    case SHARD_WANT: return want(state, event);
    case SHARD_STOP: stop(state, event); return 0;
    case SHARD_COMMIT: return shard_commit(state, event->parts, event->part_count);
    case SHARD_GIVE_BACK: return shard_give_back(state, event->parts, event->part_count);
    case SHARD_BLAME: return shard_blame(state, event->parts, event->part_count);
    case SHARD_LEAVE_OUT: return shard_leave_out(state, event->parts, event->part_count);
    case SHARD_GONE: return gone(state, event);
    case SHARD_HELD: return shard_hold(state, event->parts, event->part_count);
    case SHARD_SERVE: state->serving = true; return 0;
    case SHARD_TICK: state->now_ms = event->now_ms; return 0;
    case SHARD_GO_ON: return 0;
    case SHARD_EVENTS: break;
    }
    assert(!"an event that does not exist");
    return 0;
}

static void advance_all(struct shard_state *state)
{
    for (uint32_t i = 0; i < state->data_count; i++) {
        shard_epochs_advance(state, i);
    }
}

int shard_step(struct shard_state *state, const struct shard_event *event,
               struct shard_effects *ret)
{
    int r = 0;
    ret->count = 0;
    ret->more = false;
    state->effects = ret;
    if (is_of_a_dataset(event->kind) && event->dataset >= state->data_count) {
        shard_refuse(state, event->owner, event->dataset, SHARD_NO_DATASET);
    } else if (has_few_parts(event->kind) && event->part_count > SHARD_PARTS_MAX) {
        shard_refuse(state, event->owner, event->dataset, SHARD_BAD_REQUEST);
    } else {
        r = apply(state, event);
    }
    if (r == 0) {
        expire(state);
        advance_all(state);
        for (uint32_t i = 0; i < state->data_count; i++) {
            shard_serve_waiting(state, i);
        }
        advance_all(state);
        state->owes = ret->more;
    }
    state->effects = NULL;
    return r;
}

/* ---- What is known ---- */

bool shard_progress(const struct shard_state *state, uint32_t dataset, struct shard_progress *ret)
{
    if (dataset >= state->data_count) {
        return false;
    }
    const struct shard_data *data = &state->data[dataset];
    *ret = (struct shard_progress){
        .dataset = data->spec, .epoch = data->next_epoch, .to_do = data->to_do.records};
    if (data->open_count > 0) {
        ret->epoch = data->open[0].epoch;
        ret->epoch_size = data->open[0].size;
        ret->epoch_done = data->open[0].done;
    }
    return true;
}

bool shard_has_failed(const struct shard_state *state)
{
    return state->failed;
}

uint64_t shard_held(const struct shard_state *state, uint64_t owner)
{
    const struct shard_owner *found = shard_owner_of(state, owner);
    return found ? found->held.records : 0;
}

bool shard_held_next(const struct shard_state *state, uint64_t owner,
                     const struct shard_range *after, struct shard_range *ret)
{
    const struct shard_owner *found = shard_owner_of(state, owner);
    if (!found) {
        return false;
    }
    return after ? shard_set_next(&found->held, *after, ret) : shard_set_first(&found->held, ret);
}

bool shard_to_do_next(const struct shard_state *state, uint32_t dataset,
                      const struct shard_range *after, struct shard_range *ret)
{
    if (dataset >= state->data_count) {
        return false;
    }
    const struct shard_set *to_do = &state->data[dataset].to_do;
    struct shard_range next = {.dataset = SHARD_DATASETS_MAX}; /* after all ranges */
    bool found = after ? shard_set_next(to_do, *after, &next) : shard_set_first(to_do, &next);
    bool suspected = shard_suspect_next(state, dataset, after, &next);
    if (found || suspected) {
        *ret = next;
    }
    return found || suspected;
}

uint64_t shard_epoch_size(const struct shard_state *state, uint32_t dataset, uint32_t epoch)
{
    if (dataset >= state->data_count) {
        return 0;
    }
    const struct shard_epoch *open =
        shard_epoch_of((struct shard_data *)&state->data[dataset], epoch);
    return open ? open->size : 0;
}

bool shard_aside(const struct shard_state *state, size_t number, uint32_t *ret_dataset,
                 uint64_t *ret_record)
{
    if (number >= state->aside_count) {
        return false;
    }
    *ret_dataset = state->aside[number].dataset;
    *ret_record = state->aside[number].record;
    return true;
}

int64_t shard_next_ms(const struct shard_state *state)
{
    return state->next_expiry_ms;
}

size_t shard_bytes(const struct shard_state *state)
{
    size_t queues = state->data_count * SHARD_OWNERS_MAX * sizeof *state->data[0].waiting.owners;
    size_t owners =
        SHARD_OWNERS_MAX * sizeof *state->owners + state->owner_count * sizeof **state->owners;
    return sizeof *state + queues + owners + shard_nodes_bytes(&state->nodes);
}
