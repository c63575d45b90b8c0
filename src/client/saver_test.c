/* What a worker takes for the checkpoints of its job, of which it removes the others. */
#include "client/saver.h"

#include "base/testing/test.h"
#include "client/identity.h"

#include <string.h>

static struct wire_checkpoint told_of(const char *names)
{
    return (struct wire_checkpoint){.version = 5, .path = {names, (uint32_t)strlen(names)}};
}

/* Without a known checkpoint there would be none that is kept. */
static void names_that_are_none_leave_what_is_known(void **state)
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
        cmocka_unit_test(names_that_are_none_leave_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
