/* TCP may deliver the header of a frame in two pieces. Between them nothing can be said of the call
 * that it belongs to: half of it is of the call before. */
#include "world.h"

#include "base/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { HEADER_BYTES = 48, FIRST_BYTES = 36, SILENCES = 3000, MOST_FDS = 1024 };

/* Linked in the place of recvmsg: of a whole header only the first bytes come, the others after a
 * while that is long enough for everything that is looked at now and then. */
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    static _Atomic int silences[MOST_FDS];
    if (fd >= MOST_FDS) {
        return __real_recvmsg(fd, message, flags);
    }
    if (silences[fd] > 0) {
        silences[fd]--;
        errno = EAGAIN;
        return -1;
    }
    if (message->msg_iovlen > 0 && message->msg_iov[0].iov_len == HEADER_BYTES) {
        struct iovec first = {message->msg_iov[0].iov_base, FIRST_BYTES};
        struct msghdr torn = {.msg_iov = &first, .msg_iovlen = 1};
        ssize_t n = __real_recvmsg(fd, &torn, flags);
        silences[fd] = n > 0 ? SILENCES : 0;
        return n;
    }
    return __real_recvmsg(fd, message, flags);
}

static int reduces_different_counts(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = {0};
    float data[400];
    for (size_t count = 100; count <= 400; count += 100) {
        for (size_t i = 0; i < count; i++) {
            data[i] = (float)i;
        }
        int rc = muster_all_reduce(comm, data, data, count, MUSTER_F32, MUSTER_SUM, &err);
        WORLD_CHECK(rc == 0, "%zu elements: %s", count, err.text);
        WORLD_CHECK(data[99] == 198, "%g", (double)data[99]);
    }
    return 0;
}

static void half_a_header_says_nothing(void **state)
{
    (void)state;
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = "tcp"};
    assert_int_equal(world_run(&w, reduces_different_counts, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_header_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
