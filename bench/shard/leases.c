/* What the records of a job cost: leases a second of processor time (each asked for, granted and
 * committed) by the number of workers, and the time from a position to its record.
 *
 *     leases        prints one JSON line
 */
#include "shard/order.h"
#include "shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEASES = 1000000, POSITIONS = 20000000, BATCH = 64, AHEAD = 4 };

/* Returns processor time, which does not count other programs. */
static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct shard_effects effects;

static void step(struct shard_state *state, struct shard_event event)
{
    if (shard_step(state, &event, &effects) < 0) {
        abort();
    }
}

static struct shard_state *start(uint64_t workers)
{
    struct shard_dataset spec = {.size = 1000000000, .epochs = 1, .batch = BATCH, .block = 1};
    struct shard_state *state = shard_new(0);
    if (!state) {
        abort();
    }
    step(state, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec});
    step(state, (struct shard_event){.kind = SHARD_SERVE});
    for (uint64_t owner = 1; owner <= workers; owner++) {
        step(state, (struct shard_event){
                        .kind = SHARD_JOIN, .owner = owner, .expires_ms = SHARD_LEASE_MS});
    }
    return state;
}

/* Measures workers that each hold AHEAD grants, and commit the oldest of them. */
static double leases_per_second(uint64_t workers)
{
    struct shard_state *state = start(workers);
    struct shard_part *held = calloc(workers * AHEAD, sizeof *held);
    if (!held) {
        abort();
    }
    double start_s = now_s();
    for (uint64_t i = 0; i < LEASES; i++) {
        uint64_t owner = 1 + i % workers;
        struct shard_part *oldest = &held[i % (workers * AHEAD)];
        if (oldest->owner) {
            step(state,
                 (struct shard_event){.kind = SHARD_COMMIT, .parts = oldest, .part_count = 1});
        }
        step(state, (struct shard_event){.kind = SHARD_WANT, .owner = owner, .count = BATCH});
        *oldest = (struct shard_part){owner, effects.list[0].range};
    }
    double seconds = now_s() - start_s;
    free(held);
    shard_free(state);
    return LEASES / seconds;
}

static double nanoseconds_per_position(uint64_t size)
{
    struct shard_order order;
    uint64_t sum = 0;
    shard_order_init(&order, size, 1, 42, 0, 0);
    double start_s = now_s();
    for (uint64_t i = 0; i < POSITIONS; i++) {
        sum += shard_order_record(&order, i % size);
    }
    double seconds = now_s() - start_s;
    if (sum == 0) {
        abort(); /* otherwise the compiler would remove all of it */
    }
    return seconds / POSITIONS * 1e9;
}

int main(void)
{
    printf("{\"leases_per_second\": {\"1\": %.0f, \"64\": %.0f, \"10000\": %.0f}, ",
           leases_per_second(1), leases_per_second(64), leases_per_second(10000));
    printf("\"ns_per_position\": {\"60000\": %.1f, \"1000000000\": %.1f}}\n",
           nanoseconds_per_position(60000), nanoseconds_per_position(1000000000));
    return 0;
}
