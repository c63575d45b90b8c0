/* TCP may deliver the header of a frame in two pieces. Before the second piece arrives, the call of
 * the header is not known, because half of the header is still that of the call before. */
#include "world.h"

#include "base/testing/test.h"
#include "comm/tcp/link.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { CALLS = 4, SILENCES = 3000, MOST_FDS = 1024 };

/* The number of a new call, and half of its shape. */
enum { FIRST_BYTES = offsetof(struct frame_header, shape) + 4 };

/* Counts of both ranks: headers of which only the first bytes had come, and looks at these
 * halves. */
static struct {
    _Atomic int torn, looked;
} * shared;

/* Linked instead of recvmsg: only the first bytes of a whole header come at once. The others come
 * after a time in which everything that is checked periodically is checked. */
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
        atomic_fetch_add(&shared->looked, 1);
        errno = EAGAIN;
        return -1;
    }
    if (message->msg_iovlen > 0 && message->msg_iov[0].iov_len == sizeof(struct frame_header)) {
        struct iovec first = {message->msg_iov[0].iov_base, FIRST_BYTES};
        struct msghdr torn = {.msg_iov = &first, .msg_iovlen = 1};
        ssize_t n = __real_recvmsg(fd, &torn, flags);
        silences[fd] = n > 0 ? SILENCES : 0;
        atomic_fetch_add(&shared->torn, n == FIRST_BYTES);
        return n;
    }
    return __real_recvmsg(fd, message, flags);
}

static int reduces_different_counts(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    float data[CALLS * 100];
    for (size_t count = 100; count <= CALLS * 100; count += 100) {
        for (size_t i = 0; i < count; i++) {
            data[i] = (float)i;
        }
        int r = muster_all_reduce(comm, data, data, count, MUSTER_F32, MUSTER_SUM, &err);
        WORLD_CHECK(r == 0, "%zu elements: %s", count, err.text);
        WORLD_CHECK(data[99] == 198, "%g", (double)data[99]);
    }
    return 0;
}

static void half_a_header_says_nothing(void **state)
{
    (void)state;
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = "tcp"};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(world_run(&w, reduces_different_counts, NULL), 0);
    assert_true(shared->torn >= 2 * CALLS); /* every header of both ranks was torn */
    assert_true(shared->looked >= 2 * CALLS * SILENCES);
    (void)munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_header_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
