/* See tally.h. */
#include "commit/tally.h"

#include "commit/planted.h"

void commit_tally_add(struct commit_tally *tally, const struct commit_vote *vote)
{
    if (!vote->reported) {
        tally->awaited = tally->awaited || !(vote->gone || vote->silent);
        tally->silent = tally->silent || (vote->silent && !vote->gone);
        return;
    }
    if (!tally->reported || vote->version > tally->highest) {
        tally->unprepared = tally->unprepared || tally->reported; /* the earlier ones are behind */
        tally->highest = vote->version;
    }
    if (vote->version < tally->highest || !vote->prepared) {
        tally->unprepared = true;
    }
    tally->reported = true;
    tally->holder = tally->holder || (vote->loaded && !vote->gone);
}

enum commit_verdict commit_tally_verdict(const struct commit_tally *tally, uint64_t *ret_base)
{
    if (tally->awaited) {
        return COMMIT_WAIT;
    }
    if (!tally->holder) {
        bool stuck = PLANTED(RESTORE_NEEDS_REPORT) && !tally->reported;
        return tally->silent || stuck ? COMMIT_WAIT : COMMIT_RESTORE;
    }
    bool next = !tally->unprepared && !PLANTED(COMMIT_IF_APPLIED);
    *ret_base = tally->highest + (next ? 1 : 0);
    return COMMIT_BASE;
}
