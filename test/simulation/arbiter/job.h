/* An elastic job in one process: the coordinator's decisions as they ship
 * (src/coordinator/arbiter), workers that do what src/commit and src/client/holdings.h say, frames
 * of src/wire between them, a journal that loses its end in a crash, and a clock that moves when
 * nothing else can happen. test/simulation/elastic has the protocol alone, as plain bytes that can
 * be copied, and visits all orders of a small job; this has what ships, and takes orders by chance.
 *
 * job_actions() lists what can happen next, job_act() lets one of them happen; a job whose actions
 * are all faults has come to its end.
 *
 * A process is named by its incarnation, its place in the list + 1: one that is started again, or
 * joins again, is another one.
 *
 * Tests only. Memory: job_init/done.
 */
#pragma once

#include "client/holdings.h"
#include "client/plan/plan.h"
#include "commit/member.h"
#include "coordinator/arbiter/arbiter.h"

enum {
    LIVES_MAX = 24,
    FRAMES_MAX = 256,
    FILES_MAX = 8,
    SUSPECTS_MAX = WIRE_SUSPECTS_MAX,
    ACTIONS_MAX = 256,
    RECORDS_MAX = 32,
    EPOCHS_MAX = 2,
    POISON_NONE = -1,
};

/* The name of the data set that is worked on by leases. */
#define LEASED_NAME "evaluate"

enum fault {
    FAULT_KILL = 1,   /* a process is killed from outside */
    FAULT_CRASH = 2,  /* a worker crashes by itself */
    FAULT_STOP = 4,   /* a process gets SIGSTOP */
    FAULT_CUT = 8,    /* a connection to the coordinator ends */
    FAULT_DOWN = 16,  /* the coordinator dies, and what its journal had not synced is lost */
    FAULT_DOUBT = 32, /* a member loses another that lives */
    FAULT_HASTE = 64, /* time passes, although something else could happen */
    FAULT_LEAVE = 128,
    FAULT_DAMAGE = 256, /* a checkpoint cannot be read any more */
    FAULT_ALL = 511,
};

struct job_config {
    uint8_t trainers; /* at the start */
    uint8_t joiners;  /* trainers that start later, at any time */
    uint8_t leasers;  /* workers of a data set by leases */
    uint8_t records, epochs, batch, micro_batches;
    uint8_t leased_records, leased_epochs, shard;
    uint8_t faults; /* how many faults there may be */
    uint8_t checkpoints;
    uint8_t max_steps;     /* 0: all epochs */
    uint16_t kinds;        /* bits of enum fault */
    int16_t poison;        /* the position in the first epoch that kills its worker; POISON_NONE */
    int16_t leased_poison; /* the leased record that kills its worker; POISON_NONE */
    bool per_worker;       /* micro_batches is the number of each trainer */
    bool set_aside;        /* a poisonous record is set aside, and the job goes on */
    bool relaunch;         /* dead workers are started again */
    bool remote;           /* workers are on other hosts: their cause of death is not seen */
    bool forgets;          /* a coordinator that is started again has no list of its processes */
    bool long_steps;       /* passes are always reported */
};

enum life { LIFE_RUNNING, LIFE_STOPPED, LIFE_DEAD, LIFE_ENDED };

struct frames {
    size_t count;
    struct {
        uint8_t *bytes;
        size_t count;
    } list[FRAMES_MAX];
};

/* A process and the coordinator see the end of their connection at different times. */
struct link {
    bool up;       /* as the process sees it */
    bool seen;     /* as the coordinator sees it */
    bool known;    /* the coordinator has heard of this incarnation */
    bool recalled; /* known only by the list of an earlier coordinator */
    bool ending;   /* the coordinator hangs up after the frames under way */
    bool declared; /* the data set was answered: other messages may be sent */
    struct frames up_frames, down_frames;
};

struct trainer {
    struct commit_member core;
    struct plan plan; /* with the anchor of core.generation */
    uint64_t model;   /* how many steps it was trained on, */
    uint64_t trained; /* and how many positions, in their order */
    bool loading, restoring, told_leave;
    char checkpoint[64]; /* the checkpoint to restore */
    uint64_t refused;    /* the generation whose checkpoint it could not read */
    struct shard_range suspects[SUSPECTS_MAX];
    uint32_t suspect_count;
    uint32_t aside_count;
    bool poison_is_aside;
    uint64_t members[LIVES_MAX];   /* incarnations, by rank */
    uint64_t computing[LIVES_MAX]; /* those with a share of each step */
    uint32_t member_count, computing_count;
    uint64_t entered[LIVES_MAX]; /* the newest step, by incarnation - 1 */
    uint64_t barrier[LIVES_MAX];
    /* its share of step core.version + 1 */
    uint64_t pass_generation;
    uint64_t pass_version;
    uint32_t micro_batch; /* the next one, and what is done of it */
    uint32_t done;
    struct shard_range at_hand; /* count 0: none */
    struct shard_range told;    /* what the coordinator was told last */
    bool informed; /* when the pass began, no message was under way that it had to know */
};

struct leaser {
    struct holdings holdings;
    bool enrolled, asked, none_now, ended, has_failed_one;
    double sums[2];
};

struct process {
    enum life life;
    bool leases;
    bool buried;      /* its end was reported, or need not be */
    bool unexplained; /* … but the cause was not */
    bool finished;
    enum arbiter_cause cause;
    uint8_t place; /* its index among the workers of the config */
    uint64_t incarnation;
    uint64_t term;
    struct link link;
    union {
        struct trainer trainer;
        struct leaser leaser;
    };
};

struct entry {
    uint32_t kind;
    uint8_t *bytes;
    size_t count;
};

struct coordinator {
    struct arbiter *arbiter; /* NULL: it is down */
    struct arbiter_effects effects;
    struct entry *journal;
    size_t journal_count, journal_room;
    size_t durable; /* how many entries */
    bool serving, sync_due, over, failed;
    char why[512];
};

/* A checkpoint. */
struct file {
    char path[64];
    uint64_t version, trained;
    bool damaged;
};

/* A step, as the first trainer of this lineage began it. */
struct first_try {
    uint64_t lineage;
    struct plan_step step; /* version 0: no trainer has begun it */
};

struct job {
    const char *broken; /* the first invariant that was violated */
    char detail[512];
    struct job_config config;
    struct plan plan; /* as every worker is told */
    struct first_try tries[RECORDS_MAX * EPOCHS_MAX];
    uint64_t random;
    int64_t now_ms;
    uint32_t faults, checkpoints_written;
    bool damaged;                              /* some file is damaged */
    uint32_t crashes[RECORDS_MAX][EPOCHS_MAX]; /* with this position at hand */
    uint32_t informed_crashes;                 /* of members that might have known */
    uint32_t leased_crashes;                   /* of workers by leases */
    uint32_t cuts;                             /* of connections */
    uint32_t hangs;                            /* workers whose step function was given up */
    uint32_t waits;                            /* how often in a row only time has passed */
    struct coordinator coordinator;
    struct file files[FILES_MAX];
    size_t file_count;
    struct process lives[LIVES_MAX];
    size_t life_count;
};

enum action_kind {
    ACT_CONNECT, /* process */
    ACT_HEAR,    /* process: the coordinator's next frame */
    ACT_TELL,    /* process: its next frame reaches the coordinator */
    ACT_PART,    /* process: the coordinator sees the end of the connection */
    ACT_BURY,    /* process: the coordinator sees its end */
    ACT_EXPLAIN, /* process: … and why it has ended */
    ACT_COMPUTE, /* process: begins or ends a pass */
    ACT_ENTER,
    ACT_REDUCE,
    ACT_PASS,
    ACT_LOSE, /* process, another: the other is gone or closed */
    ACT_LOAD, /* process, another: the other's model was read */
    ACT_RESTORE,
    ACT_SAVE,
    ACT_WORK, /* process by leases: fetches, reports or fails a shard */
    ACT_ASK,  /* process by leases */
    ACT_RESUME,
    ACT_START, /* place: another process starts there */
    ACT_GO,    /* process: it ends, as the coordinator has ended */
    ACT_SYNC,
    ACT_COMPACT,
    ACT_BEGIN, /* the coordinator starts */
    ACT_TIME,
    ACT_FAULTS, /* all that follow are faults */
    ACT_KILL = ACT_FAULTS,
    ACT_CRASH,
    ACT_STOP,
    ACT_CUT,
    ACT_DOUBT, /* process, another */
    ACT_LEAVE,
    ACT_HASTE,
    ACT_DAMAGE,
    ACT_DOWN,
};

struct action {
    uint8_t kind;
    uint8_t who;
    uint8_t what;
};

void job_init(struct job *job, const struct job_config *config, uint64_t random);
void job_done(struct job *job);
size_t job_actions(const struct job *job, struct action ret[ACTIONS_MAX]);
void job_act(struct job *job, struct action action);
/* Returns NULL if this is a proper end, after which only faults can happen. */
const char *job_end(const struct job *job);
const char *job_action_name(struct action action);

/* ---- Between the files of the job ---- */

uint32_t job_draw(struct job *job, uint32_t below);
void job_break(struct job *job, const char *invariant);
struct process *job_process(struct job *job, uint64_t incarnation);
struct process *job_launch(struct job *job, uint8_t place);

/* Whether the process exists, running or stopped. */
bool process_lives(const struct process *p);
/* Puts a frame on its way to the coordinator, if there is a connection. */
void process_say(struct job *job, struct process *p, struct wire_message *message);
void process_connect(struct job *job, struct process *p);
/* The process receives the next frame. */
void process_hear(struct job *job, struct process *p);
/* The process sees the end of its connection. */
void process_hang_up(struct job *job, struct process *p);
/* The process dies; frames that it has sent are still on their way. */
void process_die(struct job *job, struct process *p, enum arbiter_cause cause);

void trainer_begin(const struct job *job, struct process *p);
/* Returns a step of its generation; it is the same step for all who try it, until the log is
 * cut. */
struct plan_step trainer_step(struct job *job, const struct process *p, uint64_t version);
/* Checks that it was trained on everything that the plan has up to its version. */
void trainer_check(struct job *job, const struct process *p);
void trainer_tell(struct job *job, struct process *p, struct commit_event event,
                  const struct wire_open *open);
void trainer_hear(struct job *job, struct process *p, const struct wire_message *m);
void trainer_declare(struct job *job, struct process *p);
bool trainer_may(const struct job *job, const struct process *p, enum action_kind kind);
bool trainer_may_lose(const struct process *p, const struct process *other);
bool trainer_may_load(const struct process *p, const struct process *other);
/* Called each second: reports that the trainer lives. */
void trainer_beat(struct job *job, struct process *p);
void trainer_act(struct job *job, struct process *p, enum action_kind kind);
void trainer_lose(struct job *job, struct process *p, const struct process *other, bool doubts);
void trainer_load(struct job *job, struct process *p, const struct process *other);

/* The data plane of members (plane.c). */
bool plane_has(const struct trainer *t, uint64_t incarnation); /* as a member */
bool plane_joins(const struct process *a, const struct process *b);
void plane_show(struct job *job, const struct process *p);
void plane_gather(struct job *job, struct process *p); /* takes what the others show */
bool plane_all_have(const struct trainer *t, const uint64_t newest[LIVES_MAX]);
bool plane_any_entered(const struct trainer *t);

/* Its passes and checkpoints (passes.c). */
struct plan_share pass_share(const struct process *p);
bool pass_may_begin(const struct trainer *t);
bool pass_all_done(const struct process *p); /* whether its share is computed */
void pass_begin(struct job *job, struct process *p);
void pass_end(struct job *job, struct process *p);
void pass_tell(struct job *job, struct process *p, struct shard_range range);
void checkpoint_save(struct job *job, struct process *p);
void checkpoint_restore(struct job *job, struct process *p);

void leaser_begin(const struct job *job, struct process *p);
void leaser_hear(struct job *job, struct process *p, const struct wire_message *m);
void leaser_enroll(struct job *job, struct process *p);
bool leaser_may(const struct process *p, enum action_kind kind);
void leaser_act(struct job *job, struct process *p, enum action_kind kind);
void leaser_beat(struct job *job, struct process *p);
void leaser_leave(struct job *job, struct process *p);

void coordinator_begin(struct job *job);
void coordinator_done(struct job *job);
void coordinator_feed(struct job *job, struct arbiter_event event);
void coordinator_welcome(struct job *job, struct process *p);
void coordinator_hear(struct job *job, struct process *p);
void coordinator_part(struct job *job, struct process *p);
void coordinator_explain(struct job *job, struct process *p);
void coordinator_bury(struct job *job, struct process *p);
/* Whether the coordinator has seen how all dead members have ended, and this member has received
 * everything that it was sent. */
bool coordinator_has_told(const struct job *job, const struct process *p);
void coordinator_sync(struct job *job);
void coordinator_compact(struct job *job);
void coordinator_die(struct job *job, size_t kept);
/* Whether the durable journal has every step up to this version. */
bool coordinator_has_all(struct job *job, uint64_t version);
void frames_put(struct job *job, struct frames *frames, const uint8_t *bytes, size_t count);
void frames_drop(struct frames *frames);
