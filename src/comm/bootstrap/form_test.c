/* Checks which processes get the shared memory of a host, and which memory is accepted as a
 * segment. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include "comm/endpoint/address.h"
#include "comm/endpoint/endpoint.h"
#include "comm/shm/segment.h"
#include "core/hash.h"

#include <muster/comm.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct endpoint_wait for_ever = {.deadline_ns = INT64_MAX};

enum { GENERATION = 7, STRANGER = 12345 };

/* Opens two endpoints, and lists both; rank 1 never comes. */
static void open_two(struct muster_endpoint **ret, struct muster_member *ret_members)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_endpoint_open("127.0.0.1", &ret[i], NULL), 0);
        muster_endpoint_member(ret[i], &ret_members[i]);
    }
}

/* Returns the hello that rank 1 would send; everything in it can be read in /proc. */
static struct hello hello_of_rank_1(const struct muster_member *members)
{
    return (struct hello){.magic = HELLO_MAGIC,
                          .index = 1,
                          .generation = GENERATION,
                          .digest = hash_bytes(HASH_START, members, 2 * sizeof *members)};
}

static bool is_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&p, 1, test_limit_ms()) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

/* Runs in a child: sends rank 1's hello. Its exit status is 0 if the connection was closed without
 * a byte. */
static void say_hello(const struct muster_member *members, bool local)
{
    struct member leader = endpoint_member(&members[0]);
    struct hello hello = hello_of_rank_1(members);
    test_alarm();
    int fd = endpoint_connect(&leader, local, &hello, &for_ever, NULL);
    _exit(fd < 0 ? 2 : is_ended(fd) ? 0 : 1);
}

static int status_of(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* A process that sends a hello, and how it ended. */
struct stranger {
    pid_t pid;
    int status;
    bool has_ended;
};

static int interrupt_when_ended(void *context)
{
    struct stranger *s = context;
    s->has_ended = s->has_ended || waitpid(s->pid, &s->status, WNOHANG) == s->pid;
    return s->has_ended;
}

static void a_stranger_gets_nothing(bool local, uid_t user)
{
    struct muster_member members[2];
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoints[2];
    open_two(endpoints, members);
    struct stranger stranger = {.pid = fork(), .status = -1};
    if (stranger.pid == 0) {
        if (user != geteuid() && setuid(user) < 0) {
            _exit(3);
        }
        say_hello(members, local);
    }
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    options.interrupted = interrupt_when_ended;
    options.interrupted_context = &stranger;
    int r = muster_comm_form(endpoints[0], members, 2, 0, GENERATION, test_limit_ms(), &options,
                             &comm, &err);
    assert_int_equal(r, MUSTER_EINTERRUPTED);
    assert_int_equal(stranger.status, 0);
    r = muster_comm_form(endpoints[0], members, 2, 0, GENERATION, 1, NULL, &comm, &err);
    assert_int_equal(r, MUSTER_ETIMEDOUT);
    assert_int_equal(err.rank, 1); /* no process has taken its place */
    muster_endpoint_close(endpoints[0]);
    muster_endpoint_close(endpoints[1]);
}

static void another_user_gets_no_shared_memory(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* the test needs two users */
    }
    a_stranger_gets_nothing(true, STRANGER);
}

/* A process that connects through the network could not be given the segment, so it does not count
 * as a rank of this host. */
static void who_comes_by_network_is_no_rank_of_this_host(void **state)
{
    (void)state;
    a_stranger_gets_nothing(false, geteuid());
}

/* Rank 0 has died, and a process of another user listens under its name. */
static void another_user_s_memory_is_not_taken(void **state)
{
    (void)state;
    struct muster_member members[2];
    struct muster_endpoint *second;
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    int told[2];
    if (geteuid() != 0) {
        skip(); /* the test needs two users */
    }
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        struct muster_endpoint *first;
        struct muster_member self;
        if (setuid(STRANGER) < 0 || muster_endpoint_open("127.0.0.1", &first, NULL) < 0) {
            _exit(3);
        }
        muster_endpoint_member(first, &self);
        _exit(write(told[1], &self, sizeof self) != sizeof self || pause() == 0);
    }
    assert_int_equal(read(told[0], &members[0], sizeof members[0]), sizeof members[0]);
    assert_int_equal(muster_endpoint_open("127.0.0.1", &second, NULL), 0);
    muster_endpoint_member(second, &members[1]);
    int r = muster_comm_form(second, members, 2, 1, GENERATION, test_limit_ms(), NULL, &comm, &err);
    assert_int_equal(kill(child, SIGKILL), 0);
    (void)status_of(child);
    assert_int_equal(r, MUSTER_EPERM);
    assert_non_null(strstr(err.text, "MUSTER_TRANSPORT=tcp"));
    assert_int_equal(err.rank, 0);
    muster_endpoint_close(second);
    close(told[0]);
    close(told[1]);
}

/* ---- the segment itself ---- */

static int open_copy(int fd, int size, struct muster_err *err)
{
    struct segment s;
    int r = segment_open(fd, size, &s, err);
    if (r == 0) {
        segment_close(&s);
    }
    return r;
}

/* If it were mapped, the first access beyond its end would end this process by SIGBUS. */
static void a_segment_of_another_size_is_refused(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct segment two;
    assert_int_equal(segment_create(2, &two, &err), 0);
    assert_int_equal(open_copy(dup(two.fd), 2, &err), 0);
    assert_int_equal(open_copy(dup(two.fd), 4, &err), MUSTER_EPROTO);
    assert_int_equal(open_copy(dup(two.fd), 1, &err), MUSTER_EPROTO);
    /* Nor may it become smaller later. */
    assert_int_equal(ftruncate(two.fd, SEGMENT_PAGE), -1);
    assert_int_equal(errno, EPERM);
    segment_close(&two);
}

static int memory_of(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void what_is_no_segment_of_this_version_is_refused(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct segment two;
    assert_int_equal(segment_create(2, &two, &err), 0);
    assert_int_equal(open_copy(memory_of(two.bytes, F_SEAL_SHRINK), 2, &err), MUSTER_EPROTO);
    assert_non_null(strstr(err.text, "version"));
    int unsealed = memory_of(two.bytes, 0);
    assert_int_equal(pwrite(unsealed, two.base, SEGMENT_PAGE, 0), SEGMENT_PAGE);
    assert_int_equal(open_copy(unsealed, 2, &err), MUSTER_EPROTO);
    segment_close(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_user_gets_no_shared_memory),
        cmocka_unit_test(who_comes_by_network_is_no_rank_of_this_host),
        cmocka_unit_test(another_user_s_memory_is_not_taken),
        cmocka_unit_test(a_segment_of_another_size_is_refused),
        cmocka_unit_test(what_is_no_segment_of_this_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
