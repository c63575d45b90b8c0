/* The effects of a step: what is to be done. See internal.h. */
#include "shard/internal.h"

#include <assert.h>

/* The ranges of a grant, the epochs that end in the same step, and one refusal or WAIT. */
enum { ROOM_OF_A_GRANT = SHARD_GRANT_RANGES + 2 };

void shard_emit(struct shard_state *state, struct shard_effect effect)
{
    struct shard_effects *effects = state->effects;
    assert(effects->count < SHARD_EFFECTS_MAX);
    effects->list[effects->count++] = effect;
}

void shard_refuse(struct shard_state *state, uint64_t owner, uint32_t dataset,
                  enum shard_reason reason)
{
    shard_emit(state,
               (struct shard_effect){
                   .kind = SHARD_REFUSED, .owner = owner, .dataset = dataset, .reason = reason});
}

bool shard_has_room(struct shard_state *state)
{
    bool room = SHARD_EFFECTS_MAX - state->effects->count >= ROOM_OF_A_GRANT;
    state->effects->more = state->effects->more || !room;
    return room;
}

const char *shard_reason_text(enum shard_reason reason)
{
    static const char *const texts[SHARD_REASONS] = {
        [SHARD_OK] = "",
        [SHARD_NO_OWNER] = "this worker is not known, has left, or its lease ran out",
        [SHARD_NO_DATASET] = "there is no such data set",
        [SHARD_BAD_REQUEST] = "a number is out of range",
        [SHARD_CONFLICT] = "it exists already, with other parameters",
        [SHARD_NOT_HELD] = "the worker does not hold these records",
        [SHARD_TWICE] = "records come twice",
        [SHARD_FULL] = "there are too many",
        [SHARD_UNPLANNED] = "these are not the records that the plan has next",
        [SHARD_POISONED] = "the job has failed at a record that crashes workers",
    };
    assert(reason < SHARD_REASONS);
    return texts[reason];
}
