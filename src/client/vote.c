/* See vote.h. */
#include "client/vote.h"

#include "client/report.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 4, WHY_BYTES = 256 };

#define PRIME UINT64_C(0x9e3779b97f4a7c15)

/* ---- The digest ---- */

/* A bijection; a difference in any bit can change every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * PRIME;
    x = (x ^ x >> 29) * PRIME;
    return x ^ x >> 32;
}

/* A lane differs if a word of it differs. Lanes are mixed before they are combined, so that several
 * differences do not cancel each other out. */
static uint64_t digest_of(uint64_t start, const char *bytes, size_t count)
{
    uint64_t lanes[LANES] = {start, ~start, start ^ PRIME, start + PRIME}, words[LANES];
    for (; count >= sizeof words; count -= sizeof words, bytes += sizeof words) {
        memcpy(words, bytes, sizeof words);
        for (int i = 0; i < LANES; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * PRIME;
        }
    }
    memset(words, 0, sizeof words);
    memcpy(words, bytes, count);
    uint64_t digest = 0;
    for (int i = 0; i < LANES; i++) {
        digest = mix(digest ^ mix(lanes[i] ^ words[i]) * PRIME);
    }
    return digest;
}

uint64_t vote_digest(const struct muster_elastic *job, uint64_t version)
{
    uint64_t digest = version;
    if (job->digest_steps == 0 || version % job->digest_steps != 0 || !job->vote_due) {
        return 0;
    }
    for (size_t i = 0; i + job->digest_skip < job->num_pieces; i++) {
        digest = digest_of(digest, job->pieces[i].memory, job->pieces[i].size_bytes);
    }
    return digest ? digest : 1;
}

/* ---- The vote ---- */

static int count_like(const uint64_t *digests, int size, int rank)
{
    int count = 0;
    for (int r = 0; r < size; r++) {
        count += digests[r] == digests[rank];
    }
    return count;
}

int vote_count(const uint64_t *digests, int size, struct vote *ret)
{
    int most = 0;
    for (int r = 1; r < size; r++) {
        most = count_like(digests, size, r) > count_like(digests, size, most) ? r : most;
    }
    int like = count_like(digests, size, most);
    *ret = (struct vote){.decided = 2 * like > size, .first = -1};
    for (int r = 0; r < size; r++) {
        ret->odd[r] = digests[r] != digests[most];
        ret->first = ret->odd[r] && ret->first < 0 ? r : ret->first;
    }
    return like == size ? 0 : VOTE_AGAIN;
}

/* ---- What follows ---- */

static int fail(struct muster_elastic *job, struct muster_err *err)
{
    char why[WHY_BYTES];
    (void)snprintf(
        why, sizeof why,
        "the states of %d workers differ after step %llu: a bit has changed by itself, and "
        "too few are alike to tell whose are right",
        job->mine->size, (unsigned long long)job->core.version);
    return report_until_ended(job, why, INT64_MAX, err);
}

int vote_take(struct muster_elastic *job, struct muster_err *err)
{
    struct figures *f = &job->figures;
    if (!job->vote.decided) {
        return fail(job, err);
    }
    f->diverged++;
    f->diverged_version = job->core.version;
    f->diverged_rank = job->vote.first;
    if (job->vote.odd[job->mine->rank]) {
        passes_clear(&job->passes);
        job->todo.heal = true;
        f->odd_ns = worker_now_ns();
    }
    return 0;
}
