/* The coordinator's decision when a generation ends: how far the steps are committed, from what
 * every member of it is known to have done (rules 5, 6 and 11 of docs/step-commit.md).
 *
 *     members of the generation                                    verdict           rule
 *     one was not heard of, and is neither dead nor silent          WAIT              5
 *     none that is alive and reported has the state:
 *       one is silent, and may have it                              WAIT              5
 *       all others are dead or gone                                 RESTORE           11
 *     all that reported have version m, and are prepared            BASE, m + 1       6
 *     any other                                                     BASE, m           6
 *
 * m is the highest version that was reported. A member that passed the barrier of step m + 1 proves
 * that all members were prepared; so where one was not, nobody has passed, and where all are,
 * somebody may have. A report stays true when its sender dies afterwards.
 *
 * Layer: pure (part of libmuster). Memory: the caller's. Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct commit_vote {
    bool reported; /* it has closed the generation and reported the values below */
    bool gone;     /* dead, finished or given up: it will not continue */
    bool silent;   /* past its deadline */
    bool loaded;
    bool prepared;
    uint64_t version;
};

/* All fields begin as zeroes. */
struct commit_tally {
    bool awaited;
    bool silent;
    bool reported;
    bool holder; /* a member that continues has the state */
    bool unprepared;
    uint64_t highest;
};

enum commit_verdict { COMMIT_WAIT, COMMIT_BASE, COMMIT_RESTORE };

/* Counts the vote of one member of the generation. */
void commit_tally_add(struct commit_tally *tally, const struct commit_vote *vote);

/* Returns the decision. Writes ret_base for COMMIT_BASE only. */
enum commit_verdict commit_tally_verdict(const struct commit_tally *tally, uint64_t *ret_base);
