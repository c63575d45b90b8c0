/* muster/shards.h: records that are handed out by leases, to workers that need no common step.
 *
 * This is for evaluation, prediction, and training without lockstep. A worker fetches a shard of a
 * data set, works on its records, and reports it. A shard that was granted belongs to this worker
 * alone until it is reported, or until the worker dies, leaves, or is silent for 30 s (a thread of
 * the library sends its signs of life). Then others get it. The coordinator (`muster coordinator`)
 * counts a shard once, by the report that it has in its journal, whichever process dies in between.
 *
 *     muster_shards_open(&options, &shards, &err);
 *     while ((r = muster_shards_fetch(shards, &shard, &err)) == 1) {
 *         ... the records shard.records[0 … shard.record_count - 1] ...
 *         muster_shards_report(shards, shard.number, sums, &err);
 *     }
 *     muster_shards_close(shards);
 *
 * The records of a worker that crashed are tried again in small parts. When three workers have
 * died, one after the other, of the same record, the job fails and names it (MUSTER_EFAILED), or
 * the record is set aside: it is in no later epoch, and not in the sums. If a worker was killed
 * from outside, or called muster_shards_close, no record is blamed.
 *
 * A job may have several data sets, each opened separately, beside one that is trained in steps
 * (elastic.h); the job is done when all of them are. A program that evaluates after training must
 * open that data set before training ends.
 *
 * Only one thread may use a data set. A forked child must not use it. Errors are as in err.h.
 * Depends on libc only.
 */
#pragma once

#include <muster/err.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_shards;

enum muster_shards_task { MUSTER_SHARDS_TRAIN, MUSTER_SHARDS_EVALUATE, MUSTER_SHARDS_PREDICT };

enum { MUSTER_SHARDS_SUMS_MAX = 8 };

/* All workers of a data set must give the same values, otherwise MUSTER_ECONFLICT. */
struct muster_shards_options {
    size_t struct_size;      /* set by MUSTER_SHARDS_OPTIONS_INIT */
    const char *coordinator; /* "unix:PATH" or "tcp:HOST:PORT"; NULL: MUSTER_COORDINATOR */
    const char *token;       /* 64 hexadecimal digits; NULL: MUSTER_COORDINATOR_TOKEN */
    const char *name;        /* of this worker, for people; NULL: its pod's, or "HOST:PID" */
    const char *dataset;     /* its name; NULL: "" */
    const char *sums; /* names of what is summed up over the records, "correct,loss"; NULL: none */
    uint64_t records; /* that it has, > 0 */
    uint64_t seed;    /* of the shuffle */
    uint32_t epochs;  /* > 0 */
    uint32_t shard;   /* records of a shard, > 0; the last of an epoch has fewer */
    uint32_t shuffle; /* 0: records in their order; 1: shuffled; n: blocks of n records */
    enum muster_shards_task task;
    int64_t connect_ms;             /* how long to try to reach the coordinator; default 60,000 */
    int (*interrupted)(void *user); /* asked while it waits; not 0: MUSTER_EINTERRUPTED */
    void *user;
    uint32_t set_aside; /* 1: a record of which three workers died, one after the other, is left out
                           and listed by the coordinator, in place of failing the job; 0:
                           MUSTER_SET_ASIDE, or it fails */
};
/* clang-format off */
#define MUSTER_SHARDS_OPTIONS_INIT                                                                 \
    {sizeof(struct muster_shards_options), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0,            \
     MUSTER_SHARDS_TRAIN, 60000, NULL, NULL, 0}
/* clang-format on */

/* MUSTER_EUNAUTH: a wrong token; MUSTER_ECONFLICT: another data set than the job's;
 * MUSTER_EUNAVAIL: the coordinator cannot be reached; MUSTER_EFAILED: the job has failed;
 * MUSTER_EGONE: the job is done, and a program that was started too late should exit with 0. */
MUSTER_API int muster_shards_open(const struct muster_shards_options *options,
                                  struct muster_shards **ret, struct muster_err *err);
/* Leaves the data set: reports are sent, and shards that were not reported go to others. NULL is
 * fine. */
MUSTER_API void muster_shards_close(struct muster_shards *shards);

struct muster_shard {
    size_t struct_size;      /* set by MUSTER_SHARD_INIT */
    uint64_t number;         /* for its report; from 1, this worker's */
    uint64_t epoch;          /* from 0 */
    uint64_t first;          /* its first position in the order of the epoch */
    const uint64_t *records; /* until the next fetch */
    size_t record_count;
};
/* clang-format off */
#define MUSTER_SHARD_INIT {sizeof(struct muster_shard), 0, 0, 0, NULL, 0}
/* clang-format on */

/* 1: a shard. 0: every record of every epoch is done, by this worker or others; a coordinator that
 * is silent is not the end. Waits while others hold all remaining records, because these workers
 * may die. MUSTER_EAGAIN: report your shards first: all remaining records are held, some by this
 * worker, or are suspected of crashes and go only to a worker that holds nothing. MUSTER_EGONE:
 * this worker was silent for too long, and its shards went to others; it may open the data set
 * again. MUSTER_EFAILED: the job has failed. */
MUSTER_API int muster_shards_fetch(struct muster_shards *shards, struct muster_shard *ret,
                                   struct muster_err *err);

/* Reports that the shard is done. sums: one value for each name in options.sums, over its records,
 * or NULL for zeros. The report is sent at once; muster_shards_wait waits for it. MUSTER_ENOENT:
 * the shard is not this worker's, or was reported already. */
MUSTER_API int muster_shards_report(struct muster_shards *shards, uint64_t number,
                                    const double *sums, struct muster_err *err);
/* Reports that the shard could not be processed; the next worker that fetches gets it. After the
 * third time for the same shard all workers of the data set fail, and name it. */
MUSTER_API int muster_shards_fail(struct muster_shards *shards, uint64_t number,
                                  struct muster_err *err);
/* Waits until all reports of this worker are in the coordinator's journal. */
MUSTER_API int muster_shards_wait(struct muster_shards *shards, struct muster_err *err);

struct muster_shards_info {
    size_t struct_size;    /* set by MUSTER_SHARDS_INFO_INIT */
    uint64_t incarnation;  /* of this worker */
    uint64_t fetched;      /* shards, by this worker */
    uint64_t reported;     /* … and in the journal */
    uint64_t records_done; /* the same, in records */
    uint64_t epoch;        /* of the shard that was fetched last */
    int ended;             /* muster_shards_fetch has returned 0 */
    uint32_t sum_count;    /* once it has ended: the sums over all records of all workers */
    double sums[MUSTER_SHARDS_SUMS_MAX];
    uint64_t
        left_out; /* … and how many of these, of all epochs, were set aside, and are in no sum */
};
/* clang-format off */
#define MUSTER_SHARDS_INFO_INIT                                                                    \
    {sizeof(struct muster_shards_info), 0, 0, 0, 0, 0, 0, 0, {0}, 0}
/* clang-format on */
MUSTER_API int muster_shards_query(struct muster_shards *shards, struct muster_shards_info *ret,
                                   struct muster_err *err);

/* ---- Where a data set is ---- */

/* Positions in the order of an epoch. */
struct muster_shards_range {
    uint64_t first;
    uint64_t count;
};

struct muster_shards_position {
    uint64_t epoch; /* those before it are done */
    const struct muster_shards_range *to_do;
    size_t to_do_count;
    const struct muster_shards_range *held; /* by workers; to do as well, should they die */
    size_t held_count;
};

/* The records that are not done, over all workers. The arrays belong to the library and are valid
 * until the next call. */
MUSTER_API int muster_shards_position(struct muster_shards *shards,
                                      struct muster_shards_position *ret, struct muster_err *err);
/* Lets the data set begin at this position: records that are neither to do nor held there count as
 * done. 1: it does; 0: it has begun already, or has no such position. MUSTER_ETOOBIG: the position
 * has more ranges than a message can hold, about 200,000. */
MUSTER_API int muster_shards_begin(struct muster_shards *shards,
                                   const struct muster_shards_position *position,
                                   struct muster_err *err);

#ifdef __cplusplus
}
#endif
