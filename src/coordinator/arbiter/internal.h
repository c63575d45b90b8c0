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

/* What is known of a process beside what rendezvous keeps; in its slot there. */
struct card {
    uint64_t incarnation;
    uint64_t asked; /* records that the table of records is to be asked for; 0: none */
    uint64_t waits; /* … that it was asked for, and has not granted */
    struct wire_address address;
    uint64_t environment;       /* that its bits depend on; 0: nobody cares, or it is not known */
    struct shard_range at_hand; /* count 0: nothing that it told of */
    uint64_t told_in;           /* the generation in which it computes that */
    int64_t since_ms;           /* when it told so */
    uint64_t passes;            /* that it told of, and brought back */
    uint32_t least, most;       /* records of those; both are 0 before the first */
    bool expired;
    bool silent; /* it is given up as its lease ran out: nobody knows of its process */
    char name[ARBITER_NAME_BYTES]; /* of its pod, clean; "": it has said none */
    bool away;                     /* its connection has ended */
    bool watched;                  /* … and how its process ends will be told */
    bool broken_off;               /* its program has ended its loop by itself */
    bool judged;                   /* its death was, or will be */
    uint64_t missed;               /* the generation in which another one has lost it; 0: none */
};

/* A checkpoint as its member told it. */
struct saved {
    struct wire_checkpoint told; /* its path is in `path` */
    char path[WIRE_TEXT_MAX];
};

/* Records that were at hand of workers that died; until their step is committed. */
struct arbiter_suspect {
    struct shard_range range;
    uint32_t tries;       /* 0: of a step of which no worker said what it had at hand */
    uint64_t opened_with; /* the generation whose members were told of it first; 0: none was */
};

/* One that may have died of what it computed. */
struct arbiter_death {
    uint64_t incarnation;
    struct shard_range at_hand;
    uint64_t told_in; /* as in its card */
};

enum { ARBITER_DEATHS_MAX = 64, ARBITER_PASSES_KEPT = 31 };

/* What is known of the time that passes take. */
struct hangs {
    int64_t limit_ms; /* the user's; 0: by the passes; < 0: none */
    int64_t max_ms;   /* of one by the passes; 0: no limit */
    int64_t look_ms;  /* INT64_MAX: nobody has a pass at hand */
    int64_t passes[ARBITER_PASSES_KEPT];
    size_t pass_count;
};

struct arbiter {
    int64_t lease_ms;
    int64_t first_ms;
    uint64_t least_term;
    uint64_t max_steps; /* of the options; the job's is the ledger's */
    int64_t now_ms;
    int64_t deadline_ms; /* INT64_MAX: none */
    uint64_t deadline_generation;
    struct rendezvous *rendezvous;
    struct rendezvous_effects asked; /* of rendezvous_step */
    struct ledger ledger;
    struct leases leases;
    struct losses losses;
    uint64_t
        environment; /* the journal's: of all members, where equal bits are asked for; else 0 */
    struct asides asides;
    uint32_t asides_opened; /* of them: those that all members of the generation leave out */
    struct shard_dataset datasets[SHARD_DATASETS_MAX];
    size_t dataset_count;
    uint32_t micro_batches;
    struct shard_anchor anchor;        /* of `anchored`, where its steps follow the workers */
    struct shard_anchor anchor_before; /* while that is being recorded: of the open one */
    uint64_t anchored;                 /* a generation */
    struct card *cards;
    struct saved saved[RENDEZVOUS_CHECKPOINTS_MAX]; /* in the journal; their versions ascend */
    size_t saved_count;
    struct saved offered; /* the log has not reached it */
    struct arbiter_suspect suspects[WIRE_SUSPECTS_MAX];
    uint32_t suspect_count;
    struct arbiter_death deaths[ARBITER_DEATHS_MAX]; /* whose causes are not known yet */
    uint32_t death_count;
    uint64_t blames;      /* how often suspects, or what is set aside, have become others */
    uint64_t blames_told; /* … as the members of the open generation know them */
    struct hangs hangs;
    struct buf failure;  /* the journal's: why the job has failed; empty: it has not */
    struct buf prepared; /* COMMITS of the step that a report prepared */
    bool serving;        /* records are */
    bool any_asked;
    bool any_expired;
    bool trained; /* all members have ended well; leases go on */
    bool over;
    uint64_t told_generation; /* its members may hold records */
    /* of the step at hand */
    const struct arbiter_event *event;
    struct arbiter_effects *out;
    struct arbiter_effects grants; /* its last effects, after what makes the log durable */
    struct muster_err *err;
    int failed;
    bool open_written; /* as frame of all members */
    size_t open_offset;
    size_t open_count;
};

/* The first failure is the step's. */
void arbiter_fail(struct arbiter *a, int code);

/* ---- What rendezvous is told (step.c) ---- */

/* And what it says to that is carried out. */
void arbiter_tell(struct arbiter *a, const struct rendezvous_event *event);

/* ---- What a worker says (hear.c) ---- */

/* The message of the event at hand. */
void arbiter_hear(struct arbiter *a);

/* ---- What rendezvous says (announce.c) ---- */

void arbiter_carry_out(struct arbiter *a, const struct rendezvous_effect *effect);
/* The deadline of a generation: its members are silent after so long. */
void arbiter_await_reports(struct arbiter *a, uint64_t generation, int64_t wait_ms);
void arbiter_add(struct arbiter *a, enum arbiter_effect_kind kind);
void arbiter_end(struct arbiter *a);
/* People hear of it, and the journal has it where it counts as a loss. */
void arbiter_lose(struct arbiter *a, enum arbiter_effect_kind kind, uint64_t incarnation,
                  enum rendezvous_reason reason);

/* ---- The end of a job that has failed (announce.c) ---- */

/* All members hear of it, and the journal has it; text is not empty. */
void arbiter_fail_job(struct arbiter *a, const char *text);
bool arbiter_has_failed(const struct arbiter *a);
void arbiter_announce_failure(struct arbiter *a);
void arbiter_expel_failed(struct arbiter *a, uint64_t incarnation);

/* ---- Records that workers die of (blame.c) ---- */

void arbiter_blame_hear(struct arbiter *a, struct card *card, const struct wire_pass *told);
void arbiter_blame_dead(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
void arbiter_blame_settle(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause);
void arbiter_blame_left_out(struct arbiter *a, uint64_t incarnation, enum rendezvous_reason reason);
/* OPEN is written for the members of a generation. */
void arbiter_blame_note_open(struct arbiter *a);
/* They are trained: nothing is wrong with them. */
void arbiter_blame_clear(struct arbiter *a, const struct wire_ranges *ranges);
/* "3 workers died, one after the other, of record 5 of data set …". */
void arbiter_blame_say(const struct shard_dataset *spec, struct shard_range range, uint32_t tries,
                       struct buf *text);
/* People are told of a record that is set aside. */
void arbiter_blame_say_aside(struct arbiter *a, uint64_t record, const struct buf *why);
/* ---- Passes that do not come back (hang.c) ---- */

/* Called before card->at_hand gets this value. */
void arbiter_hang_note(struct arbiter *a, struct card *card, struct shard_range at_hand);
/* The member that is expelled for it now; 0: none. */
uint64_t arbiter_hang_look(struct arbiter *a);

uint32_t arbiter_blame_list(const struct arbiter *a, struct shard_range *ret);

/* ---- Effects (send.c) ---- */

void arbiter_append(struct arbiter *a, enum entry_kind kind, size_t offset);
void arbiter_send(struct arbiter *a, uint64_t to, struct wire_message *message);
void arbiter_send_open(struct arbiter *a, const struct rendezvous_effect *effect);
/* The same, as a record: of the members that are next. */
void arbiter_write_open(struct arbiter *a, const struct rendezvous_effect *effect, bool next,
                        struct buf *ret);
/* The name as people may see it. */
void arbiter_clean_name(const struct wire_text *name, char ret[ARBITER_NAME_BYTES]);
/* How they are called, in the same order; see replay_names. */
void arbiter_write_names(const struct arbiter *a, bool next, struct buf *ret);

/* The ranges that are granted to the owner of the `first` effect, there and directly behind it:
 * they are one message. Returns how many. */
uint32_t arbiter_granted_to_one(const struct shard_effects *effects, size_t first,
                                struct shard_range ret[SHARD_EFFECTS_MAX]);
void arbiter_send_grant(struct arbiter *a, uint64_t to, const struct wire_grant *grant);
void arbiter_send_grants(struct arbiter *a);                          /* at the end of the step */
void arbiter_refuse(struct arbiter *a, uint64_t to, const char *why); /* and hangs up */

/* ---- Data sets (datasets.c) ---- */

void arbiter_datasets_declare(struct arbiter *a); /* those of the options, and the limit of steps */
void arbiter_datasets_hear(struct arbiter *a, const struct wire_dataset *told);

/* Its number, or the next one. */
bool arbiter_datasets_find(const struct shard_state *shard, const struct wire_text *name,
                           uint32_t *ret_number, struct shard_dataset *ret);
void arbiter_datasets_read(const struct wire_dataset *told, uint32_t micro_batches,
                           struct shard_dataset *ret);
enum { ARBITER_WHY_BYTES = 256 };
/* Whether they mean the same; otherwise ret_why names the first field that differs. */
bool arbiter_datasets_agree(const struct shard_dataset *theirs, const struct shard_dataset *job,
                            char *ret_why);
void arbiter_datasets_answer(struct arbiter *a, uint64_t to, const struct shard_dataset *spec,
                             uint32_t number);

/* ---- Steps whose size follows the workers (anchors.c) ---- */

/* The generation is recorded, before the step that it commits, if any. */
void arbiter_anchor_move(struct arbiter *a, const struct rendezvous_effect *effect);
/* It was read from the journal, and so was all before it. */
void arbiter_anchor_take(struct arbiter *a, const struct wire_open *open);
const struct shard_anchor *arbiter_anchor_of(const struct arbiter *a, uint64_t generation);
/* MUSTER_EDATA: the next step has more or fewer records than its generation says. */
int arbiter_anchor_check(const struct arbiter *a, const struct wire_step *step,
                         struct muster_err *err);

/* The positions of the next step of a planned data set that is not done. */
uint32_t arbiter_step_positions(const struct arbiter *a, const struct shard_progress *data);
/* The positions of all steps of a planned data set until this one; `all`, when it is not the first
 * to end them, is no step (0), or the data set is not planned. */
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

/* NULL: no process of that incarnation is known. */
struct card *arbiter_card(struct arbiter *a, uint64_t incarnation);
