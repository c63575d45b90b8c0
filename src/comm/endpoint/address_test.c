/* Checks addresses of both families, and worlds that form and communicate over IPv6. */
#include "comm/endpoint/address.h"
#include "comm/endpoint/endpoint.h"
#include "comm/system/deadline.h"

#include "base/testing/test.h"
#include "base/testing/test_port.h"
#include "base/testing/test_wait.h"

#include <muster/comm.h>

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const struct endpoint_wait for_ever = {.deadline_ns = INT64_MAX};

enum { WORLD = 3, STRANGERS = 12, QUEUED = 4 };

static void names_and_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        const char *text;
    } numbers[] = {
        {"127.0.0.1", "127.0.0.1:80"}, {"::1", "[::1]:80"}, {"fe80::1%lo", "[fe80::1%lo]:80"}};
    struct address list[ADDRESS_MAX];
    const char *reason = NULL;
    for (size_t i = 0; i < 3; i++) {
        char text[ADDRESS_TEXT_BYTES];
        assert_int_equal(address_resolve(numbers[i].host, htons(80), list, &reason), 1);
        assert_string_equal(address_text(&list[0], text), numbers[i].text);
        assert_int_equal(address_port(&list[0]), htons(80));
    }
    assert_int_equal(list[0].six.sin6_scope_id, if_nametoindex("lo"));
    assert_int_equal(address_resolve("no.such.host.invalid", 0, list, &reason), 0);
    assert_true(strlen(reason) > 0);
}

static void our_address_on_the_way(void **state)
{
    (void)state;
    struct address here;
    assert_true(address_towards("::1", &here));
    assert_int_equal(here.any.sa_family, AF_INET6);
    assert_true(IN6_IS_ADDR_LOOPBACK(&here.six.sin6_addr));
    assert_true(address_towards("127.0.0.1", &here));
    assert_int_equal(here.four.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_false(address_towards(NULL, &here));
}

/* Fills the queue of the listener, so that further connections to it are never completed. */
static struct address fill_queue(int listener, int *ret_fds)
{
    struct address at;
    socklen_t bytes = sizeof at;
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, &at.any, &bytes), 0);
    for (int i = 0; i < QUEUED; i++) {
        ret_fds[i] = address_connect(&at, 0);
    }
    return at;
}

/* Connects a socket to itself. The kernel does this by chance if a process connects to a port of
 * the range that the kernel assigns. */
static int connect_to_itself(int family)
{
    struct address self = {.any = {.sa_family = (sa_family_t)family}};
    socklen_t bytes = address_bytes(&self);
    if (family == AF_INET6) {
        self.six.sin6_addr = in6addr_loopback;
    } else {
        self.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, &self.any, bytes), 0);
    assert_int_equal(getsockname(fd, &self.any, &bytes), 0);
    assert_true(connect(fd, &self.any, bytes) == 0 || errno == EINPROGRESS);
    return fd;
}

static void nobody_listens_to_itself(void **state)
{
    (void)state;
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < 2; i++) {
        int fd = connect_to_itself(families[i]);
        int64_t deadline_ns = deadline_after_ms(test_limit_ms());
        assert_int_equal(address_finish(fd, deadline_ns), -1);
        assert_int_equal(errno, ECONNREFUSED);
        close(fd);
    }
}

static void close_all(const int *fds, int num)
{
    for (int i = 0; i < num; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

static void ignore(int number)
{
    (void)number;
}

static void signals_do_not_end_connecting(void **state)
{
    (void)state;
    struct address at = {.four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    int listener = address_listen(&at), queued[QUEUED];
    at = fill_queue(listener, queued);
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction ignoring = {.sa_handler = ignore}, before;
    assert_int_equal(sigaction(SIGALRM, &ignoring, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int64_t deadline_ns = deadline_now_ns() + 100000000;
    assert_int_equal(address_connect(&at, deadline_ns), -1);
    assert_int_equal(errno, ETIMEDOUT);
    assert_true(deadline_now_ns() >= deadline_ns);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    close_all(queued, QUEUED);
    close(listener);
}

enum { STORM_SIGNALS = 1000 };

static volatile sig_atomic_t signals_left;

static void count_down(int number)
{
    (void)number;
    static const struct itimerval never;
    signals_left--;
    if (signals_left == 0) {
        (void)setitimer(ITIMER_REAL, &never, NULL);
    }
}

/* The leader of this rank does not come, and signals come more often than the rank looks at the
 * clock. */
static void signals_do_not_put_off_a_deadline(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *leader, *follower;
    struct muster_member members[2];
    struct muster_comm *comm;
    assert_int_equal(muster_endpoint_open("127.0.0.1", &leader, &err), 0);
    assert_int_equal(muster_endpoint_open("127.0.0.1", &follower, &err), 0);
    muster_endpoint_member(leader, &members[0]);
    muster_endpoint_member(follower, &members[1]);
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction counting = {.sa_handler = count_down}, before;
    signals_left = STORM_SIGNALS;
    assert_int_equal(sigaction(SIGALRM, &counting, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int r = muster_comm_form(follower, members, 2, 1, 1, 100, NULL, &comm, &err);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(r, MUSTER_ETIMEDOUT);
    assert_int_equal(err.rank, 0);
    assert_true(signals_left > 0);
    muster_endpoint_close(leader);
    muster_endpoint_close(follower);
}

static int has_had_enough(void *context)
{
    return *(int *)context;
}

static void the_user_ends_connecting(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *lower, *higher;
    struct muster_member members[2];
    struct muster_comm *comm;
    int queued[QUEUED], yes = 1;
    assert_int_equal(endpoint_open("127.0.0.1", NULL, "tcp", &lower, &err), 0);
    assert_int_equal(endpoint_open("127.0.0.1", NULL, "tcp", &higher, &err), 0);
    muster_endpoint_member(lower, &members[0]);
    muster_endpoint_member(higher, &members[1]);
    (void)fill_queue(lower->tcp_fd, queued);
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    options.interrupted = has_had_enough;
    options.interrupted_context = &yes;
    assert_int_equal(muster_comm_form(higher, members, 2, 1, 1, INT64_MAX, &options, &comm, &err),
                     MUSTER_EINTERRUPTED);
    close_all(queued, QUEUED);
    muster_endpoint_close(lower);
    muster_endpoint_close(higher);
}

/* ---- worlds ---- */

struct rank {
    struct muster_comm_options options;
    _Atomic int patience; /* how many times it still waits for 20 ms */
    pthread_t thread;
    int result;
    struct muster_err err;
};

static int has_lost_patience(void *context)
{
    return atomic_fetch_sub((_Atomic int *)context, 1) <= 0;
}

static void *be_rank(void *context)
{
    struct rank *r = context;
    struct muster_comm *comm;
    r->result = muster_comm_create(&r->options, &comm, &r->err);
    if (r->result == 0) {
        int32_t sum = r->options.rank;
        r->result = muster_all_reduce(comm, &sum, &sum, 1, MUSTER_I32, MUSTER_SUM, &r->err);
        r->result = r->result < 0 ? r->result : sum - (WORLD - 1) * WORLD / 2;
        muster_comm_free(comm);
    }
    return NULL;
}

/* Connects strangers; half of them send the beginning of something that is not a greeting. */
static void visit_as_strangers(int port, int *ret_fds)
{
    struct address at = {.four = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    for (int i = 0; i < STRANGERS; i++) {
        int64_t end = 0; /* rank 0 may not listen yet */
        while ((ret_fds[i] = address_connect(&at, INT64_MAX)) < 0) {
            assert_true(test_turn(&end));
        }
        assert_true(i % 2 || send(ret_fds[i], "GET /", 5, 0) == 5);
    }
}

static void start_rank(struct rank *ret, int rank, const char *host, int port, int patience)
{
    *ret = (struct rank){.result = -1, .patience = patience, .err = MUSTER_ERR_INIT};
    ret->options = (struct muster_comm_options)MUSTER_COMM_OPTIONS_INIT;
    ret->options.rank = rank;
    ret->options.size = WORLD;
    ret->options.host = host;
    ret->options.port = port;
    ret->options.transport = "tcp";
    ret->options.timeout_ms = test_limit_ms();
    ret->options.interrupted = has_lost_patience;
    ret->options.interrupted_context = &ret->patience;
    pthread_create(&ret->thread, NULL, be_rank, ret);
}

static void expect_all_well(struct rank *ranks)
{
    for (int r = 0; r < WORLD; r++) {
        pthread_join(ranks[r].thread, NULL);
        if (ranks[r].result != 0) {
            fail_msg("%s, rank %d: %d %s", ranks[r].options.host, r, ranks[r].result,
                     ranks[r].err.text);
        }
    }
}

static void run_world(const char *host)
{
    struct rank ranks[WORLD];
    int port = test_held_port();
    for (int r = 0; r < WORLD; r++) {
        start_rank(&ranks[r], r, host, port, INT_MAX);
    }
    expect_all_well(ranks);
}

/* A name with several addresses works if any of them answers. */
static void worlds_meet_over_both_families(void **state)
{
    (void)state;
    run_world("127.0.0.1");
    run_world("::1");
    run_world("localhost");
}

static void strangers_at_the_port_hold_nobody_up(void **state)
{
    (void)state;
    struct rank ranks[WORLD];
    int port = test_held_port(), strangers[STRANGERS];
    start_rank(&ranks[0], 0, "127.0.0.1", port, INT_MAX);
    visit_as_strangers(port, strangers);
    for (int r = 1; r < WORLD; r++) {
        start_rank(&ranks[r], r, "127.0.0.1", port, INT_MAX);
    }
    expect_all_well(ranks);
    close_all(strangers, STRANGERS);
}

/* Rank 1 leaves while it waits at the port for rank 2, and returns when rank 2 has arrived. */
static void who_left_the_port_may_come_again(void **state)
{
    (void)state;
    struct rank ranks[WORLD], early;
    int port = test_held_port();
    start_rank(&ranks[0], 0, "127.0.0.1", port, INT_MAX);
    start_rank(&early, 1, "127.0.0.1", port, 10);
    pthread_join(early.thread, NULL);
    assert_int_equal(early.result, MUSTER_EINTERRUPTED);
    start_rank(&ranks[2], 2, "127.0.0.1", port, INT_MAX);
    for (int64_t end = 0; atomic_load(&ranks[2].patience) > INT_MAX - 3;) {
        assert_true(test_turn(&end));
    }
    start_rank(&ranks[1], 1, "127.0.0.1", port, INT_MAX);
    expect_all_well(ranks);
}

static void what_the_environment_says_wrongly_is_named(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comm;
    assert_int_equal(setenv("RANK", "", 1) | setenv("OMPI_COMM_WORLD_RANK", "second", 1), 0);
    assert_int_equal(muster_comm_from_env(&comm, &err), MUSTER_ECONFIG);
    assert_non_null(strstr(err.text, "OMPI_COMM_WORLD_RANK is second"));
    assert_int_equal(unsetenv("RANK") | unsetenv("OMPI_COMM_WORLD_RANK"), 0);
}

static void endpoints_at_ipv6(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct muster_member bytes;
    assert_int_equal(muster_endpoint_open("::1", &endpoint, &err), 0);
    muster_endpoint_member(endpoint, &bytes);
    struct member member = endpoint_member(&bytes);
    assert_memory_equal(member.address, &in6addr_loopback, sizeof member.address);
    struct hello sent = {.magic = HELLO_MAGIC, .generation = 7, .digest = 8}, got;
    int fd = endpoint_connect(&member, false, &sent, &for_ever, &err);
    assert_true(fd >= 0);
    int accepted = arrivals_next(&endpoint->arrivals, 7, 8, test_limit_ms(), &got, &err);
    assert_true(accepted >= 0);
    close(accepted);
    close(fd);
    muster_endpoint_close(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers),
        cmocka_unit_test(our_address_on_the_way),
        cmocka_unit_test(nobody_listens_to_itself),
        cmocka_unit_test(signals_do_not_end_connecting),
        cmocka_unit_test(signals_do_not_put_off_a_deadline),
        cmocka_unit_test(the_user_ends_connecting),
        cmocka_unit_test(worlds_meet_over_both_families),
        cmocka_unit_test(strangers_at_the_port_hold_nobody_up),
        cmocka_unit_test(who_left_the_port_may_come_again),
        cmocka_unit_test(what_the_environment_says_wrongly_is_named),
        cmocka_unit_test(endpoints_at_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
