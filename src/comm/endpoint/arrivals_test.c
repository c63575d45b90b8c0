/* Checks the connections that arrive at an endpoint, with a hello, with half of one, and
 * without. */
#include "comm/endpoint/arrivals.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "comm/endpoint/address.h"
#include "comm/endpoint/endpoint.h"

#include <muster/comm.h>

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct endpoint_wait for_ever = {.deadline_ns = INT64_MAX};

static struct member open_endpoint(struct muster_endpoint **ret)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_member bytes;
    assert_int_equal(muster_endpoint_open("127.0.0.1", ret, &err), 0);
    muster_endpoint_member(*ret, &bytes);
    return endpoint_member(&bytes);
}

static int connect_silently(const struct member *member)
{
    struct address at = {.four = {.sin_family = AF_INET, .sin_port = member->port}};
    memcpy(&at.four.sin_addr, member->address + 12, sizeof at.four.sin_addr);
    int fd = address_connect(&at, INT64_MAX);
    assert_true(fd >= 0);
    return fd;
}

/* One stranger sends nothing and another half a hello; neither delays other connections. */
static void strangers_are_not_waited_for(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct member member = open_endpoint(&endpoint);
    struct hello sent = {.magic = HELLO_MAGIC, .generation = 7, .digest = 8}, got;
    int silent = connect_silently(&member), half = connect_silently(&member);
    assert_int_equal(send(half, &sent, sizeof sent / 2, 0), sizeof sent / 2);
    int fd = endpoint_connect(&member, false, &sent, &for_ever, &err);
    assert_true(fd >= 0);
    int accepted, tries = 0;
    do {
        accepted = arrivals_next(&endpoint->arrivals, 7, 8, test_limit_ms(), &got, &err);
    } while (accepted == MUSTER_EAGAIN && ++tries < 5);
    assert_true(accepted >= 0);
    assert_int_equal(send(half, (char *)&sent + sizeof sent / 2, sizeof sent / 2, 0),
                     sizeof sent / 2);
    int late = arrivals_next(&endpoint->arrivals, 7, 8, test_limit_ms(), &got, &err);
    assert_true(late >= 0);
    for (int i = 0, of[] = {silent, half, fd, accepted, late}; i < 5; i++) {
        close(of[i]);
    }
    muster_endpoint_close(endpoint);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* A thread that sleeps on the descriptor between two looks misses no connection, even if two send
 * their hello at once. */
static void two_that_speak_at_once_are_both_found(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct member member = open_endpoint(&endpoint);
    struct hello sent = {.magic = HELLO_MAGIC, .generation = 7, .digest = 8}, got;
    struct arrivals *arrivals = &endpoint->arrivals;
    int speakers[2], accepted[2];
    for (int i = 0; i < 2; i++) {
        speakers[i] = connect_silently(&member);
        assert_int_equal(arrivals_next(arrivals, 7, 8, test_limit_ms(), &got, &err), MUSTER_EAGAIN);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send(speakers[i], &sent, sizeof sent, 0), sizeof sent);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(is_readable(arrivals->epoll_fd));
        accepted[i] = arrivals_next(arrivals, 7, 8, 0, &got, &err);
        assert_true(accepted[i] >= 0);
    }
    assert_false(is_readable(arrivals->epoll_fd));
    for (int i = 0; i < 2; i++) {
        close(speakers[i]);
        close(accepted[i]);
    }
    muster_endpoint_close(endpoint);
}

/* Another process still has the connection open, as a child made by a bare clone() would. */
static void who_left_rings_no_more(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct member member = open_endpoint(&endpoint);
    struct arrivals *arrivals = &endpoint->arrivals;
    struct hello got;
    int silent = connect_silently(&member);
    assert_int_equal(arrivals_next(arrivals, 7, 8, test_limit_ms(), &got, &err), MUSTER_EAGAIN);
    int copy = dup(arrivals->of[0].fd);
    assert_true(copy >= 0);
    assert_int_equal(shutdown(silent, SHUT_RDWR), 0);
    assert_int_equal(arrivals_next(arrivals, 7, 8, test_limit_ms(), &got, &err), MUSTER_EAGAIN);
    assert_int_equal(arrivals->num, 0);
    assert_false(is_readable(arrivals->epoll_fd));
    close(copy);
    close(silent);
    muster_endpoint_close(endpoint);
}

/* A connection whose process gave up is not returned, and if too many connections arrive, silent
 * ones are closed first. */
static void arrivals_are_bounded(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct member member = open_endpoint(&endpoint);
    struct hello sent = {.magic = HELLO_MAGIC, .generation = 7, .digest = 8}, got;
    int gone = endpoint_connect(&member, true, &sent, &for_ever, &err);
    assert_true(gone >= 0);
    close(gone);
    assert_int_equal(arrivals_next(&endpoint->arrivals, 7, 8, test_limit_ms(), &got, &err),
                     MUSTER_EAGAIN);
    sent.generation = 6;
    for (int i = 0; i < ARRIVALS_MAX + 10; i++) {
        int fd = endpoint_connect(&member, true, &sent, &for_ever, &err);
        assert_true(fd >= 0);
        assert_int_equal(arrivals_next(&endpoint->arrivals, 7, 8, test_limit_ms(), &got, &err),
                         MUSTER_EAGAIN);
        close(fd);
    }
    assert_int_equal(endpoint->arrivals.num, ARRIVALS_MAX);
    muster_endpoint_close(endpoint);
}

static void no_descriptor_is_left_for_what_was_passed(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    int pair[2];
    struct rlimit before, none;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(endpoint_pass(pair[0], pair[0], &err), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int fd = endpoint_receive(pair[1], &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fd, MUSTER_EOS);
    assert_non_null(strstr(err.text, "ulimit"));
    close(pair[0]);
    close(pair[1]);
}

/* A forked child does not answer for its parent, and cannot form a communicator in its place. */
static void a_forked_child_listens_to_nobody(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct muster_member bytes;
    struct muster_comm *comm;
    struct member member = open_endpoint(&endpoint);
    muster_endpoint_member(endpoint, &bytes);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        test_alarm();
        int r = muster_comm_form(endpoint, &bytes, 1, 0, 1, test_limit_ms(), NULL, &comm, &err);
        muster_endpoint_close(endpoint);
        bool told = write(pipes[1], &r, sizeof r) == sizeof r;
        (void)(told && pause());
        _exit(0);
    }
    int r = 0;
    assert_int_equal(read(pipes[0], &r, sizeof r), sizeof r);
    assert_int_equal(r, MUSTER_EINVAL);
    muster_endpoint_close(endpoint);
    struct hello sent = {.magic = HELLO_MAGIC};
    for (int local = 0; local < 2; local++) {
        assert_int_equal(endpoint_connect(&member, local, &sent, &for_ever, &err), MUSTER_EUNAVAIL);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_not_waited_for),
        cmocka_unit_test(two_that_speak_at_once_are_both_found),
        cmocka_unit_test(who_left_rings_no_more),
        cmocka_unit_test(arrivals_are_bounded),
        cmocka_unit_test(no_descriptor_is_left_for_what_was_passed),
        cmocka_unit_test(a_forked_child_listens_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
