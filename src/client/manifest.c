/* See manifest.h. */
#include "client/manifest.h"

#include "client/generation.h"
#include "client/vote.h"

struct manifest {
    uint64_t version;
    uint64_t plan;
    uint64_t extra_bytes;
    uint64_t sum;
    uint64_t digest;  /* of the state; 0: none is due */
    uint64_t pass_ns; /* how long a pass takes here; 0: not known */
};

static const char *find_difference(const struct manifest *mine, const struct manifest *other)
{
    return other->version != mine->version           ? "another step"
           : other->plan != mine->plan               ? "another data set"
           : other->extra_bytes != mine->extra_bytes ? "extras of another size"
           : other->sum != mine->sum                 ? "another number of sums in the step"
                                                     : NULL;
}

static int count_votes(struct muster_elastic *job, const struct manifest *all)
{
    uint64_t digests[MUSTER_MAX_RANKS];
    for (int rank = 0; rank < job->mine->size; rank++) {
        if (all[rank].digest == 0) { /* this rank has no digest to compare */
            return 0;
        }
        digests[rank] = all[rank].digest;
    }
    return vote_count(digests, job->mine->size, &job->vote);
}

static void balance(struct muster_elastic *job, uint64_t version, const struct manifest *all)
{
    uint64_t pass_ns[MUSTER_MAX_RANKS];
    for (int rank = 0; rank < job->mine->size; rank++) {
        pass_ns[rank] = all[rank].pass_ns;
    }
    generation_balance(job, version, pass_ns);
}

int manifest_exchange(struct muster_elastic *job, struct muster_comm *comm, uint64_t version,
                      uint64_t sum, struct muster_err *ret)
{
    const struct manifest mine = {.version = version,
                                  .plan = plan_digest(&job->plan),
                                  .extra_bytes = job->extra_bytes,
                                  .sum = sum,
                                  .digest = sum <= 1 ? vote_digest(job, version - 1) : 0,
                                  .pass_ns = (uint64_t)job->figures.pass_ns};
    struct manifest all[MUSTER_MAX_RANKS];
    int r = muster_all_gather(comm, &mine, all, sizeof mine / sizeof(uint64_t), MUSTER_I64, ret);
    for (int rank = 0; r >= 0 && rank < job->mine->size; rank++) {
        const char *what = find_difference(&mine, &all[rank]);
        if (what) {
            return muster_fail(ret, MUSTER_EMISMATCH, "worker %d brings %s", rank, what);
        }
    }
    r = r < 0 ? r : count_votes(job, all);
    if (r == 0 && sum == 0) {
        balance(job, version, all);
    }
    return r;
}
