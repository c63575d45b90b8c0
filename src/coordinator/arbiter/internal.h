/* The arbiter's state, as its files share it.
 *
 * Layer: program (coordinator), private to this folder.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"
#include "coordinator/arbiter/entry.h"
#include "coordinator/arbiter/leasing.h"
#include "coordinator/arbiter/ledger.h"
#include "coordinator/arbiter/losses.h"

/* Data about a process that rendezvous does not keep; it has the same slot there. */
struct card {
    uint64_t incarnation;
    uint64_t asked; /* records that it must request from the table of records; 0: none */
    uint64_t waits; /* … that it has requested, and that are not granted yet */
    struct wire_address address;
    uint64_t environment; /* a digest of what its bits depend on; 0: not required, or not known */
    struct shard_range at_hand; /* its last report; count 0: nothing is at hand */
    uint64_t told_in;           /* the generation in which it computes these records */
    int64_t since_ms;           /* when it reported them */
    uint64_t passes;            /* passes that it has reported and completed */
    uint32_t least, most;       /* records of these passes; both are 0 before the first one */
    bool expired;
    bool silent; /* it was given up because its lease ended: its process may still exist */
    char name[ARBITER_NAME_BYTES]; /* of its pod, clean; "": it has sent none */
    bool away;                     /* its connection has ended */
    bool watched;                  /* … and the end of its process will be reported */
    bool broken_off;               /* its program has ended its loop early */
    bool judged;                   /* its death was judged, or will be */
    uint64_t missed;               /* the generation in which another member has lost it; 0: none */
};

/* A checkpoint as its member reported it. */
struct saved {
    struct wire_checkpoint told; /* its path is in `path` */
    char path[WIRE_TEXT_MAX];
};

/* Records that were at hand of workers that died. They are suspects until their step is
 * committed. */
struct arbiter_suspect {
    struct shard_range range;
    uint32_t tries;       /* 0: of a step of which no worker reported what it had at hand */
    uint64_t opened_with; /* the first generation whose members know of it; 0: none */
};

/* A worker that may have died of what it computed. */
struct arbiter_death {
    uint64_t incarnation;
    struct shard_range at_hand;
    uint64_t told_in; /* as told_in of its card */
};

enum { ARBITER_DEATHS_MAX = 64, ARBITER_PASSES_KEPT = 31 };

/* The times that passes take. */
struct hangs {
    int64_t limit_ms; /* the user's limit; 0: by the passes; < 0: none */
    int64_t max_ms;   /* the maximum of a limit by the passes; 0: no limit */
    int64_t look_ms;  /* INT64_MAX: no member has a pass at hand */
    int64_t passes[ARBITER_PASSES_KEPT];
    size_t pass_count;
};

struct arbiter {
    int64_t lease_ms;
    int64_t first_ms;
    uint64_t least_term;
    uint64_t max_steps; /* of the options; the ledger has that of the job */
    int64_t now_ms;
    int64_t deadline_ms; /* INT64_MAX: none */
    uint64_t deadline_generation;
    struct rendezvous *rendezvous;
    struct rendezvous_effects asked; /* effects of rendezvous_step */
    struct ledger ledger;
    struct leases leases;
    struct losses losses;
    uint64_t environment; /* from the journal: that of all members if equal bits are required;
                             otherwise 0 */
    struct asides asides;
    uint32_t asides_opened; /* the first ones, which all members of the generation leave out */
    struct shard_dataset datasets[SHARD_DATASETS_MAX];
    size_t dataset_count;
    uint32_t micro_batches;
    struct shard_anchor anchor; /* of generation `anchored`, if its steps follow the workers */
    struct shard_anchor anchor_before; /* while that generation is recorded: the open one's */
    uint64_t anchored;                 /* a generation */
    struct card *cards;
    struct saved saved[RENDEZVOUS_CHECKPOINTS_MAX]; /* in the journal; their versions ascend */
    size_t saved_count;
    struct saved offered; /* the log has not reached its version yet */
    struct arbiter_suspect suspects[WIRE_SUSPECTS_MAX];
    uint32_t suspect_count;
    struct arbiter_death deaths[ARBITER_DEATHS_MAX]; /* deaths whose causes are not known yet */
    uint32_t death_count;
    uint64_t blames;      /* how often suspects, or records set aside, have changed */
    uint64_t blames_told; /* … up to which the members of the open generation know them */
    struct hangs hangs;
    struct buf failure;  /* from the journal: why the job has failed; empty: it has not */
    struct buf prepared; /* COMMITS of the step that a report prepared */
    bool serving;        /* records can be granted */
    bool any_asked;
    bool any_expired;
    bool trained; /* all members have ended well; work by leases continues */
    bool over;
    uint64_t told_generation; /* the generation whose members may hold records */
    /* of the current step */
    const struct arbiter_event *event;
    struct arbiter_effects *out;
    struct arbiter_effects grants; /* the last effects of the step, after SYNC */
    struct muster_err *err;
    int failed;
    bool open_written; /* as a frame for all members */
    size_t open_offset;
    size_t open_count;
};

/* Notes a failure; the first one is the result of the step. */
void arbiter_fail(struct arbiter *a, int code);

/* ---- Events of rendezvous (step.c) ---- */

/* Gives an event to rendezvous, and carries out its effects. */
void arbiter_tell(struct arbiter *a, const struct rendezvous_event *event);

/* ---- Messages of workers (hear.c) ---- */

/* Handles the message of the current event. */
void arbiter_hear(struct arbiter *a);

/* ---- Effects of rendezvous (announce.c) ---- */

void arbiter_carry_out(struct arbiter *a, const struct rendezvous_effect *effect);
/* Sets the deadline of a generation: members that have not reported by then are silent. */
void arbiter_await_reports(struct arbiter *a, uint64_t generation, int64_t wait_ms);
void arbiter_add(struct arbiter *a, enum arbiter_effect_kind kind);
void arbiter_end(struct arbiter *a);
/* Reports a lost worker to people; appends it to the journal if it counts as a loss. */
void arbiter_lose(struct arbiter *a, enum arbiter_effect_kind kind, uint64_t incarnation,
                  enum rendezvous_reason reason);

/* ---- The end of a job that has failed (announce.c) ---- */

/* Fails the job: all members are informed, and the journal has the reason; text is not empty. */
void arbiter_fail_job(struct arbiter *a, const char *text);
bool arbiter_has_failed(const struct arbiter *a);
void arbiter_announce_failure(struct arbiter *a);
void arbiter_expel_failed(struct arbiter *a, uint64_t incarnation);

/* ---- Records that workers die of (blame.c) ---- */

void arbiter_blame_hear(struct arbiter *a, struct card *card, const struct wire_pass *told);
void arbiter_blame_dead(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
void arbiter_blame_settle(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
void arbiter_blame_left_out(struct arbiter *a, uint64_t incarnation, enum rendezvous_reason reason);
/* Called when OPEN was written for the members of a generation. */
void arbiter_blame_note_open(struct arbiter *a);
/* Clears records that are trained: they are not poisonous. */
void arbiter_blame_clear(struct arbiter *a, const struct wire_ranges *ranges);
/* Writes "3 workers died, one after the other, of record 5 of data set …". */
void arbiter_blame_say(const struct shard_dataset *spec, struct shard_range range, uint32_t tries,
                       struct buf *text);
/* Reports to people a record that is set aside. */
void arbiter_blame_say_aside(struct arbiter *a, uint64_t record, const struct buf *why);
/* ---- Passes that do not come back (hang.c) ---- */

/* Called before card->at_hand gets this value. */
void arbiter_hang_note(struct arbiter *a, struct card *card, struct shard_range at_hand);
/* Returns the member that is expelled because it hangs; 0: none. */
uint64_t arbiter_hang_look(struct arbiter *a);

uint32_t arbiter_blame_list(const struct arbiter *a, struct shard_range *ret);

/* ---- Effects (send.c) ---- */

void arbiter_append(struct arbiter *a, enum entry_kind kind, size_t offset);
void arbiter_send(struct arbiter *a, uint64_t to, struct wire_message *message);
void arbiter_send_open(struct arbiter *a, const struct rendezvous_effect *effect);
/* Writes OPEN as a record, with the members of the next generation. */
void arbiter_write_open(struct arbiter *a, const struct rendezvous_effect *effect, bool next,
                        struct buf *ret);
/* Writes the name without characters that must not be shown. */
void arbiter_clean_name(const struct wire_text *name, char ret[ARBITER_NAME_BYTES]);
/* Writes the names of the members, in the same order; see replay_names. */
void arbiter_write_names(const struct arbiter *a, bool next, struct buf *ret);

/* Collects the ranges that are granted to the owner of the `first` effect, there and directly after
 * it: they make one message. Returns how many effects these are. */
uint32_t arbiter_granted_to_one(const struct shard_effects *effects, size_t first,
                                struct shard_range ret[SHARD_EFFECTS_MAX]);
void arbiter_send_grant(struct arbiter *a, uint64_t to, const struct wire_grant *grant);
void arbiter_send_grants(struct arbiter *a);                          /* at the end of the step */
void arbiter_refuse(struct arbiter *a, uint64_t to, const char *why); /* and hangs up */

/* ---- Data sets (datasets.c) ---- */

void arbiter_datasets_declare(struct arbiter *a); /* those of the options, and the limit of steps */
void arbiter_datasets_hear(struct arbiter *a, const struct wire_dataset *told);

/* Returns in *ret_number the number of the data set, or the next free number. */
bool arbiter_datasets_find(const struct shard_state *shard, const struct wire_text *name,
                           uint32_t *ret_number, struct shard_dataset *ret);
void arbiter_datasets_read(const struct wire_dataset *told, uint32_t micro_batches,
                           struct shard_dataset *ret);
enum { ARBITER_WHY_BYTES = 256 };
/* Whether both describe the same data set; otherwise ret_why names the first field that differs. */
bool arbiter_datasets_agree(const struct shard_dataset *theirs, const struct shard_dataset *job,
                            char *ret_why);
void arbiter_datasets_answer(struct arbiter *a, uint64_t to, const struct shard_dataset *spec,
                             uint32_t number);

/* ---- Steps whose size follows the workers (anchors.c) ---- */

/* Called when a generation is recorded, before the step that it commits, if any. */
void arbiter_anchor_move(struct arbiter *a, const struct rendezvous_effect *effect);
/* Called when a generation was read from the journal, after all entries before it. */
void arbiter_anchor_take(struct arbiter *a, const struct wire_open *open);
const struct shard_anchor *arbiter_anchor_of(const struct arbiter *a, uint64_t generation);
/* Checks the size of the next step. MUSTER_EDATA: it has more or fewer records than its generation
 * requires. */
int arbiter_anchor_check(const struct arbiter *a, const struct wire_step *step,
                         struct muster_err *err);

/* Returns the number of positions in the next step of a planned data set that is not done. */
uint32_t arbiter_step_positions(const struct arbiter *a, const struct shard_progress *data);
/* Returns the number of positions in all steps of a planned data set until this one; `all` if this
 * step is the last one or comes after it, is 0, or the data set is not planned. */
uint64_t arbiter_positions_until(const struct arbiter *a, const struct shard_dataset *spec,
                                 uint64_t version, uint64_t all);

/* ---- Records (records.c) ---- */

void arbiter_records_commit(struct arbiter *a, const struct wire_message *commits);

void arbiter_records_join(struct arbiter *a);
void arbiter_records_ask(struct arbiter *a, struct card *card, uint64_t records);
void arbiter_records_serve(struct arbiter *a);
void arbiter_records_take(struct arbiter *a, uint64_t owner, const struct wire_ranges *leases);
void arbiter_records_resend(struct arbiter *a, uint64_t owner);
void arbiter_records_return(struct arbiter *a, uint64_t owner);
void arbiter_records_renew(struct arbiter *a, uint64_t owner);
void arbiter_records_tick(struct arbiter *a);

/* Returns NULL if the process is not known. */
struct card *arbiter_card(struct arbiter *a, uint64_t incarnation);
