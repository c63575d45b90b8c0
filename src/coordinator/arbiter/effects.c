/* See effects.h. */
#include "coordinator/arbiter/effects.h"

#include "base/err.h"

#include <stdlib.h>

void arbiter_effects_init(struct arbiter_effects *effects)
{
    *effects = (struct arbiter_effects){0};
    buf_init(&effects->bytes, ARBITER_BYTES_MAX);
}

void arbiter_effects_done(struct arbiter_effects *effects)
{
    free(effects->list);
    buf_done(&effects->bytes);
    effects->list = NULL;
    effects->count = effects->room = 0;
}

void arbiter_effects_clear(struct arbiter_effects *effects)
{
    effects->count = 0;
    buf_clear(&effects->bytes);
}

int arbiter_effects_add(struct arbiter_effects *effects, struct arbiter_effect effect,
                        struct muster_err *err)
{
    if (effects->count == effects->room) {
        size_t room = effects->room ? 2 * effects->room : 64;
        struct arbiter_effect *list = reallocarray(effects->list, room, sizeof *list);
        if (!list) {
            return err_no_memory(err);
        }
        effects->list = list;
        effects->room = room;
    }
    effects->list[effects->count++] = effect;
    return 0;
}

const uint8_t *arbiter_effect_bytes(const struct arbiter_effects *effects,
                                    const struct arbiter_effect *effect)
{
    return (const uint8_t *)effects->bytes.data + effect->offset;
}
