/* Random elastic jobs with the coordinator's own decisions, under random faults. One that violates
 * an invariant prints its way.
 *
 * MUSTER_SEED=n runs that one alone, MUSTER_SIMULATIONS=n that many. */
#include "base/testing/test.h"
#include "base/testing/test_seeds.h"
#include "chance.h"

#include <malloc.h>
#include <stdlib.h>

enum { RUNS = 4000 };

static void run_seed(uint64_t seed)
{
    static struct job job;
    const char *broken = chance_run(&job, seed, false);
    job_done(&job);
    if (broken) {
        (void)chance_run(&job, seed, true);
        job_done(&job);
        fail_msg("MUSTER_SEED=%llu: %s (%s)", (unsigned long long)seed, broken, job.detail);
    }
}

static void every_random_job_ends_well(void **state)
{
    (void)state;
    test_each_seed(RUNS, run_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_random_job_ends_well),
    };
    mallopt(M_TRIM_THRESHOLD, 64 << 20); /* each job frees its memory, and the next one needs it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
