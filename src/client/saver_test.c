/* The names of the checkpoints that a job may go back to: a worker removes all other checkpoints.
 */
#include "client/saver.h"

#include "base/testing/test.h"
#include "client/identity.h"

#include <string.h>

static struct wire_checkpoint told_of(const char *names)
{
    return (struct wire_checkpoint){.version = 5, .path = {names, (uint32_t)strlen(names)}};
}

/* A worker that knew no name would remove every checkpoint. */
static void invalid_names_change_nothing(void **state)
{
    (void)state;
    static struct muster_elastic job;
    static struct generation generation;
    const struct wire_checkpoint good = told_of("0000000100000000-000000000005-00000000000000aa."
                                                "checkpoint"),
                                 none = told_of(""), wrong = told_of("no\nnames");
    identity_waiting(&job.mutex, &job.changed);
    job.mine = &generation;
    job.saver.is_started = true;
    saver_hear(&job, &wrong);
    assert_false(job.saver.prune);
    saver_hear(&job, &good);
    assert_true(job.saver.prune);
    saver_hear(&job, &wrong);
    saver_hear(&job, &none);
    assert_int_equal(job.saver.known_count, 1);
    assert_int_equal(job.saver.known[0].version, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_names_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
