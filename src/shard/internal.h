/* The state of a job's records, as its step sees it.
 *
 * Layer: pure, private to this folder.
 */
#pragma once

#include "shard/set.h"
#include "shard/shard.h"

struct shard_epoch {
    uint32_t epoch;
    uint64_t size; /* positions: the records at its beginning */
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
    uint64_t told_size;        /* as they were told first */
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
    bool alone; /* what it holds is suspected */
    struct shard_set held;
    uint64_t wanted[SHARD_DATASETS_MAX]; /* 0: it does not wait */
};

/* A range that is not in `to_do`; while it is held, it is also in its owner's set. */
struct shard_suspect {
    struct shard_range range;
    uint32_t tries;
    uint64_t owner; /* 0: nobody holds it */
};

struct shard_aside {
    uint32_t dataset;
    uint64_t record;
};

struct shard_state {
    bool serving;
    bool failed;
    int64_t now_ms;         /* of the last TICK */
    int64_t next_expiry_ms; /* no lease runs out before */
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
    bool owes; /* the last step had `more`: answers that it had no room for come with GO_ON */
    struct shard_effects *effects; /* of the step at hand */
};

/* ---- Effects (effects.c) ---- */

void shard_emit(struct shard_state *state, struct shard_effect effect);
void shard_refuse(struct shard_state *state, uint64_t owner, uint32_t dataset,
                  enum shard_reason reason);
/* Whether a whole grant still has room among the effects; otherwise they get `more`. */
bool shard_has_room(struct shard_state *state);

/* ---- Owners (owners.c) ---- */

/* NULL: unknown. */
struct shard_owner *shard_owner_of(const struct shard_state *state, uint64_t incarnation);
/* A new one. NULL: no memory. */
struct shard_owner *shard_owner_add(struct shard_state *state, uint64_t incarnation,
                                    int64_t expires_ms);
/* It holds nothing and waits for nothing any more. */
void shard_owner_remove(struct shard_state *state, struct shard_owner *owner);
void shard_owner_stop_waiting(struct shard_state *state, struct shard_owner *owner);

/* ---- Epochs (epochs.c) ---- */

bool shard_data_is_valid(const struct shard_dataset *spec);
int shard_data_add(struct shard_state *state, const struct shard_dataset *spec);
void shard_data_extend(struct shard_state *state, uint32_t dataset, uint64_t epochs);
void shard_data_shrink(struct shard_state *state, uint32_t dataset, uint64_t size);
bool shard_data_ended(const struct shard_data *data);
struct shard_epoch *shard_epoch_of(struct shard_data *data, uint32_t epoch);
/* Closes epochs that are done, opens those that may begin. */
void shard_epochs_advance(struct shard_state *state, uint32_t dataset);
/* Called before SERVE: opens the epoch of the range, if it overlaps the one before it, as the
 * journal names it. */
void shard_epochs_reach(struct shard_state *state, struct shard_range range);

/* ---- Grants (grants.c) ---- */

void shard_want(struct shard_state *state, struct shard_owner *owner, uint32_t dataset,
                uint64_t count);
/* Workers that wait, as far as there is something for them. */
void shard_serve_waiting(struct shard_state *state, uint32_t dataset);

/* ---- Parts (parts.c) ---- */

int shard_commit(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_give_back(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_hold(struct shard_state *state, const struct shard_part *parts, size_t count);
/* All that an owner holds. MUSTER_ENOMEM, MUSTER_ETOOBIG. */
int shard_give_back_all(struct shard_state *state, struct shard_owner *owner);
/* Takes a part that was checked from where it is; a node for each was reserved. */
void shard_part_take(struct shard_state *state, struct shard_part part);
/* Refuses the event, unless every part is held by its owner, and comes once. Before SERVE it may
 * also be to do, or suspected. MUSTER_ENOMEM, MUSTER_ETOOBIG. */
int shard_parts_check(struct shard_state *state, const struct shard_part *parts, size_t count,
                      bool *ret_good);

/* ---- Plans (plan.c) ---- */

bool shard_is_planned(const struct shard_state *state, uint32_t dataset);
/* A step that nobody had to be granted, where its parts are of planned data sets; otherwise the
 * event is refused. */
bool shard_plan_check(struct shard_state *state, const struct shard_part *parts, size_t count);

/* ---- Suspects (suspects.c) ---- */

int shard_blame(struct shard_state *state, const struct shard_part *parts, size_t count);
int shard_leave_out(struct shard_state *state, const struct shard_part *parts, size_t count);
/* A new epoch, none of which is granted: what is set aside is done. A node for each was reserved.
 */
void shard_aside_skip(struct shard_state *state, uint32_t dataset, struct shard_epoch *epoch);
/* NULL: there is none that nobody holds. */
struct shard_suspect *shard_suspect_free(struct shard_state *state, uint32_t dataset);
/* The first behind `after` (NULL: of all) that nobody holds, where it lies before *next; false:
 * there is none. */
bool shard_suspect_next(const struct shard_state *state, uint32_t dataset,
                        const struct shard_range *after, struct shard_range *next);
/* The first that overlaps the range; NULL. */
struct shard_suspect *shard_suspect_in(const struct shard_state *state, struct shard_range range);
/* The range is suspected no more, where it was. */
void shard_suspect_clear(struct shard_state *state, struct shard_range range);
void shard_suspect_add(struct shard_state *state, struct shard_suspect suspect);
