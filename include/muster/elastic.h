/* muster/elastic.h: training whose workers may die, hang, join and leave.
 *
 * A job has a data set that is trained for some epochs, and any number of workers (this interface)
 * around one coordinator (`muster coordinator`). A step of the job consists of micro-batches; each
 * worker computes its share of them, one pass each, and the step commits on every worker or on
 * none. When a worker is lost, the others compute its passes, and the step's result is the same:
 * the records of a step depend on how many were committed before it, not on the workers (unless the
 * global batch follows the workers: micro_batches_per_worker), and the sum over its micro-batches
 * is taken over one fixed tree. No record is lost, or counted twice.
 *
 *     muster_elastic_open(&options, &job, &err);
 *     muster_elastic_state(job, pieces, num_pieces, &err);       model and optimizer
 *     while ((r = muster_elastic_next(job, &pass, &err)) == 1) {
 *         ... the gradient of the mean loss over pass.records, with the model as it is ...
 *         r = muster_elastic_step(job, gradient, count, type, NULL, mean, &err);
 *         if (r == 1) { ... update the model by `mean` ... }
 *     }
 *     muster_elastic_close(job);
 *
 * Only one thread may use a job; query and leave may be called from any thread. A forked child must
 * not use it. Errors are as in err.h. Depends on libc only, like all of libmuster.
 */
#pragma once

#include <muster/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_elastic;

struct muster_elastic_options {
    size_t struct_size;      /* set by MUSTER_ELASTIC_OPTIONS_INIT */
    const char *coordinator; /* "unix:PATH" or "tcp:HOST:PORT"; NULL: MUSTER_COORDINATOR */
    const char *token;       /* 64 hexadecimal digits; NULL: MUSTER_COORDINATOR_TOKEN */
    const char *host;        /* by which other hosts reach this process: muster_endpoint_open */
    const char *name;        /* of this worker, for people; NULL: its pod's, or "HOST:PID" */
    const char *dataset;     /* its name; NULL: "" */
    uint64_t records;        /* that it has, > 0 */
    uint64_t seed;           /* of the shuffle */
    uint32_t epochs;         /* > 0 */
    uint32_t batch;          /* records of a micro-batch, > 0; the last of an epoch has fewer */
    uint32_t micro_batches;  /* of a step; 0: MUSTER_MICRO_BATCHES, or the first worker's number, or
                                1. All workers must give the same, otherwise MUSTER_ECONFLICT */
    uint32_t shuffle;        /* 0: records in their order; 1: shuffled; n: blocks of n records */
    uint64_t environment;    /* a digest of all that equal results depend on; 0: not compared */
    size_t extra_bytes;      /* of muster_elastic_step's extra, at most 1 MiB */
    int64_t connect_ms;      /* how long to try to reach the coordinator; default 60,000 */
    int64_t peer_ms;         /* how long a step waits for a worker that is alive; default 0: for
                                ever. A dead, stopped or cut off worker is left out in < 1 s */
    int (*interrupted)(void *user); /* polled while it waits; not 0: MUSTER_EINTERRUPTED */
    void *user;
    const char *checkpoint;      /* a folder that all workers can access: the state is written there
                                    while training goes on, and read when no worker has it any more;
                                    NULL: MUSTER_CHECKPOINT, or none */
    uint32_t checkpoint_steps;   /* steps between two checkpoints; 0: MUSTER_CHECKPOINT_STEPS, or no
                                    such rule */
    uint32_t checkpoint_seconds; /* seconds between two; 0: MUSTER_CHECKPOINT_SECONDS, or no such
                                    rule; with neither rule: 60 */
    uint32_t checkpoint_keep; /* how many are kept, the newest; 0: MUSTER_CHECKPOINT_KEEP, or 2 */
    uint32_t whole_passes;    /* 1: records that may have crashed workers are not tried in parts
                                 of a pass; needed for muster_elastic_sum */
    uint32_t digest_steps;    /* every so many steps the workers compare digests of their states:
                                 a worker that differs reads the state from the others, if more
                                 than half of all agree; otherwise the job fails. 0:
                                 MUSTER_DIGEST_STEPS, or never */
    uint32_t digest_skip;     /* how many pieces at the end are left out of the digest, because
                                 they differ between workers */
    uint32_t set_aside;       /* 1: a record of which three workers died, one after the other, is
                                 left out from then on, and the coordinator lists it; otherwise
                                 the job fails. 0: MUSTER_SET_ASIDE, or 0. With whole_passes it
                                 is MUSTER_EINVAL, and the variable applies to leases only */
    uint32_t micro_batches_per_worker; /* in place of micro_batches: a step has this number for each
                                          worker of its generation, so the global batch grows and
                                          shrinks with them. The first step of a generation keeps
                                          the size that it would have had without the change,
                                          because it may be a step that is tried again. The records
                                          of a step, and so the model, depend on the workers.
                                          0, and micro_batches is 0:
                                          MUSTER_MICRO_BATCHES_PER_WORKER, if it is set */
};
/* clang-format off */
#define MUSTER_ELASTIC_OPTIONS_INIT                                                                \
    {sizeof(struct muster_elastic_options), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0,  \
     60000, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* Connects to the coordinator, and opens an endpoint. Imports, data and devices should be ready,
 * because from muster_elastic_next on the others may wait for this worker. MUSTER_EUNAUTH: a wrong
 * token; MUSTER_ECONFLICT: another data set than the job's, or another environment;
 * MUSTER_EUNAVAIL: the coordinator cannot be reached; MUSTER_EFAILED: the job has failed;
 * MUSTER_EGONE: the job is done, and a program that was started too late should exit with 0, so
 * that its exit is not a failure of the job. */
MUSTER_API int muster_elastic_open(const struct muster_elastic_options *options,
                                   struct muster_elastic **ret, struct muster_err *err);
/* Leaves the job, unless muster_elastic_next has returned 0, and frees it. NULL is fine. */
MUSTER_API void muster_elastic_close(struct muster_elastic *job);

/* A piece of the worker's state: a worker that joins reads it from the others. */
struct muster_elastic_piece {
    void *memory; /* the caller's; must outlive the job */
    size_t size_bytes;
};
/* Names all memory that updates after muster_elastic_step change: parameters, optimizer state,
 * counters. Sizes and order must be the same on every worker. Call it before the first
 * muster_elastic_next, and again between two steps if pieces have moved or were added. At most
 * 65,536 pieces. */
MUSTER_API int muster_elastic_state(struct muster_elastic *job,
                                    const struct muster_elastic_piece *pieces, size_t num_pieces,
                                    struct muster_err *err);

/* A pass: what this worker is to compute. */
struct muster_elastic_pass {
    size_t struct_size;      /* set by MUSTER_ELASTIC_PASS_INIT */
    uint64_t version;        /* of the model that this step makes, from 1 */
    uint64_t epoch;          /* from 0 */
    uint32_t micro_batch;    /* 0 ... micro_batches - 1 */
    uint32_t micro_batches;  /* of this step */
    const uint64_t *records; /* until the next call for this job */
    size_t record_count;     /* 0: this worker has no pass in this step: call muster_elastic_step
                                with a NULL gradient */
    double share;            /* record_count / records of the step: the weight of its gradient */
    uint64_t generation;     /* changes whenever workers come or go */
    int rank;                /* in this generation */
    int size;
    uint32_t passes_left;         /* of this worker in this step, after this one */
    uint32_t micro_batch_records; /* more than record_count: records of the micro-batch may have
                                     crashed workers, and are computed in parts, a pass each, or
                                     are set aside */
    uint32_t step_records;        /* of the step, by all workers: the global batch, less those that
                                     are set aside. The same whenever the step is tried again */
};
/* clang-format off */
#define MUSTER_ELASTIC_PASS_INIT                                                                   \
    {sizeof(struct muster_elastic_pass), 0, 0, 0, 0, NULL, 0, 0.0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* 1: a pass is to be computed. 0: all epochs are committed, or as many steps as the coordinator was
 * told (muster coordinator --max-steps), and the coordinator has them durable, or this worker has
 * left (muster_elastic_leave). Between two calls that belong to different versions the model must
 * have been updated. The first call joins the job: it waits until the coordinator has opened a
 * generation with this worker, and the state is that of the others, if there are any. MUSTER_EGONE:
 * the others went on without this worker (it was silent for too long): what it has is of no use; it
 * may open the job anew. MUSTER_EFAILED: the job has failed. */
MUSTER_API int muster_elastic_next(struct muster_elastic *job, struct muster_elastic_pass *ret,
                                   struct muster_err *err);
/* Looks ahead: the records of the next passes of this worker, from its next one on, as they will
 * be while nobody comes or goes: for loaders. Returns how many records it wrote: those of whole
 * passes, ret_counts[0], ret_counts[1] … of them, at most `passes`. */
MUSTER_API size_t muster_elastic_ahead(struct muster_elastic *job, size_t passes,
                                       uint64_t *ret_records, size_t room, size_t *ret_counts);

/* Brings the gradient of the pass, that is of the mean loss over its records. It is copied. extra:
 * options.extra_bytes bytes of the caller that belong to the pass, or NULL.
 *   1  the step is committed: ret_mean has the mean over the step's records, and the caller must
 *      update the model by it now, whatever happens to others;
 *   0  this worker has more passes in this step, maybe those of a lost worker: call
 *      muster_elastic_next.
 * Blocks while others compute and while workers are replaced. type: MUSTER_F32, MUSTER_F64 or
 * MUSTER_BF16; count and type are the same in all passes. ret_mean may be gradient. */
MUSTER_API int muster_elastic_step(struct muster_elastic *job, const void *gradient, size_t count,
                                   enum muster_type type, const void *extra, void *ret_mean,
                                   struct muster_err *err);
/* Where one step changes the model several times (two optimizers, a line search), each gradient
 * depends on the sum of the one before it. Such a step is computed by all of this worker's passes
 * together: after muster_elastic_next and the records of its passes_left (muster_elastic_ahead),
 * muster_elastic_sum takes their gradients, one after the other, and gives the mean over the step's
 * records, so often as is wanted; muster_elastic_commit then ends the step. Between the two the
 * model may be changed, when a copy of it was kept: 0 from either means that workers came or went.
 * The state is to be put back as it was at muster_elastic_next, which is called again, and all
 * passes are computed again. 1: the mean is there; the step is committed, and the model is as the
 * sums have made it. type: MUSTER_F32 or MUSTER_F64. gradients: NULL without records. All workers
 * bring the same number of sums, each of the same shape. extras: of the passes, one after the
 * other, or NULL. */
MUSTER_API int muster_elastic_sum(struct muster_elastic *job, const void *gradients, size_t count,
                                  enum muster_type type, void *ret_mean, struct muster_err *err);
MUSTER_API int muster_elastic_commit(struct muster_elastic *job, const void *extras,
                                     struct muster_err *err);
/* The extras of the last committed step, by micro-batch: micro_batches times extra_bytes. They
 * belong to the library and are valid until the next muster_elastic_step. */
MUSTER_API const void *muster_elastic_extras(const struct muster_elastic *job);

/* Asks to leave at the end of the step: the others do this worker's part, and muster_elastic_next
 * returns 0. It may be called from any thread, and from signal handlers. A program that leaves
 * because of SIGTERM should exit with 143, so that its parent knows that it was pre-empted, and
 * starts it again. If all workers leave before another one has joined, this counts as if all had
 * died: the next worker goes on from the newest checkpoint, or begins from the start. */
MUSTER_API void muster_elastic_leave(struct muster_elastic *job);

/* Reports an error that other workers would meet as well: the job ends, and every worker's next
 * call returns MUSTER_EFAILED with this text, of 4,000 bytes at most. Waits for at most 2 s until
 * the coordinator knows it: 0; otherwise MUSTER_EUNAVAIL. */
MUSTER_API int muster_elastic_fail(struct muster_elastic *job, const char *why,
                                   struct muster_err *err);

struct muster_elastic_info {
    size_t struct_size; /* set by MUSTER_ELASTIC_INFO_INIT */
    uint64_t generation;
    uint64_t version;
    uint64_t epoch;
    uint64_t records_done; /* of all epochs, committed */
    uint64_t records_all;  /* the same, once the job is done */
    uint64_t incarnation;  /* of this worker */
    uint64_t recoveries;   /* generations that began because somebody was lost */
    int64_t recovery_ns;   /* of the last one: from the loss until the next generation was formed */
    int64_t commit_ns;     /* of the last step: from its last pass until it was committed */
    int rank;
    int size;
    int finished;        /* all that the job trains is committed and durable */
    int left;            /* muster_elastic_leave was obeyed */
    uint64_t checkpoint; /* the version of the newest one that the job may go back to; 0: none */
    uint64_t restored; /* the version that the state was read from a checkpoint at; 0: it was not */
    uint64_t diverged; /* how often digests were not alike; and lastly: */
    uint64_t diverged_version;
    int diverged_rank; /* whose: it has the state from the others since */
};
/* clang-format off */
#define MUSTER_ELASTIC_INFO_INIT                                                                   \
    {sizeof(struct muster_elastic_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */
MUSTER_API int muster_elastic_query(const struct muster_elastic *job,
                                    struct muster_elastic_info *ret, struct muster_err *err);

#ifdef __cplusplus
}
#endif
