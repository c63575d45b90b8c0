/* Counts over 2 GiB: every byte arrives. Takes 5 GiB of memory. */
#include "world.h"

#include "base/test.h"

#include <stdint.h>
#include <sys/mman.h>

static const size_t huge = ((size_t)1 << 31) + 4099; /* bytes */

static uint8_t value(size_t i, int rank)
{
    return (uint8_t)(i * 7 + i / 65521 + (size_t)rank * 31);
}

static void fill(uint8_t *buffer, size_t from, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) {
        buffer[i] = value(from + i, rank);
    }
}

static int check(const char *what, const uint8_t *buffer, size_t from, size_t count, int rank,
                 int ranks)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t want =
            ranks == 1 ? value(from + i, rank) : (uint8_t)(value(from + i, 0) + value(from + i, 1));
        WORLD_CHECK(buffer[i] == want, "%s: byte %zu is %u, not %u", what, from + i, buffer[i],
                    want);
    }
    return 0;
}

static int large_counts(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = {0};
    int rank = muster_comm_rank(comm);
    uint8_t *b = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WORLD_CHECK(b != MAP_FAILED, "no memory");
    fill(b, 0, huge, rank);
    WORLD_CHECK(muster_all_reduce(comm, b, b, huge, MUSTER_U8, MUSTER_SUM, &err) == 0, "%s",
                err.text);
    int failed = check("all_reduce", b, 0, huge, 0, 2);
    size_t half = huge / 2, mine = (size_t)rank * half;
    fill(b + mine, mine, half, rank);
    WORLD_CHECK(muster_all_gather(comm, b + mine, b, half, MUSTER_U8, &err) == 0, "%s", err.text);
    failed = failed || check("all_gather", b, 0, half, 0, 1) ||
             check("all_gather", b + half, half, half, 1, 1);
    fill(b, 0, rank == 0 ? huge : 0, rank);
    int rc = rank == 0 ? muster_send(comm, b, huge, MUSTER_U8, 1, 0, &err)
                       : muster_recv(comm, b, huge, MUSTER_U8, 0, 0, NULL, &err);
    WORLD_CHECK(rc == 0, "%s", err.text);
    failed = failed || (rank == 1 && check("recv", b, 0, huge, 0, 1));
    (void)munmap(b, huge);
    return failed;
}

static void every_byte_arrives(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state, .timeout_ms = 90000};
    assert_int_equal(world_run(&w, large_counts, NULL), 0);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_byte_arrives, transport)};
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
