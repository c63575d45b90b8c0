/* The table of tunings. Its limits are measured (bench/collectives/run, bench/operations/run), and
 * `muster perf tune` prints it. Layer: pure. */
#include "schedule/tuning.h"

#include <stdint.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * KIB };

/* With small blocks the data begins to flow sooner; large blocks cost fewer exchanges, but must fit
 * into the L2 cache together with the other data that is used meanwhile. Above 32 MiB memory is the
 * limit, and two streams of writes at once are slower than two passes, tile by tile (64 MiB: AMD
 * Zen 3 5.5 and 4.3 ms; but Intel 7.5 and 8.7). */
const struct schedule_tuning schedule_tunings[SCHEDULE_PROCESSORS] = {
    [SCHEDULE_GENERIC] = {.name = "generic",
                          .measured = "nowhere: as amd",
                          .claims = true,
                          .fetches = true,
                          .ring_bytes = 128 * KIB,
                          .shared_ring_bytes = 256 * KIB,
                          .twin_below_bytes = 32 * MIB,
                          .reads_from_bytes = 128 * KIB,
                          .offers_from_bytes = SIZE_MAX,
                          .blocks = {{256 * KIB, 16 * KIB},
                                     {32 * MIB, 32 * KIB},
                                     {SIZE_MAX, SCHEDULE_MAX_BLOCK_BYTES}}},
    [SCHEDULE_AMD] = {.name = "amd",
                      .measured = "Zen 3: taking back a line that was read costs 8 ns; "
                                  "2 ranks, 1 MiB 42 us",
                      .claims = true,
                      .fetches = true,
                      .ring_bytes = 128 * KIB,
                      .shared_ring_bytes = 256 * KIB,
                      .twin_below_bytes = 32 * MIB,
                      .reads_from_bytes = 128 * KIB,
                      .offers_from_bytes = SIZE_MAX,
                      .blocks = {{256 * KIB, 16 * KIB},
                                 {32 * MIB, 32 * KIB},
                                 {SIZE_MAX, SCHEDULE_MAX_BLOCK_BYTES}}},
    [SCHEDULE_INTEL] =
        {.name = "intel",
         .measured = "Xeon, family 6 model 167: 2 ranks, 1 MiB 117 us "
                     "(with the row of amd 163), 512 B 0.58 (0.75)",
         .demotes = true,
         .fetches = true,
         .puts_ahead = true,
         .slots_ahead = 8,
         .slots_left =
             {[SCHEDULE_SLOT_BROADCAST] = {128, 1 * KIB}, [SCHEDULE_SLOT_GATHER] = {64, SIZE_MAX}},
         .ring_bytes = 128 * KIB,
         .shared_ring_bytes = 128 * KIB,
         .twin_below_bytes = SIZE_MAX,
         .reads_from_bytes = 128 * KIB,
         .retake_ns = 5,
         .retakes_to_bytes = 1 * MIB,
         .offers_from_bytes = 64 * KIB,
         .offers_above_bytes = 1 * MIB,
         .blocks = {{SIZE_MAX, SCHEDULE_MAX_BLOCK_BYTES}}},
};

int schedule_processor_find(const char *name)
{
    for (int p = 0; p < SCHEDULE_PROCESSORS; p++) {
        if (strcmp(schedule_tunings[p].name, name) == 0) {
            return p;
        }
    }
    return -1;
}
