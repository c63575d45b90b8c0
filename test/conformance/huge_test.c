/* Counts over 2 GiB: every byte arrives. Takes 5 GiB of memory. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <stdint.h>
#include <sys/mman.h>

enum { BLOCK = 65536, NOTHING_MORE = -1 };

static const size_t huge = ((size_t)1 << 31) + 4098; /* in bytes */

/* Makes block number `block`, of 64 KiB, of a seed's bytes, which show where they belong. */
static void make_block(uint8_t *ret, size_t block, int seed)
{
    unsigned start = (unsigned)(block + block / 256 * 3) + (unsigned)seed * 31;
    for (unsigned i = 0; i < BLOCK; i++) {
        ret[i] = (uint8_t)(start + i * 7 + (i >> 8) * 5);
    }
}

static size_t length_of(size_t block, size_t count)
{
    size_t left = count - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

static void fill(uint8_t *buffer, size_t count, int seed)
{
    uint8_t bytes[BLOCK];
    for (size_t block = 0; block * BLOCK < count; block++) {
        make_block(bytes, block, seed);
        memcpy(buffer + block * BLOCK, bytes, length_of(block, count));
    }
}

/* Checks that the bytes are those of a seed, or the sums of two seeds'. */
static int check(const char *what, const uint8_t *buffer, size_t count, int seed, int other)
{
    uint8_t want[BLOCK], more[BLOCK] = {0};
    for (size_t block = 0; block * BLOCK < count; block++) {
        const uint8_t *got = buffer + block * BLOCK;
        make_block(want, block, seed);
        if (other != NOTHING_MORE) {
            make_block(more, block, other);
        }
        for (size_t i = 0; i < BLOCK; i++) {
            want[i] = (uint8_t)(want[i] + more[i]);
        }
        WORLD_CHECK(memcmp(got, want, length_of(block, count)) == 0,
                    "%s: not all bytes from %zu on", what, block * BLOCK);
    }
    return 0;
}

static int reductions(struct muster_comm *comm, uint8_t *b, int rank)
{
    struct muster_err err = MUSTER_ERR_INIT;
    size_t half = huge / 2;
    fill(b, huge, rank);
    int r = muster_all_reduce(comm, b, b, huge, MUSTER_U8, MUSTER_SUM, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    int failed = check("all_reduce", b, huge, 0, 1);
    fill(b, half, rank);
    fill(b + half, half, 2 + rank);
    uint8_t *mine = b + (size_t)rank * half;
    r = muster_reduce_scatter(comm, b, mine, half, MUSTER_U8, MUSTER_SUM, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    return failed || check("reduce_scatter", mine, half, 2 * rank, 2 * rank + 1);
}

static int copies(struct muster_comm *comm, uint8_t *b, int rank)
{
    struct muster_err err = MUSTER_ERR_INIT;
    size_t half = huge / 2;
    uint8_t *mine = b + (size_t)rank * half;
    fill(mine, half, 4 + rank);
    int r = muster_all_gather(comm, mine, b, half, MUSTER_U8, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    int failed = check("all_gather", b, half, 4, NOTHING_MORE) ||
                 check("all_gather", b + half, half, 5, NOTHING_MORE);
    if (rank == 0) {
        fill(b, huge, 6);
    }
    r = rank == 0 ? muster_send(comm, b, huge, MUSTER_U8, 1, 0, &err)
                  : muster_recv(comm, b, huge, MUSTER_U8, 0, 0, NULL, &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    failed = failed || check("recv", b, huge, 6, NOTHING_MORE);
    if (rank == 1) {
        fill(b, huge, 7);
    }
    WORLD_CHECK(muster_broadcast(comm, b, huge, MUSTER_U8, 1, &err) == 0, "%s", err.text);
    return failed || check("broadcast", b, huge, 7, NOTHING_MORE);
}

static int large_counts(struct muster_comm *comm, void *context)
{
    (void)context;
    int rank = muster_comm_rank(comm);
    uint8_t *b = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WORLD_CHECK(b != MAP_FAILED, "no memory");
    int failed = reductions(comm, b, rank) || copies(comm, b, rank);
    (void)munmap(b, huge);
    return failed;
}

static void every_byte_arrives(void **state)
{
    struct world w = {
        .kind = WORLD_PROCESSES, .size = 2, .transport = *state, .timeout_ms = 2 * test_limit_ms()};
    assert_int_equal(world_run(&w, large_counts, NULL), 0);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(every_byte_arrives, transport)};
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
