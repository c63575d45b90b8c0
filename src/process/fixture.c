/* See fixture.h. Tests only. */
#include "process/fixture.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "process/log/log.h"
#include "process/supervisor/supervisor.h"

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static const char *isolation_of_all;

static void give_up_root(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() == 0) {
        assert_int_equal(setgroups(0, NULL), 0);
        assert_int_equal(setresgid(NOBODY, NOBODY, NOBODY), 0);
        assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
        assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0); /* /proc/self belongs to this user again */
    }
}

int test_job_main(int argc, char **argv, int (*all_tests)(void))
{
    if (argc > 1 && strcmp(argv[1], "supervisor") == 0) {
        return supervisor_main(argc - 1, argv + 1);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "unprivileged") == 0) {
            give_up_root();
        } else if (strcmp(argv[i], "subreaper") == 0) {
            isolation_of_all = "subreaper";
        }
    }
    return all_tests();
}

int test_job_set_up(void **state)
{
    struct test_job *t = calloc(1, sizeof *t);
    test_job_init(t);
    test_job_open(t);
    *state = t;
    return 0;
}

int test_job_tear_down(void **state)
{
    test_job_done(*state);
    free(*state);
    return 0;
}

static void add_line(struct test_job *t, char *line)
{
    assert_true(t->count < TEST_EVENTS_MAX);
    t->lines[t->count++] = line;
}

#define LINE(t, ...)                                                                               \
    do {                                                                                           \
        char *line_ = NULL;                                                                        \
        assert_true(asprintf(&line_, __VA_ARGS__) > 0);                                            \
        add_line((t), line_);                                                                      \
    } while (0)

static void on_started(void *data, const char *id, int64_t at_unix_ms)
{
    assert_true(at_unix_ms > 0);
    LINE((struct test_job *)data, "started %s", id);
}

static void on_exited(void *data, const char *id, const struct process_exit *e)
{
    LINE((struct test_job *)data, "exited %s code=%d oom=%d %s", id, e->code, e->oom, e->reason);
}

static void on_start_failed(void *data, const char *id, int code, const char *reason,
                            const char *message)
{
    LINE((struct test_job *)data, "start_failed %s code=%d %s: %s", id, code, reason, message);
}

static void on_note(void *data, const char *id, const char *reason, const char *text)
{
    (void)reason;
    LINE((struct test_job *)data, "note %s %s", id ? id : "-", text);
}

static void on_stalled(void *data, const char *id, const char *text)
{
    LINE((struct test_job *)data, "stalled %s %s", id, text);
}

static void on_stacks(void *data, int64_t ticket, const json_t *attempts)
{
    muster_auto(free) char *text = doc_print(attempts);
    LINE((struct test_job *)data, "stacks %lld %s", (long long)ticket, text);
}

static void on_ready(void *data)
{
    LINE((struct test_job *)data, "ready");
}

static void on_lost(void *data, const char *why)
{
    LINE((struct test_job *)data, "lost %s", why);
}

static void on_ended(void *data)
{
    LINE((struct test_job *)data, "ended");
}

void test_job_init_at(struct test_job *t, const char *folder)
{
    *t = (struct test_job){.isolation = isolation_of_all};
    (void)snprintf(t->folder, sizeof t->folder, "%s", folder);
    assert_int_equal(uv_loop_init(&t->loop), 0);
}

void test_job_init(struct test_job *t)
{
    char folder[TEST_FOLDER_BYTES];
    test_folder_make(folder);
    test_job_init_at(t, folder);
}

void test_job_open(struct test_job *t)
{
    static const struct process_events events = {.started = on_started,
                                                 .exited = on_exited,
                                                 .start_failed = on_start_failed,
                                                 .note = on_note,
                                                 .stalled = on_stalled,
                                                 .stacks = on_stacks,
                                                 .ready = on_ready,
                                                 .lost = on_lost,
                                                 .ended = on_ended};
    struct process_job_options options = {.folder = t->folder,
                                          .isolation = t->isolation,
                                          .runner = t->runner,
                                          .private_network = t->network_private};
    struct muster_err err = MUSTER_ERR_INIT;
    if (process_job_open(&t->loop, &options, &events, t, &t->job, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

void test_job_close(struct test_job *t)
{
    process_job_close(t->job);
    t->job = NULL;
}

void test_job_forget(struct test_job *t)
{
    while (t->count > 0) {
        free(t->lines[--t->count]);
    }
}

/* Fails if a sanitizer has reported a fault in a supervisor. (A search for leaks is not possible
 * after its PID namespace has ended; without a namespace it is done.) */
static void assert_no_complaint(const struct test_job *t)
{
    static const char *const complaints[] = {"ERROR: AddressSanitizer",
                                             "runtime error:", "detected memory leaks"};
    muster_auto(free) char *path = file_join(t->folder, "supervisor.log");
    muster_auto(free) char *text = NULL;
    (void)file_read(path, 1 << 20, &text, NULL, NULL);
    for (size_t i = 0; text && i < sizeof complaints / sizeof complaints[0]; i++) {
        if (strstr(text, complaints[i])) {
            fail_msg("%s", text);
        }
    }
}

void test_job_done(struct test_job *t)
{
    if (t->job && process_job_end(t->job, 0, NULL) == 0) {
        (void)test_job_await(t, "ended");
    }
    test_job_close(t);
    (void)uv_run(&t->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&t->loop), 0);
    assert_no_complaint(t);
    assert_int_equal(file_remove(t->folder, NULL), 0);
    test_job_forget(t);
}

void test_job_start(struct test_job *t, const char *id, const char *spec)
{
    muster_auto(free) char *text = strdup(spec);
    json_t *doc = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    for (char *at = text; *at; at++) {
        *at = *at == '\'' ? '"' : *at == '`' ? '\'' : *at;
    }
    if (doc_parse(text, strlen(text), &doc, &err) < 0) {
        fail_msg("%s", err.text);
    }
    if (!doc_at(doc, "env.PATH")) {
        doc_set_text(doc, "env.PATH", "/usr/local/bin:/usr/bin:/bin");
    }
    if (process_job_start(t->job, id, doc, &err) < 0) {
        fail_msg("%s", err.text);
    }
    json_decref(doc);
}

static size_t test_job_times(const struct test_job *t, const char *line)
{
    size_t times = 0;
    for (size_t i = 0; i < t->count; i++) {
        times += strncmp(t->lines[i], line, strlen(line)) == 0;
    }
    return times;
}

bool test_job_has(const struct test_job *t, const char *line)
{
    return test_job_times(t, line) > 0;
}

static void wake(uv_timer_t *timer)
{
    (void)timer;
}

bool test_wait(struct test_job *t, bool (*condition)(void *data), void *data)
{
    uv_timer_t tick; /* the condition may depend on something that is not an event of the loop */
    uv_timer_init(&t->loop, &tick);
    uv_timer_start(&tick, wake, 5, 5);
    uv_update_time(&t->loop);
    uint64_t until = uv_now(&t->loop) + (uint64_t)test_limit_ms();
    bool held = condition(data);
    while (!held && uv_now(&t->loop) < until) {
        (void)uv_run(&t->loop, UV_RUN_ONCE);
        held = condition(data);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&t->loop, UV_RUN_NOWAIT);
    return held;
}

struct awaited {
    const struct test_job *t;
    const char *line;
    const char *other; /* another line that also ends the wait; or NULL */
};

static bool has_awaited(void *data)
{
    const struct awaited *awaited = data;
    return test_job_has(awaited->t, awaited->line) ||
           (awaited->other && test_job_has(awaited->t, awaited->other));
}

static void await(struct test_job *t, const char *line, const char *other)
{
    struct awaited awaited = {t, line, other};
    if (!test_wait(t, has_awaited, &awaited)) {
        for (size_t i = 0; i < t->count; i++) {
            print_error("%s\n", t->lines[i]);
        }
        fail_msg("\"%s\" did not come", line);
    }
}

const char *test_job_await(struct test_job *t, const char *line)
{
    await(t, line, NULL);
    for (size_t i = 0; i < t->count; i++) {
        if (strncmp(t->lines[i], line, strlen(line)) == 0) {
            return t->lines[i];
        }
    }
    return NULL;
}

const char *test_job_await_either(struct test_job *t, const char *one, const char *other)
{
    await(t, one, other);
    return test_job_has(t, one) ? one : other;
}

char *test_job_log(struct test_job *t, const char *container)
{
    char folder[512];
    char *text = calloc(1, 1 << 20);
    size_t used = 0;
    struct process_log *log = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    (void)snprintf(folder, sizeof folder, "%s/containers/%s", t->folder, container);
    const struct process_log_options options = {
        .folder = folder, .tail_lines = -1, .limit_bytes = -1};
    if (process_log_open(&t->loop, &options, NULL, NULL, &log, &err) < 0) {
        fail_msg("%s", err.text);
    }
    for (enum process_log_state state = PROCESS_LOG_MORE; state == PROCESS_LOG_MORE;) {
        size_t count = 0;
        assert_int_equal(
            process_log_read(log, text + used, (1 << 20) - 1 - used, &count, &state, &err), 0);
        used += count;
    }
    process_log_close(log);
    return text;
}

struct awaited_log {
    struct test_job *t;
    const char *container;
    const char *text;
};

static bool log_begins(void *data)
{
    const struct awaited_log *awaited = data;
    muster_auto(free) char *log = test_job_log(awaited->t, awaited->container);
    return strncmp(log, awaited->text, strlen(awaited->text)) == 0;
}

void test_job_await_log(struct test_job *t, const char *container, const char *text)
{
    struct awaited_log awaited = {t, container, text};
    assert_true(test_wait(t, log_begins, &awaited));
}

int test_supervisor_pid(const struct test_job *t, const char *id)
{
    muster_auto(free) char *path = NULL;
    muster_auto(free) char *text = NULL;
    json_t *doc = NULL;
    int pid = 0;
    assert_true(asprintf(&path, "%s/containers/%s/started.json", t->folder, id) > 0);
    assert_int_equal(file_read(path, 65536, &text, NULL, NULL), 0);
    assert_int_equal(doc_parse(text, strlen(text), &doc, NULL), 0);
    assert_int_equal(sscanf(doc_text(doc, "supervisor", ""), "%d-", &pid), 1);
    json_decref(doc);
    return pid;
}

int test_marked_processes(const char *mark)
{
    int found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e = readdir(proc); e; e = readdir(proc)) {
        char path[300];
        muster_auto(free) char *text = NULL;
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            file_read(path, 1 << 20, &text, &bytes, NULL) < 0) {
            continue;
        }
        for (const char *at = text; at < text + bytes; at += strlen(at) + 1) {
            found += strcmp(at, mark) == 0;
        }
    }
    closedir(proc);
    return found;
}
