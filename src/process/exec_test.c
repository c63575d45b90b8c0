/* Commands in a running container, and its standard input, with every kind of isolation: the
 * supervisor's part, without a controller. */
#include "process/fixture.h"

#include "base/cleanup.h"
#include "base/testing/test.h"
#include "process/supervisor/handover.h"
#include "process/wire/frame.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { ANSWER_BYTES = 1 << 16 };

struct client {
    int fd;
    char bytes[ANSWER_BYTES];
    size_t used;
    bool closed;
};

static void connect_to(struct client *client, int *ret_theirs)
{
    int ends[2];
    *client = (struct client){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client->fd = ends[0];
    *ret_theirs = ends[1];
}

/* Hands a client over to the supervisor. `open` is JSON with ' instead of ". */
static void hand_over(struct test_job *t, const char *id, const char *open, struct client *client)
{
    int fds[2];
    struct handover_packet packet = {.kind = HANDOVER_EXEC};
    muster_auto(free) char *text = strdup(open);
    for (char *at = text; (at = strchr(at, '\''));) {
        *at = '"';
    }
    (void)snprintf(packet.id, sizeof packet.id, "%s", id);
    connect_to(client, &fds[0]);
    fds[1] = memfd_create("open", MFD_CLOEXEC);
    assert_int_equal(write(fds[1], text, strlen(text)), strlen(text));
    assert_int_equal(handover_send(t->folder, &packet, fds, 2, NULL), 0);
    passing_close(fds, 2);
}

static bool is_closed(void *data)
{
    struct client *c = data;
    ssize_t n = recv(c->fd, c->bytes + c->used, sizeof c->bytes - c->used, MSG_DONTWAIT);
    c->used += n > 0 ? (size_t)n : 0;
    c->closed = c->closed || n == 0;
    return c->closed;
}

/* Returns everything that arrived on one channel. */
static const char *text_of(const struct client *c, enum frame_kind kind)
{
    static char text[ANSWER_BYTES];
    struct frame frame;
    size_t used = 0;
    long length;
    for (size_t at = 0; (length = frame_read(c->bytes + at, c->used - at, &frame)) > 0;
         at += (size_t)length) {
        if (frame.kind == kind) {
            memcpy(text + used, frame.bytes, frame.count);
            used += frame.count;
        }
    }
    text[used] = '\0';
    return text;
}

static void runs_in_the_container_and_says_how_it_ended(void **state)
{
    struct test_job *t = *state;
    struct client client;
    test_job_start(t, "p/c/0",
                   "{'argv': ['sleep', '1000'], 'cwd': '/tmp', 'env': {'COLOUR': 'green'}}");
    test_job_await(t, "started p/c/0");
    hand_over(t, "p/c/", "{'argv':['sh','-c','echo $COLOUR; pwd; echo no >&2; exit 5']}", &client);
    assert_true(test_wait(t, is_closed, &client));
    assert_string_equal(text_of(&client, FRAME_STDOUT), "green\n/tmp\n");
    assert_string_equal(text_of(&client, FRAME_STDERR), "no\n");
    assert_non_null(strstr(text_of(&client, FRAME_END), "\"code\": 5"));
    close(client.fd);
    hand_over(t, "p/c/", "{'argv':['no-such-program']}", &client);
    assert_true(test_wait(t, is_closed, &client));
    assert_non_null(strstr(text_of(&client, FRAME_END), "\"code\": 127"));
    close(client.fd);
    hand_over(t, "p/other/", "{'argv':['true']}", &client);
    assert_true(test_wait(t, is_closed, &client));
    assert_non_null(strstr(text_of(&client, FRAME_END), "\"code\": 137"));
    close(client.fd);
}

static bool has_come(void *data)
{
    struct client *c = data;
    (void)is_closed(c);
    return c->used > 0;
}

static bool is_gone(void *data)
{
    return test_marked_processes(data) == 0;
}

static void nothing_outlives_its_client_or_its_container(void **state)
{
    struct test_job *t = *state;
    struct client first, second;
    char mark[64];
    char open[512];
    (void)snprintf(mark, sizeof mark, "EXEC_TEST=%d", (int)getpid());
    (void)snprintf(open, sizeof open,
                   "{'argv':['env','%s','sh','-c','setsid sleep 1000 & (setsid sleep 1000 &); "
                   "echo on; sleep 1000']}",
                   mark);
    test_job_start(t, "p/c/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "started p/c/0");
    hand_over(t, "p/c/", open, &first);
    assert_true(test_wait(t, has_come, &first));
    assert_true(test_marked_processes(mark) >= 2);
    close(first.fd);
    assert_true(test_wait(t, is_gone, mark));
    assert_false(test_job_has(t, "exited p/c/0"));
    hand_over(t, "p/c/", open, &second);
    assert_true(test_wait(t, has_come, &second));
    assert_int_equal(process_job_signal(t->job, "p/c/0", SIGKILL, NULL), 0);
    test_job_await(t, "exited p/c/0 code=137");
    assert_true(test_wait(t, is_closed, &second));
    assert_string_equal(text_of(&second, FRAME_END), "");
    assert_int_equal(test_marked_processes(mark), 0);
    close(second.fd);
}

static bool more_came(void *data)
{
    struct client *c = data;
    size_t before = c->used;
    return is_closed(c) || c->used > before;
}

static void who_is_not_read_waits_and_loses_nothing(void **state)
{
    struct test_job *t = *state;
    struct client client;
    test_job_start(t, "p/c/0", "{'argv': ['sleep', '1000'], 'cwd': '/'}");
    test_job_await(t, "started p/c/0");
    hand_over(t, "p/c/", "{'argv':['sh','-c','head -c 5000000 /dev/zero; echo end']}", &client);
    size_t in_all = 0;
    bool ended = false;
    while (!ended) { /* one buffer at a time */
        assert_true(test_wait(t, more_came, &client));
        struct frame frame;
        for (long length; (length = frame_read(client.bytes, client.used, &frame)) > 0;) {
            in_all += frame.kind == FRAME_STDOUT ? frame.count : 0;
            ended = ended || frame.kind == FRAME_END;
            client.used -= (size_t)length;
            memmove(client.bytes, client.bytes + length, client.used);
        }
    }
    assert_int_equal(in_all, 5000004);
    close(client.fd);
}

static void standard_input_goes_on_with_the_next_attempt(void **state)
{
    struct test_job *t = *state;
    struct client client;
    int theirs;
    const struct handover_packet packet = {.kind = HANDOVER_STDIN};
    connect_to(&client, &theirs);
    test_job_start(t, "p/c/0",
                   "{'argv': ['sh', '-c', 'read x; echo 1 $x'], 'cwd': '/', 'stdin': true}");
    test_job_start(t, "p/other/0", "{'argv': ['cat'], 'cwd': '/'}");
    test_job_await(t, "exited p/other/0 code=0");
    assert_int_equal(handover_send(t->folder, &packet, &theirs, 1, NULL), 0);
    close(theirs);
    assert_true(test_wait(t, has_come, &client)); /* the input was taken */
    assert_int_equal(send(client.fd, "a\n", 2, 0), 2);
    test_job_await(t, "exited p/c/0 code=0");
    test_job_start(t, "p/c/1",
                   "{'argv': ['sh', '-c', 'read x; echo 2 $x; cat'], 'cwd': '/', 'stdin': true}");
    test_job_await(t, "started p/c/1");
    assert_int_equal(send(client.fd, "b\nrest\n", 7, 0), 7);
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
    test_job_await(t, "exited p/c/1 code=0");
    muster_auto(free) char *log = test_job_log(t, "p/c");
    assert_string_equal(log, "2 b\nrest\n");
    close(client.fd);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_in_the_container_and_says_how_it_ended,
                                        test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(nothing_outlives_its_client_or_its_container,
                                        test_job_set_up, test_job_tear_down),
        cmocka_unit_test_setup_teardown(who_is_not_read_waits_and_loses_nothing, test_job_set_up,
                                        test_job_tear_down),
        cmocka_unit_test_setup_teardown(standard_input_goes_on_with_the_next_attempt,
                                        test_job_set_up, test_job_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return test_job_main(argc, argv, all_tests);
}
