/* The state of a job's records, as its step sees it.
 *
 * Layer: pure, private to this folder.
 */
#pragma once

#include "shard/set.h"
#include "shard/shard.h"

struct shard_epoch {
    uint32_t epoch;
    uint64_t size; /* positions: the number of records when the epoch began */
    uint64_t done;
};

/* Workers that wait for records, in the order in which they asked. */
struct shard_queue {
    uint64_t *owners; /* room for SHARD_OWNERS_MAX */
    size_t head;
    size_t count;
};

enum { SHARD_OPEN_MAX = 2 };

struct shard_data {
    struct shard_dataset spec; /* size and epochs as they are now */
    uint64_t told_size;        /* as in the first DATASET */
    uint32_t told_epochs;
    struct shard_epoch open[SHARD_OPEN_MAX]; /* the oldest first */
    size_t open_count;
    uint32_t next_epoch; /* the first that was never open */
    struct shard_set to_do;
    struct shard_queue waiting;
};

struct shard_owner {
    uint64_t incarnation;
    int64_t expires_ms;
    bool expired;
    bool alone; /* its held records are suspected */
    struct shard_set held;
    uint64_t wanted[SHARD_DATASETS_MAX]; /* 0: it does not wait */
};

/* A range that is not in `to_do`; while it is held, it is also in its owner's set. */
struct shard_suspect {
    struct shard_range range;
    uint32_t tries;
    uint64_t owner; /* 0: it has no holder */
};

struct shard_aside {
    uint32_t dataset;
    uint64_t record;
};

struct shard_state {
    bool serving;
    bool failed;
    int64_t now_ms;         /* of the last TICK */
    int64_t next_expiry_ms; /* no lease ends before this */
    struct shard_nodes nodes;
    struct shard_data data[SHARD_DATASETS_MAX];
    uint32_t data_count;
    struct shard_owner **owners; /* by incarnation; room for SHARD_OWNERS_MAX */
    size_t owner_count;
    size_t last_holder; /* where the search for the holder of a range begins */
    struct shard_suspect suspects[SHARD_SUSPECTS_MAX];
    size_t suspect_count;
    struct shard_aside aside[SHARD_ASIDE_MAX];
    size_t aside_count;
    bool owes; /* the last step had `more`: GO_ON brings the answers that it had no room for */
    struct shard_effects *effects; /* of the current step */
};

/* ---- Effects (effects.c) ---- */

void shard_emit(struct shard_state *state, struct shard_effect effect);
void shard_refuse(struct shard_state *state, uint64_t owner, uint32_t dataset,
                  enum shard_reason reason);
/* Whether the effects have room for a whole grant; otherwise sets `more`. */
bool shard_has_room(struct shard_state *state);

/* ---- Owners (owners.c) ---- */

/* Returns NULL if the owner is not known. */
struct shard_owner *shard_owner_of(const struct shard_state *state, uint64_t incarnation);
/* Adds an owner. Returns NULL if there is no memory. */
struct shard_owner *shard_owner_add(struct shard_state *state, uint64_t incarnation,
                                    int64_t expires_ms);
/* Removes an owner, which must hold nothing and wait for nothing. */
void shard_owner_remove(struct shard_state *state, struct shard_owner *owner);
void shard_owner_stop_waiting(struct shard_state *state, struct shard_owner *owner);

/* ---- Epochs (epochs.c) ---- */

bool shard_data_is_valid(const struct shard_dataset *spec);
int shard_data_add(struct shard_state *state, const struct shard_dataset *spec);
void shard_data_extend(struct shard_state *state, uint32_t dataset, uint64_t epochs);
void shard_data_shrink(struct shard_state *state, uint32_t dataset, uint64_t size);
bool shard_data_ended(const struct shard_data *data);
struct shard_epoch *shard_epoch_of(struct shard_data *data, uint32_t epoch);
/* Closes epochs that are done, and opens those that may begin. */
void shard_epochs_advance(struct shard_state *state, uint32_t dataset);
/* Called before SERVE for a range that the journal names: opens its epoch, if this may overlap the
 * one before it. */
void shard_epochs_reach(struct shard_state *state, struct shard_range range);

/* ---- Grants (grants.c) ---- */

void shard_want(struct shard_state *state, struct shard_owner *owner, uint32_t dataset,
                uint64_t count);
/* Grants records to workers that wait, as long as there are any for them. */
void shard_serve_waiting(struct shard_state *state, uint32_t dataset);

/* ---- Parts (parts.c) ---- */

int shard_commit(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_give_back(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_hold(struct shard_state *state, const struct shard_part *parts, size_t count);
/* Gives back all records that an owner holds. MUSTER_ENOMEM, MUSTER_ETOOBIG. */
int shard_give_back_all(struct shard_state *state, struct shard_owner *owner);
/* Takes a checked part out of the place where it is; a node must be reserved for each part. */
void shard_part_take(struct shard_state *state, struct shard_part part);
/* Refuses the event, unless every part is held by its owner and no part comes twice. Before SERVE a
 * part may also be to do, or suspected. MUSTER_ENOMEM, MUSTER_ETOOBIG. */
int shard_parts_check(struct shard_state *state, const struct shard_part *parts, size_t count,
                      bool *ret_good);

/* ---- Plans (plan.c) ---- */

bool shard_is_planned(const struct shard_state *state, uint32_t dataset);
/* Checks a step whose parts are of planned data sets, which are not granted; refuses the event if
 * the plan has other records. */
bool shard_plan_check(struct shard_state *state, const struct shard_part *parts, size_t count);

/* ---- Suspects (suspects.c) ---- */

int shard_blame(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_leave_out(struct shard_state *state, const struct shard_part *parts, size_t count);
/* Skips the records that are set aside in a new epoch, of which nothing is granted yet: they are
 * done. A node must be reserved for each. */
void shard_aside_skip(struct shard_state *state, uint32_t dataset, struct shard_epoch *epoch);
/* Returns a suspect that no owner holds, or NULL. */
struct shard_suspect *shard_suspect_free(struct shard_state *state, uint32_t dataset);
/* Finds the first suspect after `after` (NULL: of all) that no owner holds, if it is before *next;
 * false: there is none. */
bool shard_suspect_next(const struct shard_state *state, uint32_t dataset,
                        const struct shard_range *after, struct shard_range *next);
/* Returns the first suspect that overlaps the range, or NULL. */
struct shard_suspect *shard_suspect_in(const struct shard_state *state, struct shard_range range);
/* Clears the range of suspicion, if there was any. */
void shard_suspect_clear(struct shard_state *state, struct shard_range range);
void shard_suspect_add(struct shard_state *state, struct shard_suspect suspect);
