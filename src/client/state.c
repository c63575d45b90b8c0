/* See state.h. */
#include "client/state.h"

#include "client/loss.h"
#include "client/obey.h"
#include "client/report.h"
#include "client/saver.h"
#include "comm/region/region.h"

#include <string.h>

enum { AGAIN_MS = 2 };

/* Members of the generation whose state can still be read. */
struct owners {
    int count;
    int ranks[MUSTER_MAX_RANKS];
    struct muster_member regions[MUSTER_MAX_RANKS];
};

static void add_owner(const struct muster_elastic *job, struct owners *owners, int rank)
{
    owners->ranks[owners->count] = rank;
    owners->regions[owners->count++] = job->mine->regions[rank];
}

static void drop_owner(struct owners *owners, int index)
{
    for (int i = index; i + 1 < owners->count; i++) {
        owners->ranks[i] = owners->ranks[i + 1];
        owners->regions[i] = owners->regions[i + 1];
    }
    owners->count--;
}

static bool is_current(const struct muster_elastic *job)
{
    return job->core.generation == job->mine->number && job->core.stage == COMMIT_WORKING &&
           job->end == WORKER_GOES_ON;
}

/* Ends a read when the generation is closed, or when the user has ended it. */
static int has_had_enough(void *context)
{
    struct muster_elastic *job = context;
    pthread_mutex_lock(&job->mutex);
    bool over = !is_current(job);
    pthread_mutex_unlock(&job->mutex);
    return over || worker_interrupted(job);
}

static int read_once(struct muster_elastic *job, const struct owners *owners, uint64_t version,
                     struct muster_err *ret)
{
    const struct region_read read = {.owners = owners->regions,
                                     .num_owners = owners->count,
                                     .generation = job->mine->number,
                                     .version = version,
                                     .pieces = job->pieces,
                                     .num_pieces = job->num_pieces,
                                     .timeout_ms = job->peer_ms,
                                     .interrupted = has_had_enough,
                                     .context = job};
    pthread_mutex_unlock(&job->mutex);
    int r = region_read_pieces(&read, ret);
    pthread_mutex_lock(&job->mutex);
    return r;
}

/* Waits a moment for an owner that does not show the state yet. */
static void pause_shortly(struct muster_elastic *job)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += AGAIN_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&job->changed, &job->mutex, &until);
}

/* Judges a failed read. Returns 0 if another read may succeed, or the generation is closed. */
static int judge(struct muster_elastic *job, struct owners *owners, int code,
                 const struct muster_err *failure, struct muster_err *err)
{
    bool known = failure->rank >= 0 && failure->rank < owners->count;
    if (!is_current(job)) {
        return 0;
    }
    if (code == MUSTER_ECONFLICT) {
        pause_shortly(job);
        return 0;
    }
    if (code == MUSTER_EPEERDEAD && known && owners->count > 1) {
        drop_owner(owners, failure->rank);
        return 0;
    }
    struct muster_err lost = *failure;
    lost.rank = known ? owners->ranks[failure->rank] : -1;
    return loss_take(job, code, &lost, err);
}

static int read_state(struct muster_elastic *job, struct owners *owners, struct muster_err *err)
{
    uint64_t version = job->core.version;
    int r = 0;
    job->pristine = job->pristine && job->num_pieces == 0;
    passes_clear(&job->passes);
    while (r == 0 && is_current(job)) {
        struct muster_err failure = MUSTER_ERR_INIT;
        r = read_once(job, owners, version, &failure);
        if (r == 0) {
            return 1;
        }
        r = judge(job, owners, r, &failure, err);
    }
    return r;
}

/* The state is complete: other members may read it, too. */
static void take(struct muster_elastic *job)
{
    if (is_current(job)) {
        job->todo.load = job->todo.restore = false;
        obey_own(job, COMMIT_LOADED, job->core.version);
        obey_show(job);
    }
}

int state_load(struct muster_elastic *job, struct muster_err *err)
{
    struct owners owners = {0};
    for (int r = 0; r < job->mine->size; r++) {
        if (job->mine->loaded[r] && r != job->mine->rank) {
            add_owner(job, &owners, r);
        }
    }
    if (owners.count == 0) {
        worker_end(job, WORKER_FAILED, MUSTER_EPROTO,
                   "the coordinator opened a generation in which nobody has the state");
        return 0;
    }
    int r = read_state(job, &owners, err);
    if (r == 1) {
        take(job);
        r = 0;
    }
    return r;
}

int state_heal(struct muster_elastic *job, struct muster_err *err)
{
    struct owners owners = {0};
    for (int r = 0; r < job->mine->size; r++) {
        if (!job->vote.odd[r]) {
            add_owner(job, &owners, r);
        }
    }
    if (owners.count == 0) {
        worker_end(job, WORKER_FAILED, MUSTER_EDATA,
                   "a bit of this worker's state has changed by itself, and nobody is left who has "
                   "the right one");
        return 0;
    }
    saver_settle(job); /* it may be copying the wrong state */
    obey_hide(job);
    int r = read_state(job, &owners, err);
    if (r == 1 && is_current(job)) {
        job->todo.heal = false;
        report_healed(job);
        obey_show(job);
    }
    return r < 0 ? r : 0;
}

/* ---- Restoring ---- */

/* What a worker knows of the state that the generation begins with; the highest claim is
 * believed. */
enum claim {
    CLAIM_NONE,   /* unknown: it sees no checkpoints of the job, or has another model */
    CLAIM_SPOILT, /* it sees the job's checkpoints, but cannot read this one */
    CLAIM_HAS,
};

/* Exchanges the claims of all members; ret has them by rank. */
static int agree(struct muster_elastic *job, enum claim claim, uint8_t *ret, struct muster_err *err)
{
    struct muster_err failure = MUSTER_ERR_INIT;
    uint8_t mine = (uint8_t)claim;
    struct muster_comm *comm = job->comm;
    pthread_mutex_unlock(&job->mutex);
    int r = muster_all_gather(comm, &mine, ret, 1, MUSTER_U8, &failure);
    pthread_mutex_lock(&job->mutex);
    return r < 0 ? loss_take(job, r, &failure, err) : 1;
}

static int follow(struct muster_elastic *job, int first, struct muster_err *err)
{
    struct owners owners = {0};
    if (first == job->mine->rank) {
        obey_show(job); /* before LOADED is reported, because the others wait for the state */
        take(job);
        return 0;
    }
    add_owner(job, &owners, first);
    int r = read_state(job, &owners, err);
    if (r == 1) {
        take(job);
        r = 0;
    }
    return r;
}

/* Reads the checkpoint of the generation: the head, or (whole) all of it into the pieces. If it
 * cannot be read, `why` says the reason. */
static enum claim try_checkpoint(struct muster_elastic *job, bool whole, struct muster_err *why)
{
    const struct checkpoint_wanted wanted = {.folder = job->saver.folder,
                                             .name = job->mine->checkpoint,
                                             .digest = job->mine->digest,
                                             .version = job->core.version,
                                             .plan = plan_digest(&job->plan),
                                             .pieces = job->pieces,
                                             .num_pieces = job->num_pieces};
    if (!wanted.folder) {
        (void)muster_fail(why, MUSTER_ENOENT,
                          "this worker has no folder of checkpoints: "
                          "MUSTER_CHECKPOINT");
        return CLAIM_NONE;
    }
    job->pristine = job->pristine && !whole;
    pthread_mutex_unlock(&job->mutex);
    int r = whole ? checkpoint_load(&wanted, why) : checkpoint_look(&wanted, why);
    pthread_mutex_lock(&job->mutex);
    return r == 0 ? CLAIM_HAS : r == MUSTER_EDATA ? CLAIM_SPOILT : CLAIM_NONE;
}

static int find_claim(const uint8_t *claims, int size, enum claim claim)
{
    int first = 0;
    while (first < size && claims[first] != claim) {
        first++;
    }
    return first;
}

/* No worker has the state. If the checkpoint is damaged, there may be an earlier one, which the
 * coordinator knows. If no worker can see it, it may still exist: then the job fails, and a person
 * must decide. */
static int give_up(struct muster_elastic *job, bool spoilt, const struct muster_err *why)
{
    const char *name = job->mine->checkpoint;
    if (spoilt) {
        job->todo.restore = false; /* until the generation is closed */
        saver_refuse(job, why->code < 0 ? why->text : "another worker cannot read it");
    } else if (name[0]) {
        worker_end(job, WORKER_FAILED, why->code < 0 ? why->code : MUSTER_ENOENT,
                   "the job goes on from checkpoint %s, and no worker can take it: %s", name,
                   why->code < 0 ? why->text : "");
    } else {
        worker_end(job, WORKER_FAILED, MUSTER_EGONE,
                   "all workers that had the model are gone, and there is no checkpoint: begin "
                   "anew");
    }
    return 0;
}

/* The members try to read the checkpoint one after the other, until one has read all of it; the
 * others read the state from that member. */
static int restore_from(struct muster_elastic *job, enum claim mine, struct muster_err *why,
                        struct muster_err *err)
{
    uint8_t claims[MUSTER_MAX_RANKS] = {0};
    int size = job->mine->size, rank = job->mine->rank;
    bool is_file = job->mine->checkpoint[0] != 0;
    int r = agree(job, mine, claims, err);
    while (r == 1 && is_current(job)) {
        int first = find_claim(claims, size, CLAIM_HAS);
        if (first == size) {
            return give_up(job, find_claim(claims, size, CLAIM_SPOILT) < size, why);
        }
        if (first == rank && is_file) {
            mine = try_checkpoint(job, true, why);
        }
        r = is_file ? agree(job, mine, claims, err) : 1;
        if (r == 1 && is_current(job) && claims[first] == CLAIM_HAS) {
            job->restored = is_file ? job->core.version : 0;
            return follow(job, first, err);
        }
    }
    return r < 0 ? r : 0;
}

int state_restore(struct muster_elastic *job, struct muster_err *err)
{
    struct muster_err why = MUSTER_ERR_INIT;
    enum claim mine = job->pristine ? CLAIM_HAS : CLAIM_NONE;
    passes_clear(&job->passes);
    job->saver.newest = job->core.version;
    job->saver.newest_ns = worker_now_ns();
    if (job->mine->checkpoint[0]) {
        mine = try_checkpoint(job, false, &why);
    }
    return restore_from(job, mine, &why, err);
}
