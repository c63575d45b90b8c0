/* What the tests share: whether a process lives; and, with fixture.c, for those with real processes
 * a temporary job folder, a job in it, and a loop that is run until something is true.
 *
 * Tests only.
 */
#pragma once

#include "process/process.h"
#include "process/wire/identity.h"

#include <stdbool.h>
#include <unistd.h>

static inline bool identity_lives(const char *identity)
{
    int fd = -1;
    if (identity_open(identity, &fd, NULL) < 0) {
        return false;
    }
    close(fd);
    return true;
}

enum { TEST_EVENTS_MAX = 4096 };

/* One line per event: "started a/c/0", "exited a/c/0 code=0 oom=0 Completed", "ready", … */
struct test_job {
    uv_loop_t loop;
    char folder[256];
    struct process_job *job;
    char *lines[TEST_EVENTS_MAX];
    size_t count;
    const char *isolation;
    bool network_private;
    char *runner;
};

/* The main function of such a test. Words on the command line: "supervisor" makes it a supervisor,
 * "unprivileged" gives up root first, "subreaper" does without namespaces. */
int test_job_main(int argc, char **argv, int (*all_tests)(void));

/* Fixtures: they set *state to a struct test_job whose job is open. */
int test_job_set_up(void **state);
int test_job_tear_down(void **state);

void test_job_init(struct test_job *t); /* makes a folder of its own */
void test_job_init_at(struct test_job *t, const char *folder);
void test_job_done(struct test_job *t); /* ends what still runs, removes the folder */
void test_job_open(struct test_job *t);
void test_job_close(struct test_job *t);

/* spec: JSON with ' for " and ` for '. Adds PATH to the environment and cwd "/" if they are
 * missing. */
void test_job_start(struct test_job *t, const char *id, const char *spec);

/* Runs the loop until a line begins with `line`, and returns that line; fails after
 * test_limit_ms(). */
const char *test_job_await(struct test_job *t, const char *line);
/* Returns the line that came, which begins with `one` or `other`. */
const char *test_job_await_either(struct test_job *t, const char *one, const char *other);
bool test_job_has(const struct test_job *t, const char *line);
void test_job_forget(struct test_job *t);
/* Returns the whole log of an attempt's container ("a/c"). The caller frees it. */
char *test_job_log(struct test_job *t, const char *container);
/* Waits until the log begins with the text. */
void test_job_await_log(struct test_job *t, const char *container, const char *text);
/* Runs the loop until the condition holds; returns false after test_limit_ms(). */
bool test_wait(struct test_job *t, bool (*condition)(void *data), void *data);
/* Returns the pid of the supervisor, from the record of the ready event; 0 when none holds the
 * lock. */
int test_supervisor_pid(const struct test_job *t, const char *id);
/* Returns how many living processes or zombies have `mark` ("NAME=value") in their environment. */
int test_marked_processes(const char *mark);
