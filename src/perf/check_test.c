/* What `muster perf` says of a result: right when it is, wrong by as many elements as are. */
#include "perf/perf.h"

#include "base/test.h"
#include "perf/value.h"

#include <stdlib.h>

enum { RANKS = 3, COUNT = 7 };

/* By hand, of elements that are (index + rank) % 3. */
static double right(enum muster_collective kind, int rank, size_t i)
{
    size_t r = (size_t)rank;
    switch (kind) {
    case MUSTER_ALL_REDUCE: return 3; /* 0 + 1 + 2 in some order */
    case MUSTER_REDUCE: return 3;
    case MUSTER_REDUCE_SCATTER: return 3;
    case MUSTER_BROADCAST: return (double)(i % 3);
    case MUSTER_SCATTER: return (double)((r * COUNT + i) % 3);
    case MUSTER_ALL_TO_ALL: return (double)((r * COUNT + i % COUNT + i / COUNT) % 3);
    case MUSTER_ALL_GATHER:
    case MUSTER_GATHER: return (double)((i % COUNT + i / COUNT) % 3);
    case MUSTER_BARRIER:
    case MUSTER_SEND:
    case MUSTER_RECV: return 0;
    }
    return 0;
}

static void every_wrong_element_is_counted(void **state)
{
    (void)state;
    static const enum muster_collective kinds[] = {
        MUSTER_ALL_REDUCE, MUSTER_REDUCE,  MUSTER_REDUCE_SCATTER, MUSTER_ALL_GATHER,
        MUSTER_BROADCAST,  MUSTER_SCATTER, MUSTER_GATHER,         MUSTER_ALL_TO_ALL};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int type = MUSTER_U8; type <= MUSTER_F64; type++) {
            struct perf_options o = {
                .kind = kinds[k], .type = (enum muster_type)type, .ranks = RANKS};
            bool blocks = kinds[k] == MUSTER_ALL_GATHER || kinds[k] == MUSTER_GATHER ||
                          kinds[k] == MUSTER_ALL_TO_ALL;
            size_t elements = blocks ? RANKS * COUNT : COUNT;
            bool rooted = kinds[k] == MUSTER_REDUCE || kinds[k] == MUSTER_GATHER;
            int rank = rooted ? 0 : 1;
            uint64_t out[RANKS * COUNT];
            for (size_t i = 0; i < elements; i++) {
                perf_store(o.type, out, i, right(kinds[k], rank, i));
            }
            assert_int_equal(perf_count_wrong(&o, rank, COUNT, out), 0);
            for (size_t i = 0; i < elements; i++) {
                perf_store(o.type, out, i, 4);
                assert_int_equal(perf_count_wrong(&o, rank, COUNT, out), i + 1);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_wrong_element_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
