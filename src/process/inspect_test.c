/* Inspects real processes: stacks on demand, stalls, and the report in the log before an end; as
 * root, unprivileged and without namespaces. */
#include "process/fixture.h"

#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Like python/sitecustomize.py; SIGTERM ends it with 7. */
#define PYTHON_THAT_ANSWERS                                                                        \
    "'argv': ['python3', '-I', '-c', 'import faulthandler, os, signal, sys, threading, time\\n"    \
    "m = os.memfd_create(`muster-stacks`)\\n"                                                      \
    "faulthandler.register(47, file=os.open(`/proc/self/fd/%d` % m, os.O_WRONLY | os.O_APPEND))"   \
    "\\nos.close(m)\\n"                                                                            \
    "def _wait_to_be_asked():\\n"                                                                  \
    "  open(`/proc/thread-self/comm`, `w`).write(`muster-stacks`)\\n  threading.Event().wait()\\n" \
    "threading.Thread(target=_wait_to_be_asked, daemon=True).start()\\n"                           \
    "signal.signal(signal.SIGTERM, lambda *a: os._exit(7))\\n"                                     \
    "print(`up`, flush=True)\\ndef hang():\\n  time.sleep(1000)\\nhang()'], 'env': {'RANK': '3'}"

static void await_up(struct test_job *t, const char *id, const char *container)
{
    char line[64];
    (void)snprintf(line, sizeof line, "started %s", id);
    test_job_await(t, line);
    test_job_await_log(t, container, "up\n");
}

static const char *ask(struct test_job *t, int64_t ticket)
{
    char line[32];
    assert_int_equal(process_job_stacks(t->job, ticket, 0, NULL), 0);
    (void)snprintf(line, sizeof line, "stacks %lld ", (long long)ticket);
    return test_job_await(t, line);
}

static void a_python_process_says_where_it_is(void **state)
{
    struct test_job *t = *state;
    const char *said = "";
    test_job_start(t, "p/c/0", "{" PYTHON_THAT_ANSWERS "}");
    await_up(t, "p/c/0", "p/c");
    for (int64_t ticket = 1; !strstr(said, "\"where\":\"<string>:12 in hang\""); ticket++) {
        assert_true(ticket < 100); /* it may not be in the function yet */
        said = ask(t, ticket);
    }
    assert_non_null(strstr(said, "{\"id\":\"p/c/0\",\"processes\":[{\"pid\":"));
    assert_non_null(strstr(said, "\"rank\":3"));
    assert_non_null(strstr(said, "line 12 in hang\\n"));
    assert_int_equal(process_job_signal(t->job, "p/c/0", SIGTERM, NULL), 0);
    test_job_await(t, "exited p/c/0 code=7 ");
}

static void who_does_not_answer_lives_on(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0", "{'argv': ['sh', '-c', 'echo up; sleep 1000; true']}");
    test_job_start(t, "p/d/0",
                   "{'argv': ['python3', '-c', 'import signal, time\\n"
                   "signal.signal(47, lambda *a: print(`asked`, flush=True))\\n"
                   "print(`up`, flush=True)\\ntime.sleep(1000)']}");
    await_up(t, "p/c/0", "p/c");
    await_up(t, "p/d/0", "p/d");
    for (int64_t ticket = 1; ticket < 4; ticket++) {
        const char *said = ask(t, ticket);
        assert_null(strstr(said, "\"stacks\":"));
        assert_non_null(strstr(said, "\"id\":\"p/c/0\""));
        assert_non_null(strstr(said, "\"id\":\"p/d/0\""));
    }
    assert_false(test_job_has(t, "exited"));
    muster_auto(free) char *log = test_job_log(t, "p/d");
    assert_string_equal(log, "up\n");
}

static void start_timed(struct test_job *t, const char *id, const char *argv, int stall_ms)
{
    char spec[2048];
    int n = snprintf(spec, sizeof spec, "{%s, 'stallMs': %d}", argv, stall_ms);
    assert_in_range(n, 1, sizeof spec - 1);
    test_job_start(t, id, spec);
}

static void a_stall_is_told_once(void **state)
{
    struct test_job *t = *state;
    char wanted[160];
    int patience = test_limit_ms() / TEST_LIMIT_MS; /* the start of Python is not a stall */
    start_timed(t, "p/c/0", PYTHON_THAT_ANSWERS, 1000 * patience);
    start_timed(t, "p/d/0", "'argv': ['sh', '-c', 'while :; do :; done']", 1000 * patience);
    test_job_start(t, "p/e/0", "{'argv': ['sleep', '1000']}");
    (void)snprintf(wanted, sizeof wanted,
                   "stalled p/c/0 rank 3 has printed nothing and used no processor time for %d s: "
                   "sleeping at <string>:12 in hang",
                   patience);
    assert_string_equal(test_job_await(t, "stalled "), wanted);
    test_job_start(t, "p/f/0", "{'argv': ['sleep', '1000'], 'stallMs': 1000}");
    test_job_await(t, "stalled p/f/0 p/f/0 has printed nothing and used no processor time "
                      "for 1 s: sleeping (sleep 1000)");
    size_t told = 0;
    for (size_t i = 0; i < t->count; i++) {
        told += strncmp(t->lines[i], "stalled", 7) == 0;
    }
    assert_int_equal(told, 2);
}

static void what_it_was_in_is_logged_before_the_signal(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0", "{" PYTHON_THAT_ANSWERS "}");
    await_up(t, "p/c/0", "p/c");
    while (!strstr(ask(t, (int64_t)t->count + 1), "in hang")) {
    }
    assert_int_equal(process_job_explain(t->job, "", 0, NULL), 0);
    test_job_await_log(t, "p/c",
                       "up\nmuster: the deadline is over; what this rank was in: sleeping at "
                       "<string>:12 in hang\nmuster:  pid ");
    assert_int_equal(process_job_explain(t->job, "p/", SIGTERM, NULL), 0);
    test_job_await(t, "exited p/c/0 code=7 ");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    const char *first = strstr(log, "the deadline is over");
    assert_null(strstr(first + 1, "the deadline is over"));
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_python_process_says_where_it_is, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(who_does_not_answer_lives_on, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(a_stall_is_told_once, test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(what_it_was_in_is_logged_before_the_signal, test_job_set_up,
                                        test_job_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return test_job_main(argc, argv, all_tests);
}
