/* Checks the digests by which workers vote: every bit of every piece changes them. */
#include "client/vote.h"

#include "base/testing/test.h"

#include <string.h>

enum { PIECES = 40, BYTES = 76, BITS = 8 };

static void every_bit_of_every_piece_counts(void **state)
{
    (void)state;
    static char memory[PIECES][BYTES];
    static struct muster_elastic job;
    struct muster_elastic_piece pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        memset(memory[i], i, BYTES);
        pieces[i] = (struct muster_elastic_piece){memory[i], BYTES};
    }
    job.digest_steps = 1, job.vote_due = true, job.pieces = pieces, job.num_pieces = PIECES;
    uint64_t right = vote_digest(&job, 3);
    for (int i = 0; i < PIECES * BYTES * BITS; i++) {
        char *byte = &memory[i / BITS / BYTES][i / BITS % BYTES];
        *byte = (char)(*byte ^ 1 << i % BITS);
        assert_true(vote_digest(&job, 3) != right);
        *byte = (char)(*byte ^ 1 << i % BITS);
    }
    assert_true(vote_digest(&job, 3) == right);
    assert_true(vote_digest(&job, 4) != right);
    job.digest_skip = 1;
    memory[PIECES - 1][0] = 99;
    uint64_t without = vote_digest(&job, 3);
    memory[PIECES - 1][0] = 98;
    assert_true(vote_digest(&job, 3) == without);
}

static void most_are_right_and_two_that_differ_decide_nothing(void **state)
{
    (void)state;
    static const struct {
        uint64_t digests[4];
        int size, first;
        bool alike, decided;
    } table[] = {{{7, 7, 7}, 3, -1, true, true},     {{7, 8, 7}, 3, 1, false, true},
                 {{8, 7, 7, 9}, 4, 0, false, false}, {{7, 7, 7, 9}, 4, 3, false, true},
                 {{7, 8}, 2, 1, false, false},       {{7}, 1, -1, true, true}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct vote vote;
        int r = vote_count(table[i].digests, table[i].size, &vote);
        assert_int_equal(r, table[i].alike ? 0 : VOTE_AGAIN);
        assert_int_equal(vote.decided, table[i].decided);
        assert_int_equal(vote.first, table[i].first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_every_piece_counts),
        cmocka_unit_test(most_are_right_and_two_that_differ_decide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
