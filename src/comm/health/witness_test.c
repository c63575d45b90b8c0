/* Checks that the process sees no child, signal, descriptor or zombie of its witness, and that the
 * witness ends with the process. */
#include "comm/health/witness.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "comm/shm/heartbeat.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { MAY_CLONE = 0 }; /* as in witness.c */
#else
enum { MAY_CLONE = 1 };
#endif

static _Atomic int children_ended;

static void note_child(int number)
{
    (void)number;
    atomic_fetch_add(&children_ended, 1);
}

static int count_descriptors(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    int num = 0;
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        num += e->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return num;
}

static bool has_ended(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_true(fd >= 0); /* it is our child, so it exists at least as a zombie */
    bool ended = poll(&p, 1, test_limit_ms()) == 1;
    close(fd);
    return ended;
}

static void nobody_notices(void **state)
{
    (void)state;
    if (!MAY_CLONE) {
        skip();
    }
    struct sigaction noting = {.sa_handler = note_child}, before;
    assert_int_equal(sigaction(SIGCHLD, &noting, &before), 0);
    int descriptors = count_descriptors(getpid());
    witness_hold();
    witness_hold();
    pid_t pid = witness_pid();
    assert_true(pid > 0 && pid != getpid());
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(count_descriptors(getpid()), descriptors);
    for (int64_t end = 0; count_descriptors(pid) > 1;) { /* it first closes the other descriptors */
        assert_true(test_turn(&end));
    }
    witness_release();
    assert_int_equal(kill(pid, 0), 0);
    witness_release();
    assert_int_equal(witness_pid(), 0);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(atomic_load(&children_ended), 0);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
}

static void beat(void *unused)
{
    (void)unused;
}

/* Runs `end` in a process with a witness, and waits until both have ended. */
static void expect_end_of_witness(void (*end)(void))
{
    int ends[2];
    pid_t witness = -1;
    if (!MAY_CLONE) {
        skip();
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        static struct heartbeat_watch watch = {.beat = beat};
        (void)heartbeat_join(NULL, &watch, NULL);
        witness_hold();
        witness = witness_pid();
        (void)!write(ends[1], &witness, sizeof witness);
        end();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &witness, sizeof witness), sizeof witness);
    close(ends[0]);
    close(ends[1]);
    bool ended = witness > 0 && has_ended(witness);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(ended);
    assert_int_equal(waitpid(witness, NULL, 0), witness); /* we adopt it, as its subreaper */
}

static void be_killed(void)
{
    (void)raise(SIGKILL);
}

static void run_another_program(void)
{
    (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

static void ends_with_its_process(void **state)
{
    (void)state;
    expect_end_of_witness(be_killed);
}

static void ends_after_an_exec(void **state)
{
    (void)state;
    expect_end_of_witness(run_another_program);
}

static _Atomic bool over;

static void *hold_and_release(void *unused)
{
    while (!atomic_load(&over)) {
        witness_hold();
        witness_release();
    }
    return unused;
}

/* Returns 0 if the process does not exist. */
static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        int found = fscanf(file, "%*d (%*[^)]) %*c %d", &parent);
        parent = found == 1 ? parent : 0;
        (void)fclose(file);
    }
    return parent;
}

/* Runs in a forked child. Returns 0 if the child's witness, while the child holds one, is its own
 * and not its parent's. */
static int has_its_own(void)
{
    if (witness_pid() != 0) {
        return 2;
    }
    witness_hold();
    pid_t own = witness_pid();
    bool ours = parent_of(own) == getpid();
    witness_release();
    return !MAY_CLONE ? own : own <= 0 ? 3 : !ours ? 4 : witness_pid() != 0 ? 5 : 0;
}

/* A forked child has its own witness, also while another thread of the parent holds and releases
 * one. */
static void a_forked_child_has_its_own(void **state)
{
    (void)state;
    static struct heartbeat_watch watch = {.beat = beat};
    pthread_t thread;
    assert_int_equal(heartbeat_join(NULL, &watch, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_and_release, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            test_alarm();
            _exit(has_its_own());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    heartbeat_leave(NULL, &watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_notices),
        cmocka_unit_test(ends_with_its_process),
        cmocka_unit_test(ends_after_an_exec),
        cmocka_unit_test(a_forked_child_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
