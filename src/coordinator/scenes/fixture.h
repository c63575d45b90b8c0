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
    uint64_t version; /* ACK: the version; OPEN: the base */
    bool restore;
    bool last;
    struct shard_range range; /* GRANT, OPEN: the first range */
    uint32_t ranges;
    uint32_t members;
    uint32_t asides; /* OPEN: the number of records that are set aside, and the first of them */
    uint64_t aside;
    struct shard_anchor anchor;
    char loaded[8]; /* OPEN: '1' for each member that has the state, otherwise '0' */
    struct wire_dataset dataset;
    char why[256];   /* REFUSED, EXPELLED */
    size_t appended; /* the number of records in the journal before it was sent */
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
    int told;         /* the number of effects that report a lost one */
    enum rendezvous_reason reason;
    int opened;
    bool served, ended;
    bool planned;             /* the options have no data set */
    struct wire_dataset plan; /* of planned_scene */
    char failure[512];
    char aside[512]; /* the last one */
    uint64_t hangs;  /* the last one */
};

extern const struct shard_dataset twenty; /* 20 records, one epoch, steps of BATCH */
extern const struct wire_dataset mnist;   /* 22 records: steps of 8, 8 and 6 */

/* Options of scenes that begin later. */
extern int64_t pass_max_ms;
extern uint64_t max_steps;

int feed(struct scene *scene, struct arbiter_event event);

/* Starts a coordinator again with the first records of the journal. Returns the result of START. */
int try_begin(struct scene *scene, size_t records);

/* Does the same; it must succeed. */
void begin(struct scene *scene, size_t records);

/* Makes a scene with a coordinator of the data set `twenty`, or without one until a member declares
 * one. end_scene frees it. */
struct scene *new_scene(void);
struct scene *new_scene_of(bool planned);
void end_scene(struct scene *scene);

/* Makes a scene of a planned data set, which members 1 and 2 have joined. */
struct scene *scene_of_plan(struct wire_dataset plan);
struct scene *planned_scene(void);

int feed(struct scene *scene, struct arbiter_event event);

/* Handles a message of a member. Returns 0, or a negative muster_error. Earlier sent messages are
 * forgotten. */
int says(struct scene *scene, uint64_t who, struct wire_message message);

/* Do the same for one kind each; all must succeed, except commits. */
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

/* Returns the first message of that kind that was sent to a member since the last event; NULL:
 * there is none. */
const struct sent *sent_to(const struct scene *scene, uint64_t who, enum wire_kind kind);

/* Replaces the journal by one record. */
void compacts(struct scene *scene);
