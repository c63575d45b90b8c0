/* Checks which lines `run` prints while a job runs. */
#include "cli/follow/progress.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"

static json_t *pod_of(const char *status)
{
    json_t *pod = NULL;
    char text[2048];
    struct muster_err err = MUSTER_ERR_INIT;
    snprintf(text, sizeof text,
             "{\"metadata\": {\"name\": \"j-worker-0\"}, \"spec\": {\"containers\": [{\"name\": "
             "\"pytorch\", \"env\": [{\"name\": \"RANK\", \"value\": \"9\"},"
             " {\"name\": \"RANK\", \"value\": \"1\"}]}]}, \"status\": %s}",
             status);
    if (doc_parse(text, strlen(text), &pod, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return pod;
}

#define ENDED(count, code)                                                                         \
    "{\"phase\": \"Running\", \"containerStatuses\": [{\"name\": \"pytorch\", \"restartCount\": "  \
    "" #count ", \"lastState\": {\"terminated\": {\"exitCode\": " #code "}}}]}"
#define RESTARTED(count) ENDED(count, 3)

static const char *const life[] = {
    "{\"phase\": \"Pending\", \"conditions\": [{\"type\": \"PodScheduled\", \"status\": \"False\","
    " \"reason\": \"Unschedulable\", \"message\": \"1 GPU wanted, 0 of 1 free\"}]}",
    "{\"phase\": \"Pending\", \"containerStatuses\": [{\"name\": \"pytorch\", \"state\":"
    " {\"waiting\": {\"reason\": \"ContainerCreating\"}}}]}",
    RESTARTED(0),
    RESTARTED(1),
    RESTARTED(3),
    RESTARTED(4),
};

static void check(bool several, bool quiet, const char *expected)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    json_t *before = NULL;
    for (size_t i = 0; i < sizeof life / sizeof life[0]; i++) {
        json_t *after = pod_of(life[i]);
        progress_pod(before, after, several, quiet, &out);
        progress_pod(after, after, several, quiet, &out); /* no change, so no line */
        json_decref(before);
        before = after;
    }
    json_decref(before);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
}

static void pod_tells_its_life(void **state)
{
    (void)state;
    check(false, false,
          "rank 1 waits: 1 GPU wanted, 0 of 1 free (Unschedulable)\n"
          "rank 1 started (j-worker-0)\n"
          "rank 1 was restarted (exit code 3)\n"
          "warning: rank 1 was restarted for the 3rd time (exit code 3)\n"
          "warning: rank 1 was restarted for the 4th time (exit code 3)\n");
}

static void quiet_means_warnings_only(void **state)
{
    (void)state;
    check(false, true,
          "warning: rank 1 was restarted for the 3rd time (exit code 3)\n"
          "warning: rank 1 was restarted for the 4th time (exit code 3)\n");
}

static void of_several_jobs_each_line_has_the_name_of_the_pod(void **state)
{
    (void)state;
    check(true, false,
          "j-worker-0 (rank 1) waits: 1 GPU wanted, 0 of 1 free (Unschedulable)\n"
          "rank 1 started (j-worker-0)\n"
          "j-worker-0 (rank 1) was restarted (exit code 3)\n"
          "warning: j-worker-0 (rank 1) was restarted for the 3rd time (exit code 3)\n"
          "warning: j-worker-0 (rank 1) was restarted for the 4th time (exit code 3)\n");
}

static void a_code_that_no_signal_has_is_a_code(void **state)
{
    (void)state;
    static const struct {
        const char *status, *said;
    } ends[] = {
        {ENDED(1, 137), "rank 1 was restarted (signal 9)\n"},
        {ENDED(1, 128), "rank 1 was restarted (exit code 128)\n"},
        {ENDED(1, 200), "rank 1 was restarted (exit code 200)\n"},
        {ENDED(1, 255), "rank 1 was restarted (exit code 255)\n"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct buf out;
        buf_init(&out, 1 << 16);
        muster_auto(doc) json_t *before = pod_of(ENDED(0, 0)), *after = pod_of(ends[i].status);
        progress_pod(before, after, false, false, &out);
        assert_string_equal(buf_str(&out), ends[i].said);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pod_tells_its_life),
        cmocka_unit_test(quiet_means_warnings_only),
        cmocka_unit_test(of_several_jobs_each_line_has_the_name_of_the_pod),
        cmocka_unit_test(a_code_that_no_signal_has_is_a_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
