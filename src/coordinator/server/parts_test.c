/* Checks parts of the server: the token, the table by incarnation, the queue of frames, the
 * report of how a process ended, and an address that is taken. */
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "coordinator/server/listener.h"
#include "coordinator/server/queue.h"
#include "coordinator/server/table.h"
#include "coordinator/server/token.h"
#include "coordinator/server/watch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEYS = 5000, FRAMES = 300, FRAME_BYTES = 4096, CLIENTS = 8 };

static void a_token_is_64_digits(void **state)
{
    (void)state;
    char text[80] = " 00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n";
    uint8_t token[WIRE_TOKEN_BYTES], other[WIRE_TOKEN_BYTES];
    assert_int_equal(server_token_read(text, token, NULL), 0);
    assert_int_equal(token[1], 0x11);
    assert_int_equal(token[31], 0xff);
    for (size_t i = 0; i < WIRE_TOKEN_BYTES; i++) {
        memcpy(other, token, sizeof token);
        assert_true(server_token_is(token, other));
        other[i] ^= 0x80;
        assert_false(server_token_is(token, other));
    }
    text[64] = 'g';
    assert_int_equal(server_token_read(text, token, NULL), MUSTER_EINVAL);
    text[64] = 0;
    assert_int_equal(server_token_read(text, token, NULL), MUSTER_EINVAL);
    assert_int_equal(server_token_read("", token, NULL), MUSTER_EINVAL);
}

/* Returns small keys, and large ones whose low bits are all 0. */
static uint64_t key(size_t i)
{
    return i % 2 ? i + 1 : (uint64_t)(i + 1) << 40;
}

static void a_table_has_what_was_added_and_not_removed(void **state)
{
    (void)state;
    static int values[KEYS];
    struct server_table table = {0};
    assert_null(server_table_find(&table, 1));
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(server_table_add(&table, key(i), &values[i]), 0);
    }
    for (size_t i = 0; i < KEYS; i += 3) {
        server_table_remove(&table, key(i));
    }
    size_t at = 0, seen = 0;
    while (server_table_each(&table, &at)) {
        seen++;
    }
    assert_int_equal(seen, table.count);
    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(server_table_find(&table, key(i)), i % 3 ? &values[i] : NULL);
    }
    assert_null(server_table_find(&table, 0));
    server_table_done(&table);
}

/* Bytes that cannot be sent at once are sent later, in order; a frame exists as long as a queue
 * holds it. */
static void a_queue_keeps_the_order(void **state)
{
    (void)state;
    int ends[2];
    uint8_t bytes[FRAME_BYTES];
    struct server_queue queue = {0};
    size_t got = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (int i = 0; i < FRAMES; i++) {
        memset(bytes, i, sizeof bytes);
        struct server_frame *frame = server_frame_new(bytes, sizeof bytes);
        assert_non_null(frame);
        assert_int_equal(server_queue_add(&queue, frame), 0);
        server_frame_release(frame);
        assert_int_equal(server_queue_write(&queue, ends[0]), 0);
    }
    assert_true(queue.bytes > 0); /* more than a socket has room for */
    while (got < FRAMES * sizeof bytes) {
        ssize_t count = recv(ends[1], bytes, sizeof bytes - got % 7, MSG_DONTWAIT);
        assert_true(count > 0);
        for (ssize_t i = 0; i < count; i++) {
            assert_int_equal(bytes[i], (uint8_t)((got + (size_t)i) / sizeof bytes));
        }
        got += (size_t)count;
        assert_int_equal(server_queue_write(&queue, ends[0]), 0);
    }
    assert_int_equal(queue.bytes, 0);
    close(ends[1]);
    struct server_frame *last = server_frame_new(bytes, 1);
    assert_int_equal(server_queue_add(&queue, last), 0);
    server_frame_release(last);
    assert_int_equal(server_queue_write(&queue, ends[0]), -1);
    server_queue_done(&queue);
    close(ends[0]);
}

static void never(void *data)
{
    fail_msg("the loop does not run while it lives: %p", data);
}

/* Starts a child that connects, waits for a byte and ends: by the signal `end`, or with exit code
 * -end. */
static pid_t start_child(int listens, int end)
{
    struct sockaddr_un address;
    socklen_t bytes = sizeof address;
    assert_int_equal(getsockname(listens, (struct sockaddr *)&address, &bytes), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        char go;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setrlimit(RLIMIT_CORE, &none);
        if (connect(fd, (const struct sockaddr *)&address, bytes) == 0 && read(fd, &go, 1) == 1) {
            (void)signal(end, SIG_DFL);
            (void)kill(getpid(), end);
        }
        _exit(end <= 0 ? -end : 99);
    }
    return child;
}

static void how_a_process_ended_is_known_when_it_was_waited_for(void **state)
{
    (void)state;
    static const struct {
        int end;
        enum arbiter_cause cause;
        const char *text;
    } ends[] = {{SIGSEGV, ARBITER_CAUSE_OWN, "by signal 11 (SIGSEGV)"},
                {SIGKILL, ARBITER_CAUSE_OUTSIDE, "by signal 9 (SIGKILL)"},
                {SIGTERM, ARBITER_CAUSE_OUTSIDE, "by signal 15 (SIGTERM)"},
                {-3, ARBITER_CAUSE_OWN, "with exit code 3"},
                {0, ARBITER_CAUSE_ENDED, "with exit code 0"},
                {-143, ARBITER_CAUSE_OUTSIDE, "with exit code 143"}};
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    int listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listens, (const struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(listens, 1), 0);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[SERVER_WATCH_TEXT_BYTES];
        uv_loop_t loop;
        assert_int_equal(uv_loop_init(&loop), 0);
        pid_t child = start_child(listens, ends[i].end);
        int fd = accept4(listens, NULL, NULL, SOCK_CLOEXEC);
        const struct wire_hello nobody = {0};
        struct server_watch *watch = server_watch_start(&loop, fd, &nobody, never, NULL);
        assert_non_null(watch);
        assert_int_equal(write(fd, "g", 1), 1);
        assert_int_equal(waitpid(child, NULL, 0), child);
        enum arbiter_cause cause = server_watch_cause(watch, text);
        if (cause != ARBITER_CAUSE_PENDING) { /* a kernel before 6.15 does not report it */
            assert_int_equal(cause, ends[i].cause);
            assert_string_equal(text, ends[i].text);
        }
        server_watch_stop(watch);
        assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(uv_loop_close(&loop), 0);
        close(fd);
    }
    close(listens);
}

/* ---- An address that another process has ---- */

/* An example is a stopped coordinator whose queue of clients is full. */
static void a_process_that_does_not_accept_is_not_waited_for(void **state)
{
    const char *folder = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct server_listener listener;
    struct muster_err err = MUSTER_ERR_INIT;
    char address[TEST_FOLDER_BYTES + 16];
    int clients[CLIENTS], count = 0;
    test_alarm();
    (void)snprintf(address, sizeof address, "unix:%s/socket", folder);
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%.90s/socket", folder);
    int listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listens, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listens, 0), 0);
    bool full = false;
    while (!full && count < CLIENTS) {
        clients[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        full = connect(clients[count++], (struct sockaddr *)&at, sizeof at) < 0;
    }
    assert_true(full);
    assert_int_equal(server_listener_open(&listener, address, &err), MUSTER_ECONFLICT);
    listener.is_unix = false; /* the socket is not its own */
    server_listener_close(&listener);
    while (count > 0) {
        close(clients[--count]);
    }
    close(listens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_64_digits),
        cmocka_unit_test(a_table_has_what_was_added_and_not_removed),
        cmocka_unit_test(a_queue_keeps_the_order),
        cmocka_unit_test(how_a_process_ended_is_known_when_it_was_waited_for),
        cmocka_unit_test_setup_teardown(a_process_that_does_not_accept_is_not_waited_for,
                                        test_folder_set_up, test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
