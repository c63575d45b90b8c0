/* What the tests of the arbiter's decisions share: small scenes, with a journal that is a list, and
 * members that are messages.
 *
 * Tests only. Functions named by a verb (joins, reports, commits …) are what a member says.
 */
#pragma once

#include "base/testing/test.h"
#include "coordinator/arbiter/arbiter.h"
#include "coordinator/arbiter/entry.h"
#include "wire/incarnation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 256, SENT_MAX = 256, BATCH = 4 };

struct sent {
    enum wire_kind kind;
    uint64_t to;
    uint64_t version; /* ACK, OPEN: base */
    bool restore;
    bool last;
    struct shard_range range; /* GRANT, OPEN: the first */
    uint32_t ranges;
    uint32_t members;
    uint32_t asides; /* OPEN: how many records are set aside, the first of them */
    uint64_t aside;
    struct shard_anchor anchor;
    char loaded[8]; /* OPEN: a 1 for each member that has the state, else a 0 */
    struct wire_dataset dataset;
    char why[256];   /* REFUSED, EXPELLED */
    size_t appended; /* records of the journal before it was sent */
};

struct scene {
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    struct muster_err err;
    int64_t now_ms;
    struct {
        uint32_t kind;
        size_t count;
        uint8_t *bytes;
    } journal[RECORDS_MAX];
    size_t journaled;
    struct sent sent[SENT_MAX];
    size_t sent_count;
    uint64_t hung_up; /* the last one */
    uint64_t lost;    /* the last one, and why */
    int told;         /* how many effects were of that */
    enum rendezvous_reason reason;
    int opened;
    bool served, ended;
    bool planned;             /* no data set in the options */
    struct wire_dataset plan; /* of planned_scene */
    char failure[512];
    char aside[512]; /* the last one */
    uint64_t hangs;  /* the last one */
};

extern const struct shard_dataset twenty; /* 20 records, one epoch, steps of BATCH */
extern const struct wire_dataset mnist;   /* 22 records: steps of 8, 8 and 6 */

/* Of scenes that begin. */
extern int64_t pass_max_ms;
extern uint64_t max_steps;

int feed(struct scene *scene, struct arbiter_event event);

/* Starts a coordinator anew with the first records of the journal; what START says to it. */
int try_begin(struct scene *scene, size_t records);

/* The same, where it must succeed. */
void begin(struct scene *scene, size_t records);

/* A coordinator of the data set `twenty`, or of none until a member declares one. end_scene frees.
 */
struct scene *new_scene(void);
struct scene *new_scene_of(bool planned);
void end_scene(struct scene *scene);

/* One of planned data sets, to which members 1 and 2 have come. */
struct scene *scene_of_plan(struct wire_dataset plan);
struct scene *planned_scene(void);

int feed(struct scene *scene, struct arbiter_event event);

/* A message of a member, and what is made of it: 0, or a negative muster_error. What was sent
 * before is forgotten. */
int says(struct scene *scene, uint64_t who, struct wire_message message);

/* The same for each kind; these must succeed, but for a commit. */
void joins(struct scene *scene, uint64_t who);
void joins_as(struct scene *scene, uint64_t who, struct wire_text name);
void asks(struct scene *scene, uint64_t who, uint64_t records);
int commits(struct scene *scene, uint64_t who, uint64_t version, uint64_t first, uint32_t count);
void reports(struct scene *scene, uint64_t who, uint64_t version, uint64_t first, uint32_t count,
             bool closed);
void finishes(struct scene *scene, uint64_t who);
void declares(struct scene *scene, uint64_t who, struct wire_dataset dataset);
void has_at_hand(struct scene *scene, uint64_t who, uint64_t first, uint32_t count);
void has_at_hand_in(struct scene *scene, uint64_t who, uint64_t generation, uint64_t first,
                    uint32_t count);

/* The first message of that kind to a member since the last one that came; NULL: none. */
const struct sent *sent_to(const struct scene *scene, uint64_t who, enum wire_kind kind);

/* The journal becomes one record. */
void compacts(struct scene *scene);
