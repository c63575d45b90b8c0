/* A call that waits for long prints once for which rank it waits, and goes on. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include "conformance/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Within this time a heartbeat from another host, which names rank 1's last call, must arrive. */
#define NOTICE_MS "800"

static char path[] = "/tmp/muster-notice-XXXXXX";

static int listen_to_rank_0(int rank, void *context)
{
    (void)context;
    (void)setenv("MUSTER_NOTICE_MS", NOTICE_MS, 1);
    int fd = rank == 0 ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : STDERR_FILENO;
    return dup2(fd, STDERR_FILENO) < 0;
}

/* Reads what rank 0 has printed so far. */
static void read_said(char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(ret, 1, size - 1, file) : 0;
    ret[length] = '\0';
    if (file) {
        (void)fclose(file);
    }
}

static int comes_late(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    char said[1000] = "";
    float one = 1;
    int r = muster_all_reduce(comm, &one, &one, 1, MUSTER_F32, MUSTER_SUM, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    for (int64_t end = 0; muster_comm_rank(comm) == 1 && !strchr(said, '\n');) {
        WORLD_CHECK(test_turn(&end), "nothing was said");
        read_said(said, sizeof said);
    }
    r = muster_barrier(comm, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    return 0;
}

static void says_for_whom(void **state)
{
    char said[1000];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct world w = {
        .kind = WORLD_PROCESSES, .size = 2, .transport = *state, .enter = listen_to_rank_0};
    int failed = world_run(&w, comes_late, NULL);
    read_said(said, sizeof said);
    (void)unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    assert_int_equal(failed, 0);
    assert_ptr_equal(said, strstr(said, "muster: rank 0 has waited for "));
    assert_non_null(strstr(said, " s in barrier"));
    assert_non_null(
        strstr(said, ": rank 1 is in no call since call 1, all_reduce of 1 f32 by sum"));
    assert_true(strcmp(*state, "tcp") == 0 || strstr(said, "sum (process "));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(says_for_whom, "shm"),
        cmocka_unit_test_prestate(says_for_whom, "tcp"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
