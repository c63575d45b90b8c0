/* A rank that cannot begin: the others do not wait for it for ever, and its reason is the result.
 */
#include "perf/perf.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 3 };
enum fault { REFUSED, DIED };

int __real_muster_endpoint_open(const char *host, struct muster_endpoint **ret,
                                struct muster_err *err);
int __wrap_muster_endpoint_open(const char *host, struct muster_endpoint **ret,
                                struct muster_err *err);

static _Atomic int *calls; /* calls of all ranks */
static enum fault fault;

int __wrap_muster_endpoint_open(const char *host, struct muster_endpoint **ret,
                                struct muster_err *err)
{
    if (atomic_fetch_add(calls, 1) != RANKS - 1) {
        return __real_muster_endpoint_open(host, ret, err);
    }
    if (fault == DIED) {
        abort();
    }
    return muster_fail(err, MUSTER_EOS, "no endpoint today");
}

static void run(enum fault what, int code, const char *text)
{
    struct perf_options options = {.kind = MUSTER_BARRIER, .ranks = RANKS, .seconds = 0.01};
    struct perf_result results[PERF_MAX_SIZES];
    struct muster_err err = MUSTER_ERR_INIT;
    char description[160];
    fault = what;
    atomic_store(calls, 0);
    test_alarm();
    assert_int_equal(perf_run_ranks(&options, results, description, sizeof description, &err),
                     code);
    (void)alarm(0);
    assert_non_null(strstr(err.text, text));
}

static void a_rank_without_endpoint_ends_all(void **state)
{
    (void)state;
    run(REFUSED, MUSTER_EOS, "no endpoint today");
}

static void a_rank_that_died_ends_all(void **state)
{
    (void)state;
    run(DIED, MUSTER_EUNAVAIL, "another rank");
}

int main(void)
{
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_without_endpoint_ends_all),
        cmocka_unit_test(a_rank_that_died_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
