/* kill -9 of anything, at any moment: runner, supervisor, controller, ranks, monitors, or the
 * supervisor and a monitor at once. Nothing is left over, nothing runs twice, and every record
 * tells the truth.
 *
 * This program is a child subreaper, so whatever loses its parents becomes its child: that waitpid
 * finds no child at all is the proof that no orphan and no zombie is left. Runner and controllers
 * are forked from it. The seed is printed; `process_kill_test rounds N seed S` runs a round again.
 */
#include "process/fixture.h"
#include "process/wire/identity.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_seeds.h"
#include "base/testing/test_wait.h"
#include "base/time/clock.h"
#include "process/wire/record.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { RANKS = 3, RANK_CODE = 7, DELAY_MS_MAX = 60 };

static unsigned rounds = 50;
static uint64_t seed;

/* The processes of a round. 0: does not exist (any more). */
struct round {
    char folder[TEST_FOLDER_BYTES];
    uint64_t random;
    pid_t runner;
    char *runner_identity; /* noted while the runner certainly lives */
    pid_t controller;
    bool runner_killed;
    bool controller_killed;
};

static uint32_t chance(struct round *round, uint32_t below)
{
    round->random = round->random * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(round->random >> 33) % below;
}

/* ---- The actors ---- */

static pid_t start_runner(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

/* Each rank notes that it ran, leaves descendants in three ways, and ends soon or never. */
static void start_ranks(struct test_job *t)
{
    for (int i = 0; i < RANKS; i++) {
        char id[32], end[64], spec[1024];
        (void)snprintf(id, sizeof id, "pod-%d/main/0", i);
        (void)snprintf(end, sizeof end, "sleep 0.03; echo x >done-%d; exit %d", i, RANK_CODE);
        (void)snprintf(spec, sizeof spec,
                       "{'argv': ['sh', '-c', 'echo x >>ran-%d; sleep 1000 & setsid sleep 1000 & "
                       "(setsid sh -c `sleep 1000 &` &); %s'], 'cwd': '%s'}",
                       i, i == 0 ? "sleep 1000" : end, t->folder);
        test_job_start(t, id, spec);
    }
}

/* Starts a controller that is killed at some time, before it has read all events. */
static pid_t start_controller(const struct round *round)
{
    pid_t pid = fork();
    if (pid == 0) {
        static struct test_job t;
        test_job_init_at(&t, round->folder);
        t.runner = round->runner_identity;
        test_job_open(&t);
        start_ranks(&t);
        (void)uv_run(&t.loop, UV_RUN_DEFAULT);
        for (;;) {
            (void)pause(); /* it has lost its job, and waits to be killed */
        }
    }
    return pid;
}

static int end_as_controller(const struct round *round)
{
    static struct test_job t;
    test_job_init_at(&t, round->folder);
    test_job_open(&t);
    const char *outcome = test_job_await_either(&t, "ready", "lost");
    if (strcmp(outcome, "lost") == 0) {
        test_job_close(&t);
        test_job_forget(&t);
        test_job_open(&t);
        (void)test_job_await(&t, "ready");
    }
    start_ranks(&t); /* like a controller that does not know that they were started */
    assert_int_equal(process_job_end(t.job, 0, NULL), 0);
    (void)test_job_await(&t, "ended");
    test_job_close(&t);
    return 0;
}

/* Starts a new controller, which adopts what is left and ends it; in a child, so that its loop
 * never sees our children. */
static void adopt_and_end(const struct round *round)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(end_as_controller(round));
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- Kills ---- */

static pid_t pid_in_record(const struct round *round, int rank, const char *key)
{
    char id[32];
    (void)snprintf(id, sizeof id, "pod-%d/main/0", rank);
    muster_auto(free) char *folder = record_folder(round->folder, id);
    muster_auto(doc) json_t *started = record_read(folder, "started.json");
    const char *identity = doc_text(started, key, "0");
    return identity_lives(identity) ? (pid_t)strtol(identity, NULL, 10) : 0;
}

/* Returns the parent of a rank, as long as it is a monitor: "(muster-monitor)" in its stat file
 * (proc(5)). */
static pid_t monitor_of(pid_t rank)
{
    char path[64];
    int parent = 0;
    for (int up = 0; up < 2; up++) {
        muster_auto(free) char *text = NULL;
        (void)snprintf(path, sizeof path, "/proc/%d/stat", up == 0 ? (int)rank : parent);
        if (rank == 0 || file_read(path, 4096, &text, NULL, NULL) < 0) {
            return 0;
        }
        if (up == 1) {
            return strstr(text, "(muster-monitor)") ? (pid_t)parent : 0;
        }
        (void)sscanf(strrchr(text, ')'), ") %*c %d", &parent);
    }
    return 0;
}

static void hit(pid_t pid)
{
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
    }
}

/* The supervisor is stopped first, so that it cannot act on the monitor's death before its own. */
static void hit_both(pid_t supervisor, pid_t monitor)
{
    if (supervisor > 0) {
        (void)kill(supervisor, SIGSTOP);
    }
    hit(monitor);
    hit(supervisor);
}

static void strike(struct round *round)
{
    int rank = (int)chance(round, RANKS);
    pid_t supervisor = pid_in_record(round, rank, "supervisor");
    pid_t process = pid_in_record(round, rank, "process");
    switch (chance(round, 6)) {
    case 0:
        hit(round->runner);
        round->runner_killed = true;
        break;
    case 1:
        hit(round->controller);
        round->controller_killed = true;
        break;
    case 2: hit(supervisor); break;
    case 3: hit(monitor_of(process)); break;
    case 4: hit_both(supervisor, monitor_of(process)); break;
    default: hit(process); break;
    }
}

/* ---- What must be true afterwards ---- */

/* Reaps every child; returns 0 when none is left. */
static int reap_all(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid <= 0) {
            return pid == 0 ? 1 : 0;
        }
    }
}

static bool all_gone(void)
{
    int64_t until = clock_ms() + test_limit_ms();
    while (reap_all() > 0) {
        if (clock_ms() > until) {
            return false;
        }
        test_let_pass(2);
    }
    return true;
}

static size_t bytes_of(const struct round *round, const char *name, int rank)
{
    char path[128];
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, "%s/%s-%d", round->folder, name, rank);
    return file_read(path, 4096, &text, &bytes, NULL) == 0 ? bytes : 0;
}

static int check_record(void *data, const char *id, const char *folder)
{
    const struct round *round = data;
    int rank = id[strlen("pod-")] - '0';
    muster_auto(doc) json_t *end = record_read(folder, "exit.json");
    const char *reason = doc_text(end, "reason", "");
    int code = (int)doc_int(end, "code", -1);
    assert_non_null(end);
    assert_true(bytes_of(round, "ran", rank) <= strlen("x\n")); /* never twice */
    if (code == RANK_CODE) {
        assert_int_equal(bytes_of(round, "ran", rank), strlen("x\n"));
        assert_int_equal(bytes_of(round, "done", rank), strlen("x\n"));
        assert_string_equal(reason, "Error");
    } else {
        assert_true(code == 137 || code == 143);
        assert_true(strcmp(reason, "Error") == 0 || strcmp(reason, "Lost") == 0);
    }
    return 0;
}

static void check_records(struct round *round)
{
    assert_int_equal(record_each(round->folder, check_record, round, NULL), 0);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_true(bytes_of(round, "ran", rank) <= strlen("x\n"));
    }
}

/* If runner and controller of a job are gone, the supervisor ends it alone; else a new controller
 * ends it. */
static void finish(struct round *round)
{
    bool alone = round->runner_killed && round->controller_killed;
    if (!alone) {
        hit(round->controller);
        adopt_and_end(round);
        hit(round->runner);
    }
    if (!all_gone()) {
        fail_msg("processes are left over, alone=%d", alone);
    }
    if (alone) {
        adopt_and_end(round); /* records what a killed supervisor left unrecorded */
        assert_true(all_gone());
    }
    check_records(round);
}

static void play(unsigned number)
{
    struct round round = {.random = seed + number};
    test_folder_make(round.folder);
    (void)chance(&round, 2);
    round.runner = start_runner();
    round.runner_identity = identity_text(round.runner);
    round.controller = start_controller(&round);
    for (uint32_t blows = 1 + chance(&round, 4); blows > 0; blows--) {
        test_let_pass((int)chance(&round, DELAY_MS_MAX));
        strike(&round);
    }
    finish(&round);
    free(round.runner_identity);
    test_folder_remove(round.folder);
}

static void nothing_outlives_and_nothing_runs_twice(void **state)
{
    (void)state;
    print_message("%u rounds, seed %llu\n", rounds, (unsigned long long)seed);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (unsigned number = 0; number < rounds; number++) {
        play(number);
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_outlives_and_nothing_runs_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    test_read_rounds(argc, argv, &rounds, &seed);
    return test_job_main(argc, argv, all_tests);
}
