/* A snapshot from a disk, and events of workers that lie: a state that was restored or made keeps
 * its invariants (shard_check) whatever follows.
 *
 * The first byte is the size of the snapshot. After the snapshot come events of six bytes each. */
#include "invariant.h"
#include "shard/shard.h"

enum { EVENT_BYTES = 6, RANGES_MAX = 200 };

static struct shard_effects effects;

static void step(struct shard_state *state, const struct shard_event *event)
{
    (void)shard_step(state, event, &effects);
    invariant(effects.count <= SHARD_EFFECTS_MAX, "effects are bounded", "");
    const char *broken = shard_check(state);
    invariant(!broken, broken, "");
}

static struct shard_state *make(void)
{
    struct shard_state *state = shard_new(RANGES_MAX);
    struct shard_dataset spec = {.size = 50, .epochs = 3, .batch = 4, .block = 1, .overlap = true};
    invariant(state != NULL, "there is memory", "");
    step(state, &(struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    return state;
}

/* Saves the state as a snapshot, which can be restored. */
static void save_again(const struct shard_state *state)
{
    struct shard_state *again = NULL;
    size_t bound = shard_snapshot_bound(state);
    uint8_t *bytes = malloc(bound);
    invariant(bytes != NULL, "there is memory", "");
    size_t size = shard_snapshot(state, bytes, bound);
    invariant(shard_restore(bytes, size, 0, &again) == 0, "a snapshot is restored", "");
    shard_free(again);
    free(bytes);
}

static void feed(struct shard_state *state, const uint8_t *at)
{
    struct shard_dataset spec = {.size = at[2],
                                 .epochs = at[3],
                                 .batch = at[4],
                                 .micro_batches = at[1] % 4 == 3 ? 2 : 0, /* "d" is planned */
                                 .per_worker = at[1] % 8 == 7,
                                 .name = {"abcd"[at[1] % 4]}};
    struct shard_part parts[2] = {{at[1] % 8, {at[5] % 4, at[2] % 4, at[3], at[4]}}};
    parts[1] = parts[0];
    parts[1].range.first += at[5] % 7;
    step(state, &(struct shard_event){.kind = (enum shard_event_kind)(at[0] % SHARD_EVENTS),
                                      .owner = at[1] % 8,
                                      .dataset = at[5] % 3,
                                      .count = at[2],
                                      .now_ms = at[3],
                                      .expires_ms = at[4],
                                      .dataset_spec = &spec,
                                      .parts = parts,
                                      .part_count = at[0] / SHARD_EVENTS % 3});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shard_state *state = NULL;
    size_t snapshot = size > 0 && data[0] < size ? data[0] : 0;
    if (shard_restore(data + 1, snapshot, RANGES_MAX, &state) < 0) {
        state = make();
    }
    for (size_t at = 1 + snapshot; at + EVENT_BYTES <= size; at += EVENT_BYTES) {
        feed(state, data + at);
    }
    save_again(state);
    shard_free(state);
    return 0;
}
