/* kill -9 of a controller at every system call that changes something, from the deletion of a
 * finished job to the end of its archiving: the next controller finds the whole job, or one whole
 * run of it; never two, never none.
 *
 * A child is traced; the parent counts its writes, renames, removals and flushes (those of its
 * threads, too) and kills it before the N-th, for N = 1, 2, … until the child completes.
 */
#include "daemon/history/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POINTS_MAX = 2000, POINTS_MIN = 20 };

/* ---- What is checked ---- */

static void check_run(struct world *w)
{
    char path[512];
    muster_auto(free) char *text = NULL;
    assert_int_equal(world_runs(w, "j"), 1);
    world_path(w, "history/default/j/1/logs/pod/pytorch/0/0.log", path);
    assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
    assert_string_equal(text, world_log);
    assert_true(world_has(w, "history/default/j/1/job.json"));
    assert_true(world_has(w, "history/default/j/1/pods.json"));
    assert_true(world_has(w, "history/default/j/1/events.json"));
    assert_true(world_has(w, "history/default/j/1/summary.json"));
    assert_false(world_has(w, "history/default/j/1/logs/pod/pytorch/0/spec.json"));
}

/* Checks what the next controller does: it finishes or undoes what the killed one began, and then
 * the job can be deleted. */
static void check_after(struct world *w, const char *uid, int *kept)
{
    char path[128];
    world_open(w);
    if (world_has_job(w, "j")) {
        ++*kept;
        assert_int_equal(world_runs(w, "j"), 0);
        snprintf(path, sizeof path, "jobs/%s/containers/pod/pytorch/0/0.log", uid);
        assert_true(world_has(w, path));
        assert_int_equal(world_delete_job(w, "j"), 0);
    }
    world_wait_gone(w, uid);
    check_run(w);
    world_close(w);
}

/* ---- The child ---- */

static void archive_in_child(struct world *w, const char *uid)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0) {
        _exit(77);
    }
    raise(SIGSTOP);
    world_open(w);
    if (world_delete_job(w, "j") < 0) {
        _exit(1);
    }
    world_wait_gone(w, uid);
    _exit(0);
}

/* ---- The parent ---- */

static bool changes_something(uint64_t number)
{
    static const long calls[] = {
#ifdef SYS_rename
        SYS_rename,    SYS_unlink,   SYS_mkdir,     SYS_rmdir,
#endif
#ifdef SYS_renameat
        SYS_renameat,
#endif
        SYS_renameat2, SYS_unlinkat, SYS_mkdirat,   SYS_write,
        SYS_pwrite64,  SYS_fsync,    SYS_fdatasync, SYS_ftruncate};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (number == (uint64_t)calls[i]) {
            return true;
        }
    }
    return false;
}

static bool enters_change(pid_t thread)
{
    struct __ptrace_syscall_info info;
    return ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) > 0 &&
           info.op == PTRACE_SYSCALL_INFO_ENTRY && changes_something(info.entry.nr);
}

/* Lets the child run until it is about to make its N-th change, then kills it. Returns false if it
 * ended before. */
static bool kill_at(pid_t child, int point)
{
    int status = 0, passed = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip(); /* tracing is not permitted here */
    }
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL,
                            PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL),
                     0);
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0;) {
        if (thread == child && (WIFEXITED(status) || WIFSIGNALED(status))) {
            assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            return WIFSIGNALED(status);
        }
        if (!WIFSTOPPED(status)) {
            continue; /* a thread that ended */
        }
        bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
        if (call && enters_change(thread) && ++passed == point) {
            kill(child, SIGKILL);
        }
        bool own =
            call || status >> 16 || WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGTRAP;
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(uintptr_t)(own ? 0 : WSTOPSIG(status)));
    }
    fail_msg("the child is lost: %s", strerror(errno));
    return false;
}

static bool one_point(int point, int *kept)
{
    struct world w = {0};
    char uid[64];
    test_folder_make(w.folder);
    world_open_store(&w);
    world_add_job(&w, "j", uid);
    store_close(w.store);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        archive_in_child(&w, uid);
    }
    bool killed = kill_at(child, point);
    check_after(&w, uid, kept);
    test_folder_remove(w.folder);
    return killed;
}

static void a_killed_controller_leaves_the_job_or_one_run(void **state)
{
    (void)state;
    int point = 1, kept = 0;
    while (one_point(point, &kept)) {
        point++;
        assert_true(point < POINTS_MAX);
    }
    print_message("killed at %d points; the job was still there after %d\n", point - 1, kept);
    assert_true(point > POINTS_MIN && kept > 0 && kept < point - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_controller_leaves_the_job_or_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
