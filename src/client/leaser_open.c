/* Allocates, opens and frees a worker by leases, from its options. See leaser.h. */
#include "client/identity.h"
#include "client/leaser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SHARD_MAX = 1 << 24 }; /* records of a shard */

void leaser_fail(struct muster_shards *s, int code, const char *format, ...)
{
    va_list args;
    if (s->failed) {
        return;
    }
    s->failed = code;
    s->why = (struct muster_err)MUSTER_ERR_INIT;
    va_start(args, format);
    (void)muster_vfail(&s->why, code, format, args);
    va_end(args);
    (void)pthread_cond_broadcast(&s->changed);
}

static uint32_t count_sums(const char *names)
{
    uint32_t count = *names != 0;
    for (; *names; names++) {
        count += *names == ',';
    }
    return count;
}

static const char *wrong_with(const struct muster_shards_options *o, const char *sums)
{
    return o->records == 0 || o->records > (UINT64_C(1) << 40) ? "it has 1 to 2^40 records"
           : o->epochs == 0 || o->epochs == UINT32_MAX         ? "it has 1 epoch or more"
           : o->shard == 0 || o->shard > SHARD_MAX             ? "a shard has 1 to 2^24 records"
           : o->task > MUSTER_SHARDS_PREDICT                   ? "there is no such task"
           : count_sums(sums) > MUSTER_SHARDS_SUMS_MAX         ? "it has at most 8 sums"
                                                               : NULL;
}

static int read_options(struct muster_shards *s, const struct muster_shards_options *o,
                        struct muster_err *err)
{
    const char *sums = o->sums ? o->sums : "";
    const char *wrong = wrong_with(o, sums);
    if (wrong) {
        return muster_fail(err, MUSTER_EINVAL, "the data set: %s", wrong);
    }
    int r = identity_token(o->token, s->token, err);
    r = r < 0 ? r : identity_names(o->coordinator, o->name, &s->coordinator, &s->name, err);
    r = r < 0 ? r
              : identity_copy(o->dataset ? o->dataset : "", WIRE_DATASET_NAME_MAX,
                              "the name of a data set", &s->dataset, err);
    r = r < 0 ? r
              : identity_copy(sums, WIRE_SUM_NAMES_MAX, "the names of sums", &s->sum_names, err);
    r = r < 0 ? r : identity_set_aside(o->set_aside, &s->set_aside, err);
    return r < 0 ? r : identity_incarnation(INCARNATION_LEASES, &s->incarnation, err);
}

int leaser_open(const struct muster_shards_options *options, struct muster_shards **ret,
                struct muster_err *err)
{
    struct muster_shards *s = calloc(1, sizeof *s);
    if (!s) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for leases");
    }
    s->owner = getpid();
    s->options = *options;
    s->order_epoch = UINT64_MAX;
    s->ask = 1;
    s->why = (struct muster_err)MUSTER_ERR_INIT;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    identity_waiting(&s->mutex, &s->changed);
    connection_init(&s->connection);
    int r = s->wake_fd < 0 ? muster_fail(err, MUSTER_EOS, "cannot take part: %s", strerror(errno))
                           : read_options(s, options, err);
    holdings_init(&s->holdings, options->shard, r < 0 ? 0 : count_sums(s->sum_names));
    s->records = r < 0 ? NULL : calloc(options->shard, sizeof *s->records);
    if (r == 0 && !s->records) {
        r = muster_fail(err, MUSTER_ENOMEM, "no memory for shards of %u records", options->shard);
    }
    if (r < 0) {
        leaser_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void leaser_free(struct muster_shards *s)
{
    leaser_listener_close(s);
    connection_done(&s->connection);
    holdings_done(&s->holdings);
    if (s->wake_fd >= 0) {
        close(s->wake_fd);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s->position.ranges);
    free(s->records);
    free(s->coordinator);
    free(s->name);
    free(s->dataset);
    free(s->sum_names);
    free(s);
}
