/* Which parts of the machine a container sees, and what it may use of them: mounts, network,
 * process numbers, limits. If the machine does not permit something, the test checks the
 * refusal. */
#include "process/fixture.h"
#include "process/wire/identity.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "process/wire/record.h"
#include "process/wire/spec.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static bool no_namespaces(const struct test_job *t)
{
    return test_job_has(t, "note - no PID namespace");
}

static void make_volume(const struct test_job *t, const char *name, const char *content)
{
    muster_auto(free) char *folder = file_join(t->folder, name);
    muster_auto(free) char *path = file_join(folder, "file");
    assert_int_equal(file_mkdir(folder, 0700, NULL), 0);
    assert_int_equal(file_write(path, content, strlen(content), 0600, NULL), 0);
}

static char *read_volume(const struct test_job *t, const char *name)
{
    muster_auto(free) char *path = file_join(t->folder, name);
    char *text = NULL;
    return file_read(path, 4096, &text, NULL, NULL) == 0 ? text : NULL;
}

/* Mounts under /mnt, directly under /, over an existing folder, and within another mount: the
 * container sees each of them, the machine none. */
static void volumes_are_at_their_mount_paths(void **state)
{
    struct test_job *t = *state;
    char spec[4096];
    make_volume(t, "a", "in a\n");
    make_volume(t, "b", "in b\n");
    (void)snprintf(spec, sizeof spec,
                   "{'argv': ['sh', '-c', 'cat /mnt/kubeflow-muster-test/file "
                   "/muster-test-data/deep/file /srv/file /srv/sub/file; echo new "
                   ">/muster-test-data/deep/made; test -e /etc/passwd && test -e /usr/bin/env && "
                   "readlink /proc/self | grep -q . && echo whole'], 'cwd': '/muster-test-data',"
                   " 'mounts': [{'name':'a','hostPath':'%1$s/a','mountPath':'/srv'},"
                   "{'name':'b','hostPath':'%1$s/b','mountPath':'/srv/sub'},"
                   "{'name':'a','hostPath':'%1$s/a','mountPath':'/mnt/kubeflow-muster-test'},"
                   "{'name':'b','hostPath':'%1$s/b','mountPath':'/muster-test-data/deep'}]}",
                   t->folder);
    test_job_start(t, "p/c/0", spec);
    test_job_await(t, "ready");
    if (no_namespaces(t)) {
        test_job_await(t, "start_failed p/c/0 code=128 StartError: volume a cannot be mounted at "
                          "/srv: this machine permits you no mount namespace");
        return;
    }
    test_job_await(t, "exited p/c/0");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_string_equal(log, "in a\nin b\nin a\nin b\nwhole\n");
    assert_true(test_job_has(t, "exited p/c/0 code=0"));
    muster_auto(free) char *made = read_volume(t, "b/made");
    assert_string_equal(made, "new\n");
    assert_false(file_exists("/mnt/kubeflow-muster-test"));
    assert_false(file_exists("/muster-test-data"));
    assert_false(file_exists("/srv/file"));
}

static void read_only_and_sub_path(void **state)
{
    struct test_job *t = *state;
    char spec[2048];
    make_volume(t, "v", "");
    (void)snprintf(spec, sizeof spec,
                   "{'argv': ['sh', '-c', 'echo x >/srv/read/x || echo refused; echo y "
                   ">/srv/write/y'], 'cwd': '/',"
                   " 'mounts': [{'name':'v','hostPath':'%1$s/v','mountPath':'/srv'},"
                   "{'name':'v','hostPath':'%1$s/v','mountPath':'/srv/read','readOnly':true},"
                   "{'name':'v','hostPath':'%1$s/v','mountPath':'/srv/write','subPath':'run/1'}]}",
                   t->folder);
    test_job_start(t, "p/c/0", spec);
    test_job_await(t, "ready");
    if (no_namespaces(t)) {
        return;
    }
    test_job_await(t, "exited p/c/0 code=0");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_non_null(strstr(log, "Read-only file system"));
    assert_non_null(strstr(log, "refused\n"));
    muster_auto(free) char *written = read_volume(t, "v/run/1/y");
    assert_string_equal(written, "y\n");
}

/* A container has left a link in its volume; the subPath of the next container passes through
 * it. */
static void a_link_in_a_volume_leads_nowhere_else(void **state)
{
    struct test_job *t = *state;
    char spec[2048], link[512];
    make_volume(t, "v", "");
    make_volume(t, "v/inner", "inside\n");
    make_volume(t, "other", "of somebody else\n");
    (void)snprintf(link, sizeof link, "%s/v/absolute", t->folder);
    muster_auto(free) char *other = file_join(t->folder, "other");
    assert_int_equal(symlink(other, link), 0);
    (void)snprintf(link, sizeof link, "%s/v/up", t->folder);
    assert_int_equal(symlink("../other", link), 0);
    (void)snprintf(link, sizeof link, "%s/v/near", t->folder);
    assert_int_equal(symlink("/inner", link), 0);
    static const char *const names[] = {"absolute", "up", "near", "up/new"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "p/c%zu/0", i);
        (void)snprintf(spec, sizeof spec,
                       "{'argv': ['cat', '/srv/file'], 'cwd': '/', 'mounts': "
                       "[{'name':'v','hostPath':'%s/v','mountPath':'/srv','subPath':'%s'}]}",
                       t->folder, names[i]);
        test_job_start(t, id, spec);
    }
    test_job_await(t, "ready");
    if (no_namespaces(t)) {
        return;
    }
    test_job_await(t, "exited p/c2/0 code=0");
    test_job_await(
        t, "start_failed p/c0/0 code=128 StartError: volume v: subPath absolute cannot be opened");
    test_job_await(
        t, "start_failed p/c1/0 code=128 StartError: volume v: subPath up cannot be opened");
    test_job_await(
        t, "start_failed p/c3/0 code=128 StartError: volume v: subPath up/new cannot be opened");
    muster_auto(free) char *made = file_join(other, "new");
    assert_false(file_exists(made));
    muster_auto(free) char *log = test_job_log(t, "p/c2");
    assert_string_equal(log, "inside\n");
}

static void a_missing_volume_is_named(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0",
                   "{'argv': ['true'], 'cwd': '/', 'mounts': [{'name':'data', 'hostPath': "
                   "'/no/such/volume', 'mountPath': '/no/such/volume'}]}");
    test_job_start(t, "p/d/0",
                   "{'argv': ['true'], 'cwd': '/', 'mounts': [{'name':'data', 'hostPath': '/tmp', "
                   "'mountPath': '/srv', 'subPath': '../etc'}]}");
    test_job_await(t, "start_failed p/d/0 code=128 StartError: mounts[0]: subPath ../etc leaves");
    if (!no_namespaces(t)) {
        test_job_await(t, "start_failed p/c/0 code=128 StartError: volume data: cannot open "
                          "/no/such/volume: No such file or directory");
    }
}

/* If permitted, the test gives the machine a name that is in no file and that no server knows. */
static void names_of_machine_and_pod_resolve(void **state)
{
    (void)state;
    static struct test_job t;
    if (unshare(CLONE_NEWUTS) == 0) {
        assert_int_equal(sethostname("muster-test-machine", strlen("muster-test-machine")), 0);
    }
    test_job_init(&t);
    test_job_open(&t);
    test_job_start(&t, "p/c/0",
                   "{'argv': ['sh', '-c', 'getent hosts $(uname -n) >/dev/null && echo machine; "
                   "getent hosts mnist-worker-0 | tr -s ` `; grep -q localhost /etc/hosts && "
                   "echo whole'], 'cwd': '/', 'podName': 'mnist-worker-0'}");
    test_job_await(&t, "exited p/c/0");
    if (!no_namespaces(&t)) {
        muster_auto(free) char *log = test_job_log(&t, "p/c");
        assert_string_equal(log, "machine\n127.0.0.1 mnist-worker-0\nwhole\n");
    }
    test_job_done(&t);
}

/* The ranks of a job see each other by pid, and no other processes. */
static void one_pid_namespace_per_job(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/a/0", "{'argv': ['sh', '-c', 'echo $$; exec sleep 1000'], 'cwd': '/'}");
    test_job_await(t, "started p/a/0");
    test_job_await(t, "ready");
    if (no_namespaces(t)) {
        return;
    }
    test_job_await_log(t, "p/a", "");
    test_job_start(t, "q/b/0",
                   "{'argv': ['sh', '-c', 'cat /proc/[0-9]*/cmdline | tr -d `\\\\000` | grep -c "
                   "sleep1000; echo $$'], 'cwd': '/'}");
    test_job_await(t, "exited q/b/0");
    muster_auto(free) char *seen = test_job_log(t, "q/b");
    int found = 0, own = 0;
    assert_int_equal(sscanf(seen, "%d\n%d", &found, &own), 2);
    assert_int_equal(found, 1);
    assert_true(own > 1 && own < 100);
}

static const char *const listen_on_a_fixed_port =
    "{'argv': ['python3', '-c', 'import signal,socket\\nl=socket.create_server((`127.0.0.1`, 23456))"
    "\\nsocket.create_connection((`127.0.0.1`, 23456), 5)\\nprint(`connected`, flush=True)\\n"
    "signal.pause()'], 'cwd': '/'}";

static void hard_coded_ports_of_two_jobs_do_not_collide(void **state)
{
    (void)state;
    static struct test_job jobs[2];
    for (int i = 0; i < 2; i++) {
        test_job_init(&jobs[i]);
        jobs[i].network_private = true;
        test_job_open(&jobs[i]);
        test_job_start(&jobs[i], "p/c/0", listen_on_a_fixed_port);
    }
    for (int i = 0; i < 2; i++) {
        const char *refusal = "lost a private network cannot be had: no PID namespace";
        if (strcmp(test_job_await_either(&jobs[i], "started p/c/0", refusal), refusal) != 0) {
            test_job_await_log(&jobs[i], "p/c", "connected\n");
        }
        test_job_done(&jobs[i]);
    }
}

static void the_memory_limit_kills_and_says_so(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0",
                   "{'argv': ['python3', '-c', 'x = bytearray(200 << 20)'], 'cwd': '/',"
                   " 'limits': {'memoryBytes': 67108864, 'cpuMillis': 500}}");
    test_job_await(t, "exited p/c/0");
    if (test_job_has(t, "note p/c/0 the memory limit is not enforced") ||
        test_job_has(t, "note p/c/0 the memory and cpu limits are not enforced") ||
        test_job_has(t, "note p/c/0 the cpu limit is not enforced")) {
        assert_true(test_job_has(t, "exited p/c/0 code=0"));
        return;
    }
    assert_true(test_job_has(t, "exited p/c/0 code=137 oom=1 OOMKilled"));
    test_job_start(t, "p/child/0",
                   "{'argv': ['sh', '-c', 'tail /dev/zero; exit 3'], 'cwd': '/',"
                   " 'limits': {'memoryBytes': 67108864}}");
    test_job_await(t, "exited p/child/0 code=3 oom=1 OOMKilled");
}

static void a_spec_tells_cwd_and_mounts_later(void **state)
{
    struct test_job *t = *state;
    muster_auto(free) char *folder = file_join(t->folder, "containers/p/c/0");
    test_job_start(
        t, "p/c/0",
        "{'argv': ['true'], 'cwd': '/tmp', 'env': {'A': 'secret'}, 'mounts': [{'name': 'v', 'hostPath': '/tmp',"
        " 'mountPath': '/tmp'}]}");
    test_job_await(t, "exited p/c/0 code=0");
    muster_auto(doc) json_t *record = record_read(folder, "spec.json");
    assert_string_equal(doc_text(record, "cwd", ""), "/tmp");
    assert_string_equal(doc_text(record, "mounts.0.mountPath", ""), "/tmp");
    assert_null(doc_at(record, "env"));
    assert_null(doc_at(record, "argv"));
}

static void user_and_umask(void **state)
{
    struct test_job *t = *state;
    test_job_start(t, "p/c/0",
                   "{'argv': ['sh', '-c', 'id -u; id -g; umask'], 'cwd': '/', 'runAsUser': 12345,"
                   " 'runAsGroup': 54321, 'umask': 7}");
    if (geteuid() != 0) {
        test_job_await(t, "start_failed p/c/0 code=128 StartError: runAsUser 12345");
        return;
    }
    test_job_await(t, "exited p/c/0 code=0");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_string_equal(log, "12345\n54321\n0007\n");
}

/* ---- The lease ---- */

static bool supervisor_is_gone(void *data)
{
    return !identity_lives(data);
}

static pid_t start_leased(struct test_job *t)
{
    test_job_init(t);
    pid_t runner = fork();
    if (runner == 0) {
        (void)execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    t->runner = identity_text(runner);
    test_job_open(t);
    test_job_start(t, "p/c/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "started p/c/0");
    return runner;
}

/* Only the supervisor is left to end the job. */
static void a_leased_job_ends_with_its_runner(void **state)
{
    (void)state;
    static struct test_job t;
    pid_t runner = start_leased(&t);
    char *supervisor = identity_text(test_supervisor_pid(&t, "p/c/0"));
    test_job_close(&t);
    assert_int_equal(kill(runner, SIGKILL), 0);
    assert_int_equal(waitpid(runner, NULL, 0), runner);
    assert_true(test_wait(&t, supervisor_is_gone, supervisor));
    muster_auto(free) char *end = read_volume(&t, "containers/p/c/0/exit.json");
    assert_non_null(strstr(end, "\"code\":143"));
    free(supervisor);
    free(t.runner);
    test_job_done(&t);
}

static void a_controller_that_does_not_act_is_told_why_a_leased_job_ended(void **state)
{
    (void)state;
    static struct test_job t;
    pid_t runner = start_leased(&t);
    assert_int_equal(kill(runner, SIGKILL), 0);
    assert_int_equal(waitpid(runner, NULL, 0), runner);
    test_job_await(&t, "lost the job's supervisor ended it, as the command that ran it is gone");
    free(t.runner);
    test_job_done(&t);
}

/* ---- kill -9 of what keeps the job ---- */

static bool nothing_is_marked(void *data)
{
    return test_marked_processes(data) == 0;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    muster_auto(free) char *text = NULL;
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
    assert_int_equal(sscanf(strrchr(text, ')'), ") %*c %d", &parent), 1);
    return parent;
}

/* Kills the supervisor and the monitor while no controller can start another supervisor. The
 * supervisor that is started at last removes the job's control groups. */
static void kill_supervisor_and_monitor(struct test_job *t, const char *spec)
{
    char mark[512];
    int rank = 0;
    (void)snprintf(mark, sizeof mark, "MUSTER_ATTEMPT=%s/containers/p/c/0", t->folder);
    test_job_start(t, "p/c/0", spec);
    test_job_await(t, "started p/c/0");
    test_job_await_log(t, "p/c", "up\n");
    muster_auto(free) char *record = read_volume(t, "containers/p/c/0/started.json");
    assert_int_equal(sscanf(strstr(record, "\"process\":\""), "\"process\":\"%d-", &rank), 1);
    pid_t supervisor = test_supervisor_pid(t, "p/c/0");
    pid_t monitor = parent_of(rank);
    test_job_close(t);
    assert_int_equal(kill(supervisor, SIGSTOP), 0);
    assert_int_equal(kill(monitor, SIGKILL), 0);
    assert_int_equal(kill(supervisor, SIGKILL), 0);
    assert_true(test_wait(t, nothing_is_marked, mark));
    test_job_open(t);
    test_job_await(t, "lost the job's supervisor was killed");
}

static void a_supervisor_killed_with_its_monitor_leaves_nothing(void **state)
{
    kill_supervisor_and_monitor(
        *state, "{'argv': ['sh', '-c', 'setsid sleep 1000 & (setsid sh -c `sleep 1001 &` &); "
                "echo up; sleep 1002'], 'cwd': '/'}");
}

static bool is_first_entry(pid_t pid, const char *mark)
{
    char path[64];
    muster_auto(free) char *text = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    return file_read(path, 4 << 20, &text, NULL, NULL) == 0 && strcmp(text, mark) == 0;
}

/* A subshell has the environment in our order, and a program that a shell starts has it in the
 * shell's order, in which the mark may be anywhere in the 360 KiB. */
static void a_large_environment_hides_nobody(void **state)
{
    enum { VARIABLES = 6, EACH_BYTES = 60 << 10 };
    struct test_job *t = *state;
    struct buf spec;
    buf_init(&spec, 1 << 20);
    buf_text(&spec, "{'argv': ['sh', '-c', 'setsid sleep 1000 & ((while true; do sleep 1001; done) "
                    "&); echo up; sleep 1002'], 'cwd': '/', 'env': {'PATH': '/usr/bin:/bin'");
    for (int i = 0; i < VARIABLES; i++) {
        buf_format(&spec, ", 'LARGE_%d': '%0*d'", i, EACH_BYTES, 0);
    }
    buf_text(&spec, "}}");
    kill_supervisor_and_monitor(t, buf_str(&spec));
    buf_done(&spec);
}

static void the_mark_is_the_first_variable(void **state)
{
    struct test_job *t = *state;
    char mark[512];
    int rank = 0;
    (void)snprintf(mark, sizeof mark, "MUSTER_ATTEMPT=%s/containers/p/c/0", t->folder);
    test_job_start(t, "p/c/0", "{'argv': ['sleep', '1000'], 'cwd': '/', 'env': {'A': 'b'}}");
    test_job_await(t, "started p/c/0");
    muster_auto(free) char *record = read_volume(t, "containers/p/c/0/started.json");
    assert_int_equal(sscanf(strstr(record, "\"process\":\""), "\"process\":\"%d-", &rank), 1);
    assert_true(is_first_entry(rank, mark));
}

static int all_tests(void)
{
#define WITH_JOB(test) cmocka_unit_test_setup_teardown(test, test_job_set_up, test_job_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_JOB(volumes_are_at_their_mount_paths),
        WITH_JOB(read_only_and_sub_path),
        WITH_JOB(a_link_in_a_volume_leads_nowhere_else),
        WITH_JOB(a_missing_volume_is_named),
        cmocka_unit_test(names_of_machine_and_pod_resolve),
        WITH_JOB(one_pid_namespace_per_job),
        cmocka_unit_test(hard_coded_ports_of_two_jobs_do_not_collide),
        WITH_JOB(the_memory_limit_kills_and_says_so),
        WITH_JOB(a_spec_tells_cwd_and_mounts_later),
        WITH_JOB(user_and_umask),
        cmocka_unit_test(a_leased_job_ends_with_its_runner),
        cmocka_unit_test(a_controller_that_does_not_act_is_told_why_a_leased_job_ended),
        WITH_JOB(a_supervisor_killed_with_its_monitor_leaves_nothing),
        WITH_JOB(a_large_environment_hides_nobody),
        WITH_JOB(the_mark_is_the_first_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return test_job_main(argc, argv, all_tests);
}
