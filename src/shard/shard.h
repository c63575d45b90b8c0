/* The records of a job: which are still to be trained, who holds them, and which are done.
 *
 * shard_step() gets one event and returns what is to be done, in order (effects). Each record of an
 * epoch is done exactly once: it is to do, held by one worker (its owner), suspected, or done.
 *
 *     to do      the order of the epoch from front to back          WANT → held
 *     held       granted to an owner, uncommitted                   COMMIT → done
 *                                                                   GONE, GIVE_BACK → to do
 *                                                                   BLAME → suspected
 *     suspected  was in flight when a worker crashed; granted       WANT of a worker that holds
 *                alone, in parts; named as poison → done (set       nothing → held
 *                aside, in later epochs, too), or the job fails
 *     done       its update is in the model
 *
 * Records that come back are granted before all that were never granted. The holders of records are
 * not part of a snapshot: after restoring, records are to do or done, and nothing is granted until
 * SERVE. Before SERVE, workers report the records that they hold (HELD), and records that the
 * journal has as committed are removed from those to do.
 *
 * An owner whose lease ran out (EXPIRED) keeps its records, and may have them committed, until GONE
 * says that it can commit nothing any more. An owner that waits gets END when all records are done,
 * never before.
 *
 * Records of a data set with `micro_batches` are planned and never granted: every worker knows
 * which come next, and a commit has exactly these, in their order.
 *
 * A few numbers suffice for a data set of any size: a position that is in no set is done.
 *
 * Layer: pure. Memory: shard_init/done; texts and arrays of events are borrowed for the call.
 * Thread: one.
 */
#pragma once

#include "shard/range.h"

#include <stddef.h>

enum {
    SHARD_DATASETS_MAX = 16,
    SHARD_NAME_BYTES = 64,
    SHARD_OWNERS_MAX = 16384,
    SHARD_RANGES_MAX = 4 << 20, /* of all sets, unless shard_new gets a smaller number */
    SHARD_GRANT_RANGES = 64,    /* of one grant */
    SHARD_EFFECTS_MAX = 128,
    SHARD_PARTS_MAX = 32, /* of one HELD or BLAME */
    SHARD_SUSPECTS_MAX = 256,
    SHARD_ASIDE_MAX = 1024,
    SHARD_TRIES = 3, /* crashes until a single record is named */
    SHARD_LEASE_MS = 30000,
};

#define SHARD_SIZE_MAX (UINT64_C(1) << 40)
#define SHARD_ENDLESS UINT32_MAX /* epochs */
#define SHARD_ANY_OWNER 0        /* of a part: its holders, of which there may be several */

enum shard_task { SHARD_TRAIN, SHARD_EVALUATE, SHARD_PREDICT, SHARD_TASKS };

struct shard_dataset {
    char name[SHARD_NAME_BYTES]; /* NUL-terminated; may be "" */
    enum shard_task task;
    uint64_t size;   /* records, 1 … SHARD_SIZE_MAX */
    uint32_t epochs; /* 0: none yet (EXTEND), SHARD_ENDLESS */
    uint64_t seed;
    uint32_t block; /* of the shuffle, see shard_order_init */
    uint32_t batch; /* records that one worker takes at a time: grants are multiples of it, except
                       the last one */
    uint32_t micro_batches; /* 0: leased. Planned: positions of a step, in units of `batch`, or the
                               rest of its epoch; it cannot be extended or shrunk */
    bool per_worker; /* planned: micro_batches is for each worker. The caller checks how many a step
                        has (anchor.h): any number of whole ones is accepted, or the rest of the
                        epoch */
    bool overlap;    /* an epoch begins when the one before it is completely granted, not when it is
                        done */
    bool set_aside;  /* a poisonous record is set aside; otherwise it fails the job */
};

enum shard_event_kind {
    SHARD_DATASET,   /* dataset_spec: a new one; the same name again is the same data set */
    SHARD_EXTEND,    /* dataset, count: epochs to add */
    SHARD_SHRINK,    /* dataset, count: the number of records that it really has */
    SHARD_JOIN,      /* owner, expires_ms */
    SHARD_RENEW,     /* owner, expires_ms */
    SHARD_WANT,      /* owner, dataset, count: the number of records that it asks for */
    SHARD_STOP,      /* owner: it has died and waits for nothing any more; BLAME or GONE follows */
    SHARD_COMMIT,    /* parts: done, all of them or none */
    SHARD_GIVE_BACK, /* parts: not trained, by owners that go on; all of them or none */
    SHARD_BLAME,     /* parts: in flight when their owner crashed; GONE follows */
    SHARD_LEAVE_OUT, /* parts: one, of one position, which needs no owner: its record is set aside,
                        because the journal says so */
    SHARD_GONE,      /* owner: it died or left; all records that it holds are to do again */
    SHARD_HELD,  /* parts: records that an owner held before a restart; before SERVE only. Pieces
                    that are done or held by another owner are refused, the others are held */
    SHARD_SERVE, /* every worker has reported its held records: grants begin */
    SHARD_TICK,  /* now_ms */
    SHARD_GO_ON, /* after effects that had `more` */
    SHARD_EVENTS,
};

/* Records of one owner. */
struct shard_part {
    uint64_t owner;
    struct shard_range range;
};

struct shard_event {
    enum shard_event_kind kind;
    uint64_t owner; /* the incarnation of a worker process, never 0 */
    uint32_t dataset;
    uint64_t count;
    int64_t now_ms;
    int64_t expires_ms; /* at least SHARD_LEASE_MS from now */
    const struct shard_dataset *dataset_spec;
    const struct shard_part *parts;
    size_t part_count;
};

enum shard_effect_kind {
    SHARD_ADDED,      /* dataset: its number; it was added now, or before */
    SHARD_REFUSED,    /* owner, dataset, range if the event had them: reason */
    SHARD_GRANTED,    /* owner, range; a grant of several ranges has one effect for each */
    SHARD_WAIT,       /* owner, dataset: nothing is to do now; GRANTED or END comes later */
    SHARD_END,        /* owner, dataset: every epoch is done */
    SHARD_EXPIRED,    /* owner: its lease has ended */
    SHARD_SHRUNK,     /* dataset, count: workers skip and commit the records from this number on */
    SHARD_EPOCH_DONE, /* dataset, range.epoch; count: its records */
    SHARD_SUSPECTED,  /* range; count: the crashes in which it was in flight */
    SHARD_SET_ASIDE,  /* range: one position; record; count: crashes */
    SHARD_FAILED,     /* as SET_ASIDE; nothing is granted any more */
};

enum shard_reason {
    SHARD_OK,
    SHARD_NO_OWNER,    /* unknown, gone, or expired: join again */
    SHARD_NO_DATASET,  /* no data set has this number */
    SHARD_BAD_REQUEST, /* numbers that make no sense */
    SHARD_CONFLICT,  /* a data set of this name has other parameters; or the owner exists already */
    SHARD_NOT_HELD,  /* a range is not held by its owner (before SERVE: and not to do) */
    SHARD_TWICE,     /* a range comes twice */
    SHARD_FULL,      /* too many data sets or owners */
    SHARD_POISONED,  /* the job has failed */
    SHARD_UNPLANNED, /* a commit does not have the next records of the plan */
    SHARD_REASONS,
};

struct shard_effect {
    enum shard_effect_kind kind;
    enum shard_reason reason;
    uint64_t owner;
    uint32_t dataset;
    struct shard_range range;
    uint64_t count;
    uint64_t record;
    bool alone; /* GRANTED: suspected records; the worker gets no others meanwhile */
};

struct shard_effects {
    struct shard_effect list[SHARD_EFFECTS_MAX];
    size_t count;
    bool more; /* GO_ON must follow */
};

struct shard_state;

/* Returns NULL if there is no memory. ranges_max: 0 for SHARD_RANGES_MAX. For a new job the caller
 * steps SERVE at once. */
struct shard_state *shard_new(uint32_t ranges_max);
void shard_free(struct shard_state *state);

/* Returns 0; MUSTER_ENOMEM or MUSTER_ETOOBIG (ranges_max): nothing was changed, and the step may be
 * tried again. ret is written in every case. */
int shard_step(struct shard_state *state, const struct shard_event *event,
               struct shard_effects *ret);

/* Returns into how many parts the records are divided after workers have died of them `tries`
 * times: about as many parts as a part has records, so that two more deaths name the last record;
 * at most `room`. */
uint32_t shard_suspect_parts(uint32_t records, uint32_t tries, uint32_t room);

/* ---- What is known ---- */

struct shard_progress {
    struct shard_dataset dataset; /* size: the present one; epochs: with those added */
    uint32_t epoch;      /* the first that is not done; equal to epochs when all are done */
    uint64_t epoch_size; /* positions of that epoch */
    uint64_t epoch_done;
    uint64_t to_do; /* of all open epochs */
};

bool shard_progress(const struct shard_state *state, uint32_t dataset, struct shard_progress *ret);
bool shard_has_failed(const struct shard_state *state);
/* Returns the number of records that the owner holds; 0 if the owner is not known. */
uint64_t shard_held(const struct shard_state *state, uint64_t owner);
/* Finds the next range that the owner holds, after `after` (NULL: the first); false: there are no
 * more. */
bool shard_held_next(const struct shard_state *state, uint64_t owner,
                     const struct shard_range *after, struct shard_range *ret);
/* Finds the next range of a data set that is to do, suspected or not, after `after` (NULL: the
 * first); false: there are no more. */
bool shard_to_do_next(const struct shard_state *state, uint32_t dataset,
                      const struct shard_range *after, struct shard_range *ret);
/* Returns the number of positions of an open epoch, which shard_order_init needs; 0: it is not
 * open. */
uint64_t shard_epoch_size(const struct shard_state *state, uint32_t dataset, uint32_t epoch);
/* Returns the records that were set aside, by number from 0; false: there are no more. */
bool shard_aside(const struct shard_state *state, size_t number, uint32_t *ret_dataset,
                 uint64_t *ret_record);
/* Returns when the next lease can end; INT64_MAX: there is no lease. */
int64_t shard_next_ms(const struct shard_state *state);
size_t shard_bytes(const struct shard_state *state);

const char *shard_reason_text(enum shard_reason reason);

/* Returns NULL, or the name of the invariant that is violated. It visits everything: for tests. */
const char *shard_check(const struct shard_state *state);

/* ---- Snapshots ---- */

/* Returns how much room a snapshot needs at most. */
size_t shard_snapshot_bound(const struct shard_state *state);
/* Returns the number of bytes written. */
size_t shard_snapshot(const struct shard_state *state, void *ret, size_t size_bytes);
/* Restores a snapshot into a new state. MUSTER_EDATA: it is not a valid snapshot, or it contradicts
 * itself. */
int shard_restore(const void *bytes, size_t size_bytes, uint32_t ranges_max,
                  struct shard_state **ret);
