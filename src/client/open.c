/* See open.h. */
#include "client/open.h"

#include "client/identity.h"
#include "client/recording.h"
#include "client/saver.h"
#include "comm/system/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Options ---- */

/* Reads an option, or the environment if the program does not set it; 0: it is set by neither. */
static int read_number(uint32_t said, const char *name, uint32_t *ret, struct muster_err *err)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (said > 0 || !text || !*text) {
        *ret = said;
        return 0;
    }
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value == 0 || value > UINT32_MAX) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is a number, not \"%s\"", name, text);
    }
    *ret = (uint32_t)value;
    return 0;
}

/* A poisonous record can be found only with parts of passes. */
static int read_set_aside(struct muster_elastic *job, uint32_t said, struct muster_err *err)
{
    bool on = false;
    int r = identity_set_aside(said, &on, err);
    if (r == 0 && said > 0 && job->whole_passes) {
        return muster_fail(err, MUSTER_EINVAL,
                           "set_aside is not for a job whose passes are whole, as those of several "
                           "updates are: a record is found by computing parts of its pass");
    }
    job->set_aside = on && !job->whole_passes; /* the environment may mean leases */
    return r;
}

static int copy_texts(struct muster_elastic *job, const struct muster_elastic_options *o,
                      struct muster_err *err)
{
    int r = identity_names(o->coordinator, o->name, &job->coordinator, &job->name, err);
    return r < 0 ? r
                 : identity_copy(o->dataset ? o->dataset : "", WIRE_DATASET_NAME_MAX,
                                 "the name of a data set", &job->dataset, err);
}

/* Reads one of two options, or if the program sets neither, the environment: if it has both, the
 * number of each worker. */
static int read_micro_batches(const struct muster_elastic_options *o, struct plan *ret,
                              struct muster_err *err)
{
    static const char name[] = "MUSTER_MICRO_BATCHES_PER_WORKER";
    uint32_t of_worker = o->micro_batches_per_worker;
    if (of_worker > 0 && o->micro_batches > 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "micro_batches is of a step, and micro_batches_per_worker is of each "
                           "worker: a job has one of them");
    }
    int r = o->micro_batches > 0 ? 0 : read_number(of_worker, name, &of_worker, err);
    if (r < 0) {
        return r;
    }
    ret->per_worker = of_worker > 0;
    ret->micro_batches = of_worker;
    return ret->per_worker
               ? 0
               : read_number(o->micro_batches, "MUSTER_MICRO_BATCHES", &ret->micro_batches, err);
}

static int read_plan(struct muster_elastic *job, const struct muster_elastic_options *o,
                     struct muster_err *err)
{
    job->plan = (struct plan){.records = o->records,
                              .seed = o->seed,
                              .epochs = o->epochs,
                              .batch = o->batch,
                              .shuffle = o->shuffle};
    int r = read_micro_batches(o, &job->plan, err);
    r = r < 0 ? r : read_number(o->digest_steps, "MUSTER_DIGEST_STEPS", &job->digest_steps, err);
    r = r < 0 ? r : read_set_aside(job, o->set_aside, err);
    struct plan least = job->plan; /* if the coordinator knows the number */
    least.micro_batches = least.micro_batches ? least.micro_batches : 1;
    const char *wrong = plan_check(&least);
    if (r == 0 && wrong) {
        return muster_fail(err, MUSTER_EINVAL, "the data set: %s", wrong);
    }
    if (r == 0 && o->extra_bytes > WORKER_EXTRA_MAX) {
        return muster_fail(err, MUSTER_EINVAL, "extra_bytes is at most %d", WORKER_EXTRA_MAX);
    }
    return r;
}

static int read_options(struct muster_elastic *job, const struct muster_elastic_options *o,
                        struct muster_err *err)
{
    job->environment = o->environment;
    job->extra_bytes = o->extra_bytes;
    job->whole_passes = o->whole_passes != 0;
    job->digest_skip = o->digest_skip;
    job->peer_ms =
        o->peer_ms > 0 && o->peer_ms < WORKER_FOREVER_MS ? o->peer_ms : WORKER_FOREVER_MS;
    job->interrupted = o->interrupted;
    job->user = o->user;
    int r = identity_token(o->token, job->token, err);
    r = r < 0 ? r : copy_texts(job, o, err);
    r = r < 0 ? r : saver_init(&job->saver, o, err);
    return r < 0 ? r : read_plan(job, o, err);
}

/* ---- Sockets by which it can be reached ---- */

static int open_sockets(struct muster_elastic *job, const char *host, struct muster_err *err)
{
    struct muster_member member;
    int r = muster_endpoint_open(host, &job->endpoint, err);
    r = r < 0 ? r : muster_region_open(host, NULL, 0, &job->region, err);
    if (r < 0) {
        return r;
    }
    muster_endpoint_member(job->endpoint, &member);
    memcpy(job->address.endpoint, member.bytes, sizeof job->address.endpoint);
    muster_region_member(job->region, &member);
    memcpy(job->address.region, member.bytes, sizeof job->address.region);
    job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return job->wake_fd < 0
               ? muster_fail(err, MUSTER_EOS, "cannot begin a job: %s", strerror(errno))
               : identity_incarnation(0, &job->incarnation, err);
}

int open_job(const struct muster_elastic_options *options, struct muster_elastic **ret,
             struct muster_err *err)
{
    struct muster_elastic *job = calloc(1, sizeof *job);
    if (!job) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a job");
    }
    job->owner = getpid();
    job->wake_fd = -1;
    job->pristine = true;
    job->why = (struct muster_err)MUSTER_ERR_INIT;
    identity_waiting(&job->mutex, &job->changed);
    connection_init(&job->connection);
    passes_init(&job->passes, 0);
    int r = read_options(job, options, err);
    job->generation = calloc(1, sizeof *job->generation);
    job->mine = calloc(1, sizeof *job->mine);
    if (r == 0 && (!job->generation || !job->mine)) {
        r = muster_fail(err, MUSTER_ENOMEM, "no memory for a job");
    }
    r = r < 0 ? r : open_sockets(job, options->host, err);
    if (r < 0) {
        open_free(job);
        return r;
    }
    passes_init(&job->passes, job->extra_bytes);
    commit_member_init(&job->core, job->incarnation);
    recording_begin(job);
    *ret = job;
    return 0;
}

void open_free(struct muster_elastic *job)
{
    muster_region_close(job->region);
    muster_endpoint_close(job->endpoint);
    connection_done(&job->connection);
    passes_done(&job->passes);
    saver_done(&job->saver);
    if (job->wake_fd >= 0) {
        close(job->wake_fd);
    }
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->mutex);
    free(job->coordinator);
    free(job->name);
    free(job->dataset);
    free(job->pieces);
    free(job->records);
    free(job->kept_sum);
    free(job->sum_parts);
    free(job->extras);
    free(job->generation);
    free(job->mine);
    recording_close(job->recording);
    free(job);
}
