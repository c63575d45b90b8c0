/* On one rank the k-th allocation of a call fails, for every k: the other ranks are told, although
 * that rank lives on. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <muster/comm.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ALLOCATIONS = 200, PARTS = 3 };
enum { HAD_MEMORY = 0, LACKED_MEMORY = 10, BROKEN = 11 };

void *__real_calloc(size_t num, size_t size_bytes);
void *__real_malloc(size_t size_bytes);
void *__wrap_calloc(size_t num, size_t size_bytes);
void *__wrap_malloc(size_t size_bytes);

static _Thread_local int left = -1; /* allocations that still succeed; negative: all do */

static bool fails(void)
{
    if (left > 0) {
        left--;
    }
    return left == 0;
}

void *__wrap_calloc(size_t num, size_t size_bytes)
{
    errno = ENOMEM;
    return fails() ? NULL : __real_calloc(num, size_bytes);
}

void *__wrap_malloc(size_t size_bytes)
{
    errno = ENOMEM;
    return fails() ? NULL : __real_malloc(size_bytes);
}

/* Both ranks stay until the other one has returned, because a death would be noticed, too. */
static struct shared {
    struct muster_member members[2];
    pthread_barrier_t both;
} * shared;

static int split(struct muster_comm *comm)
{
    struct muster_comm *part = NULL;
    int rc = muster_comm_split(comm, 0, 0, &part, NULL);
    muster_comm_free(part);
    return rc;
}

static int sum_parts(struct muster_comm *comm)
{
    static const float parts[PARTS] = {1, 2, 3};
    float sum = 0;
    int rc = muster_all_reduce_parts(comm, parts, (size_t)muster_comm_rank(comm) * PARTS, PARTS,
                                     PARTS + PARTS, &sum, 1, MUSTER_F32, MUSTER_SUM, NULL);
    return rc < 0 || sum == 12 ? rc : MUSTER_EINTERNAL;
}

/* Runs a rank; from the num-th allocation of the call on, allocations fail. */
static int be_rank(int rank, int (*call)(struct muster_comm *comm), int num)
{
    struct muster_endpoint *endpoint;
    struct muster_comm *comm;
    test_alarm();
    if (muster_endpoint_open("127.0.0.1", &endpoint, NULL) < 0) {
        return BROKEN;
    }
    muster_endpoint_member(endpoint, &shared->members[rank]);
    (void)pthread_barrier_wait(&shared->both);
    if (muster_comm_form(endpoint, shared->members, 2, rank, 1, test_limit_ms(), NULL, &comm,
                         NULL) < 0) {
        return BROKEN;
    }
    left = rank == 0 ? num : -1;
    int rc = call(comm);
    bool lacked = left == 0;
    left = -1;
    (void)pthread_barrier_wait(&shared->both);
    muster_comm_free(comm);
    muster_endpoint_close(endpoint);
    return rank == 0 && lacked != (rc < 0) ? BROKEN : rc < 0 ? LACKED_MEMORY : HAD_MEMORY;
}

/* Waits until both ranks have ended, and returns their codes. */
static void run(int (*call)(struct muster_comm *comm), int num, int *ret_codes)
{
    pid_t pids[2];
    pthread_barrierattr_t between_processes;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->both, &between_processes, 2);
    (void)fflush(NULL);
    for (int r = 0; r < 2; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            _exit(be_rank(r, call, num));
        }
    }
    for (int r = 0; r < 2; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (!WIFEXITED(status)) {
            fail_msg("allocation %d: rank %d ended with status %d", num, r, status);
        }
        ret_codes[r] = WEXITSTATUS(status);
    }
}

static void whoever_lacks_memory_says_so(int (*call)(struct muster_comm *comm))
{
    int codes[2] = {LACKED_MEMORY, LACKED_MEMORY}, num = 0;
    while (codes[0] == LACKED_MEMORY && ++num < MOST_ALLOCATIONS) {
        run(call, num, codes);
        if (codes[0] != codes[1] || codes[0] == BROKEN) {
            fail_msg("allocation %d: the ranks end with %d and %d", num, codes[0], codes[1]);
        }
    }
    assert_int_equal(codes[0], HAD_MEMORY);
    assert_true(num > 3); /* the call has made allocations */
}

static void split_without_memory(void **state)
{
    (void)setenv("MUSTER_TRANSPORT", *state, 1);
    whoever_lacks_memory_says_so(split);
}

static void parts_without_memory(void **state)
{
    (void)setenv("MUSTER_TRANSPORT", *state, 1);
    whoever_lacks_memory_says_so(sum_parts);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char here[] = "auto", between[] = "tcp";
    const struct CMUnitTest tests[] = {
        {"parts_without_memory, one host", parts_without_memory, NULL, NULL, here},
        {"parts_without_memory, between hosts", parts_without_memory, NULL, NULL, between},
        {"split_without_memory, one host", split_without_memory, NULL, NULL, here},
        {"split_without_memory, between hosts", split_without_memory, NULL, NULL, between},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
