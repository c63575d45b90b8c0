/* See older.h. */
#include "coordinator/arbiter/older.h"

#include "base/err.h"
#include "shard/shard.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void older_done(struct older *older)
{
    for (size_t i = 0; i < older->count; i++) {
        free(older->states[i].bytes);
    }
}

void older_push(struct older *older, struct older_state state)
{
    assert(older->count == 0 || older->states[older->count - 1].version <= state.version);
    if (older->count == OLDER_MAX) {
        free(older->states[0].bytes);
        memmove(older->states, older->states + 1, (OLDER_MAX - 1) * sizeof older->states[0]);
        older->count--;
    }
    older->states[older->count++] = state;
}

struct older_state older_pop(struct older *older)
{
    assert(older->count > 0);
    return older->states[--older->count];
}

const struct older_state *older_find(const struct older *older, uint64_t version)
{
    for (size_t i = 0; i < older->count; i++) {
        if (older->states[i].version == version) {
            return &older->states[i];
        }
    }
    return NULL;
}

int older_add(struct older *older, uint64_t before, uint64_t version, const uint8_t *bytes,
              size_t count, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    struct older_state state = {.version = version, .count = count};
    size_t n = older->count;
    bool fits = n < OLDER_MAX && version < before && version > 0 &&
                (n == 0 || older->states[n - 1].version < version);
    if (!fits || shard_restore(bytes, count, 0, &shard) < 0) {
        return muster_fail(err, MUSTER_EDATA, "a record of the journal is no ledger");
    }
    shard_free(shard);
    int r = older_copy(bytes, count, &state.bytes, err);
    if (r == 0) {
        older_push(older, state);
    }
    return r;
}

int older_copy(const uint8_t *bytes, size_t count, uint8_t **ret, struct muster_err *err)
{
    uint8_t *copied = count > 0 ? malloc(count) : NULL;
    if (count > 0 && !copied) {
        return err_no_memory(err);
    }
    if (count > 0) {
        memcpy(copied, bytes, count);
    }
    free(*ret);
    *ret = copied;
    return 0;
}
