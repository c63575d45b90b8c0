/* What the monitor reports about a container that cannot enter its control group: the container
 * never runs without its limit and without a report. */
#include "process/monitor/monitor.h"

#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES_MAX = 8 };

struct said {
    struct monitor_message list[MESSAGES_MAX];
    size_t count;
};

static const struct monitor_message *find(const struct said *said, enum monitor_kind kind)
{
    for (size_t i = 0; i < said->count; i++) {
        if (said->list[i].kind == kind) {
            return &said->list[i];
        }
    }
    return NULL;
}

/* Runs "true" with this entrance to the memory group; returns everything that was reported until
 * its end. */
static struct said run_with(int entrance_fd)
{
    struct said said = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    struct process_spec spec = {0};
    muster_auto(doc) json_t *doc = parse("{'argv': ['true'], 'cwd': '/'}");
    muster_auto(close) int log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    muster_auto(close) int control_fd = -1;
    assert_int_equal(process_spec_read(doc, &spec, &err), 0);
    const struct monitor_plan plan = {.spec = &spec,
                                      .mark = "MUSTER_TEST_MONITOR=1",
                                      .log_fd = log_fd,
                                      .keep_fd = -1,
                                      .entrances = {entrance_fd, -1}};
    pid_t pid;
    assert_int_equal(monitor_start(&plan, &pid, &control_fd, &err), 0);
    while (said.count < MESSAGES_MAX &&
           recv(control_fd, &said.list[said.count], sizeof said.list[0], 0) > 0) {
        said.count++;
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    process_spec_done(&spec);
    return said;
}

static void a_limit_that_fails_ends_the_start(void **state)
{
    (void)state;
    muster_auto(close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC); /* ENOSPC */
    struct said said = run_with(full);
    assert_null(find(&said, MONITOR_RUNNING));
    const struct monitor_message *failed = find(&said, MONITOR_FAILED);
    assert_non_null(failed);
    assert_int_equal(failed->code, 128);
    assert_string_equal(failed->text, "the memory limit is not enforced: its control group cannot "
                                      "be entered: No space left on device");
}

/* EPERM, which the kernel returns instead of EACCES if a group is not delegated: here by a file
 * that is sealed against writing. */
static void a_limit_that_is_not_permitted_is_told(void **state)
{
    (void)state;
    muster_auto(close) int sealed = memfd_create("entrance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE), 0);
    struct said said = run_with(sealed);
    const struct monitor_message *note = find(&said, MONITOR_NOTE);
    assert_non_null(note);
    assert_non_null(strstr(note->text, "the memory limit is not enforced"));
    assert_non_null(find(&said, MONITOR_RUNNING));
    assert_int_equal(find(&said, MONITOR_EXITED)->code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_fails_ends_the_start),
        cmocka_unit_test(a_limit_that_is_not_permitted_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
