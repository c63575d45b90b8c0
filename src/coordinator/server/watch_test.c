/* How the coordinator learns how a worker ended: before its parent has waited for it, and after. */
#include "base/testing/test.h"
#include "coordinator/server/watch.h"
#include "core/pid_space.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct worker {
    uv_loop_t loop;
    struct server_watch *watch;
    pid_t pid;
    int fd;
    bool died;
};

static void on_died(void *data)
{
    struct worker *worker = data;
    worker->died = true;
}

union name {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in inet;
};

/* Listens at any address of that family. */
static int listen_at(int family, union name *ret, socklen_t *ret_bytes)
{
    *ret = (union name){.any.sa_family = (sa_family_t)family};
    socklen_t bytes = family == AF_UNIX ? sizeof(sa_family_t) : sizeof ret->inet;
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (family == AF_INET) {
        ret->inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    *ret_bytes = sizeof *ret;
    assert_int_equal(bind(listener, &ret->any, bytes), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, &ret->any, ret_bytes), 0);
    return listener;
}

/* Starts a process that connects to this one and waits; if it gets a byte, it exits with `code`.
 * `space` is the PID space that its HELLO names. */
static void start_at(struct worker *w, int code, int family, uint64_t space)
{
    union name name;
    socklen_t size;
    int listener = listen_at(family, &name, &size);
    w->pid = fork();
    if (w->pid == 0) {
        char byte;
        signal(SIGSEGV, SIG_DFL); /* cmocka has a handler of its own */
        int fd = socket(family, SOCK_STREAM, 0);
        bool told = connect(fd, &name.any, size) == 0 && read(fd, &byte, 1) == 1;
        _exit(told ? code : 99);
    }
    w->fd = accept(listener, NULL, NULL);
    assert_true(w->fd >= 0);
    close(listener);
    w->died = false;
    assert_int_equal(uv_loop_init(&w->loop), 0);
    const struct wire_hello hello = {.pid_space = space, .pid = (uint32_t)w->pid};
    w->watch = server_watch_start(&w->loop, w->fd, &hello, on_died, w);
}

static void start(struct worker *w, int code)
{
    start_at(w, code, AF_UNIX, 0);
    assert_non_null(w->watch);
}

static enum arbiter_cause await_cause(struct worker *w, char *ret_text)
{
    while (!w->died) {
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    return server_watch_cause(w->watch, ret_text);
}

static void stop(struct worker *w)
{
    server_watch_stop(w->watch);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    close(w->fd);
}

static void expect(struct worker *w, bool waited_for, enum arbiter_cause cause, const char *text)
{
    char got[SERVER_WATCH_TEXT_BYTES];
    if (waited_for) {
        assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
    }
    enum arbiter_cause said = await_cause(w, got);
    if (said != ARBITER_CAUSE_PENDING) { /* a kernel before 6.15 does not report it */
        assert_int_equal(said, cause);
        assert_string_equal(got, text);
    } else {
        assert_true(waited_for);
    }
    if (!waited_for) {
        assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
    }
    stop(w);
}

static void who_is_killed_from_outside_is_to_blame_for_nothing(void **state)
{
    (void)state;
    for (int waited_for = 0; waited_for < 2; waited_for++) {
        struct worker w;
        start(&w, 0);
        kill(w.pid, SIGKILL);
        expect(&w, waited_for, ARBITER_CAUSE_OUTSIDE, "by signal 9 (SIGKILL)");
    }
}

static void who_crashes_is_known_by_its_signal(void **state)
{
    (void)state;
    for (int waited_for = 0; waited_for < 2; waited_for++) {
        struct worker w;
        start(&w, 0);
        kill(w.pid, SIGSEGV);
        expect(&w, waited_for, ARBITER_CAUSE_OWN, "by signal 11 (SIGSEGV)");
    }
}

static void who_exits_is_known_by_its_code(void **state)
{
    (void)state;
    for (int waited_for = 0; waited_for < 2; waited_for++) {
        struct worker w;
        start(&w, 7);
        assert_int_equal(write(w.fd, "", 1), 1);
        expect(&w, waited_for, ARBITER_CAUSE_OWN, "with exit code 7");
    }
}

/* The kernel does not know the process at the other end: HELLO is believed if it can be true. */
static void of_tcp_processes_of_this_machine_are_watched(void **state)
{
    (void)state;
    struct worker w;
    start_at(&w, 0, AF_INET, pid_space());
    assert_non_null(w.watch);
    kill(w.pid, SIGKILL);
    expect(&w, false, ARBITER_CAUSE_OUTSIDE, "by signal 9 (SIGKILL)");
    for (uint64_t other = 0; other < 2; other++) {
        start_at(&w, 0, AF_INET, other);
        assert_null(w.watch);
        kill(w.pid, SIGKILL);
        assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
        stop(&w);
    }
}

/* A coordinator that was started again does this while it has no connection yet. */
static void a_process_is_found_again_or_is_known_to_be_gone(void **state)
{
    (void)state;
    struct worker w;
    bool gone = true;
    start(&w, 0);
    struct server_process process = server_watch_process(w.watch), other = process;
    server_watch_stop(w.watch);
    assert_int_equal(process.pid, w.pid);
    assert_true(process.began > 0);
    other.began++; /* its number was used again */
    assert_null(server_watch_resume(&w.loop, &other, on_died, &w, &gone));
    assert_true(gone);
    other = process;
    other.space++; /* a process of another machine, about which nothing is known */
    assert_null(server_watch_resume(&w.loop, &other, on_died, &w, &gone));
    assert_false(gone);
    w.watch = server_watch_resume(&w.loop, &process, on_died, &w, &gone);
    assert_non_null(w.watch);
    assert_false(gone);
    kill(w.pid, SIGKILL);
    expect(&w, false, ARBITER_CAUSE_OUTSIDE, "by signal 9 (SIGKILL)");
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_null(server_watch_resume(&w.loop, &process, on_died, &w, &gone));
    assert_true(gone);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_killed_from_outside_is_to_blame_for_nothing),
        cmocka_unit_test(who_crashes_is_known_by_its_signal),
        cmocka_unit_test(who_exits_is_known_by_its_code),
        cmocka_unit_test(a_process_is_found_again_or_is_known_to_be_gone),
        cmocka_unit_test(of_tcp_processes_of_this_machine_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
