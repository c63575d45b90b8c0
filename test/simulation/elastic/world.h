/* An elastic job as plain bytes: processes, their coordinator, the network between them. The cores
 * are those that ship (src/commit, src/rendezvous); the rest is the least that they need: records
 * are bits, a model is the set of records it was trained on, a message is a few numbers.
 *
 * There is no clock: whatever order events could come in is an order of actions. world_actions()
 * lists what can happen next, world_act() lets one of them happen; a world whose actions are all
 * faults has come to its end. The state has no pointer but `broken`: a copy of the bytes is a copy
 * of the world, and equal worlds have equal bytes.
 *
 * What is not here: two coordinators at a time, reads of a model that is being written, a journal
 * that is lost, several epochs, evaluation, poison.
 *
 * Tests only. Memory: the caller's.
 */
#pragma once

#include "commit/member.h"
#include "rendezvous/rendezvous.h"

#include <stdalign.h>

enum {
    PROCESSES_MAX = 6,
    RECORDS_MAX = 8,
    STEPS_MAX = RECORDS_MAX + 1, /* steps are numbered from 1 */
    MEMBERS_MAX = 8,
    PEERS = 12,
    QUEUE_MAX = 16,
    PENDING_MAX = 8,
    LINEAGES_MAX = 12,
    GENERATIONS_MAX = 40,
    ACTIONS_MAX = 256,
};

enum fault {
    FAULT_KILL = 1,
    FAULT_STOP = 2,
    FAULT_DROP = 4,  /* a connection to the coordinator ends, and all that is under way is lost */
    FAULT_CRASH = 8, /* the coordinator crashes, and may lose what its journal had not synced */
    FAULT_SUSPECT = 16, /* a member loses another that lives */
    FAULT_HASTE = 32,   /* the deadline passes for a process that was only slow */
    FAULT_LEAVE = 64,   /* a member is told to end */
    FAULT_ALL = 127,
};

struct world_config {
    uint8_t processes;
    uint8_t joiners; /* how many of these start later, at any time */
    uint8_t records;
    uint8_t faults;      /* how many faults there may be */
    uint8_t kinds;       /* bits of enum fault */
    uint8_t ahead;       /* records that are granted to a member at a time */
    uint8_t batch;       /* records that a member brings to a step at most */
    uint8_t checkpoints; /* how many may be written */
    bool relaunch;       /* killed processes are started again, as other incarnations */
    bool codec;          /* messages go through src/wire */
    bool formed; /* the first generation is open at the beginning, and its members have restored */
    bool prompt; /* messages reach a running coordinator at once, which grants at once, too */
};

enum life { LIFE_NONE, LIFE_RUNNING, LIFE_STOPPED, LIFE_KILLED, LIFE_FINISHED, LIFE_LEFT };

/* Processes are named by their incarnations: place + 1, and PROCESSES_MAX more for each life. */
struct message {
    uint8_t kind; /* enum wire_kind */
    uint8_t incarnation;
    uint8_t term;
    uint8_t generation;
    uint8_t version;
    uint8_t first;
    uint8_t lineage;
    uint8_t lost;
    uint8_t reason;
    uint8_t closed, loaded, is_prepared, restore, boundary, finished;
    uint8_t records; /* leases, granted records, or the records of a checkpoint's model */
    uint8_t prepared;
    uint8_t steps[STEPS_MAX]; /* the records of each step */
    uint8_t members[MEMBERS_MAX];
};

struct queue {
    uint8_t count;
    struct message list[QUEUE_MAX];
};

struct process {
    struct commit_member core;
    uint8_t life;
    uint8_t incarnation;
    uint8_t held;    /* leased records that it has not trained */
    uint8_t model;   /* records that it was trained on */
    uint8_t brought; /* records that it brought to the step that it entered */
    uint8_t sum;     /* records of the step that is reduced or prepared */
    uint8_t loading; /* LOAD or RESTORE is under way */
    uint8_t restoring;
    uint8_t steps[STEPS_MAX]; /* kept until acknowledged */
    /* The data plane: what each member of its generation has shown. */
    uint8_t members[MEMBERS_MAX]; /* incarnations */
    uint8_t entered[MEMBERS_MAX]; /* the newest step */
    uint8_t shown[MEMBERS_MAX];   /* its records */
    uint8_t barrier[MEMBERS_MAX]; /* the newest step */
    struct queue up, down;        /* to and from the coordinator */
};

/* A record of the journal. */
struct entry {
    uint8_t kind; /* enum rendezvous_effect_kind */
    uint8_t term;
    uint8_t generation;
    uint8_t version;
    uint8_t first;
    uint8_t lineage;
    uint8_t restore;
    uint8_t saved;
    uint8_t steps[STEPS_MAX];
    uint8_t members[MEMBERS_MAX];
    uint8_t ages[MEMBERS_MAX];
};

/* The state after the journal was read from its beginning. */
struct journal {
    uint8_t term;
    uint8_t generation;
    uint8_t version; /* the base */
    uint8_t lineage;
    uint8_t restore;
    uint8_t logged;
    uint8_t checkpoint;
    uint8_t saved; /* the model of the checkpoint */
    uint8_t steps[STEPS_MAX];
    uint8_t members[MEMBERS_MAX];
    uint8_t ages[MEMBERS_MAX];
};

struct coordinator {
    alignas(8) unsigned char core[RENDEZVOUS_SIZE_BYTES(PEERS)];
    struct journal durable;
    struct entry pending[PENDING_MAX];
    uint8_t pending_count;
    uint8_t syncing_count; /* how many of these are being synced */
    uint8_t runs;
    uint8_t over;
    uint8_t deadline;            /* the generation that it is for, plus 1; 0: none */
    uint8_t prepared;            /* KEEP_PREPARED */
    uint8_t saved;               /* the model of the newest checkpoint */
    uint8_t offered[STEPS_MAX];  /* models of checkpoints that were written */
    uint8_t steps[STEPS_MAX];    /* the log in memory */
    uint8_t owners[RECORDS_MAX]; /* 0: free; COMMITTED; else an incarnation */
};
enum { COMMITTED = 255 };

struct world {
    const char *broken; /* the first invariant that was violated */
    struct world_config config;
    uint8_t faults; /* how many there were so far */
    uint8_t checkpoints;
    uint8_t agreed[LINEAGES_MAX][STEPS_MAX]; /* the records of each applied step */
    struct coordinator coordinator;
    struct process processes[PROCESSES_MAX];
};

enum action_kind {
    ACT_CONNECT,  /* process */
    ACT_HEAR,     /* process: the coordinator's next message */
    ACT_TELL,     /* process: its next message reaches the coordinator */
    ACT_ENTER,    /* process: has records, or a peer has entered */
    ACT_REDUCE,   /* process: manifests and reductions are complete */
    ACT_PASS,     /* process: the barrier */
    ACT_LOSE,     /* process, member: sees that the member is gone or closed */
    ACT_LOAD,     /* process, member: has read the state of the member */
    ACT_RESTORE,  /* process: has read the checkpoint */
    ACT_RESUME,   /* process: continues after a stop */
    ACT_START,    /* process: begins (a joiner, or a killed one) */
    ACT_GRANT,    /* process */
    ACT_SYNC,     /* the journal is durable */
    ACT_DEADLINE, /* the deadline passes for processes that do not run */
    ACT_EVIDENCE, /* peer of the coordinator: its process is gone */
    ACT_EXIT,     /* process: its parent sees that it has finished */
    ACT_BEGIN,    /* the coordinator starts, after a crash */
    ACT_SAVE,     /* process: writes a checkpoint */
    ACT_FAULTS,   /* all that follow are faults */
    ACT_KILL = ACT_FAULTS,
    ACT_STOP,
    ACT_DROP,
    ACT_SUSPECT, /* process, member */
    ACT_HASTE,
    ACT_LEAVE,
    ACT_CRASH, /* how many records of the journal that are not durable are kept */
};

struct action {
    uint8_t kind;
    uint8_t who;
    uint8_t what;
};

void world_init(struct world *world, const struct world_config *config);
size_t world_actions(const struct world *world, struct action ret[ACTIONS_MAX]);
/* Carries out an action of world_actions; `broken` says whether all invariants held. */
void world_act(struct world *world, struct action action);
/* Returns NULL if this is a proper end, after which only faults can happen. */
const char *world_end(const struct world *world);
/* Returns the bytes that distinguish this world from others. */
const void *world_state(const struct world *world, size_t *ret_count);
/* to: all zeros, or a world with the same configuration. */
void world_copy(struct world *to, const struct world *from);
const char *world_action_name(struct action action);

/* ---- Between the files of the world ---- */

struct rendezvous *world_rendezvous(const struct world *world);
uint8_t world_all(const struct world *world);
struct process *world_process(struct world *world, uint64_t incarnation); /* NULL: gone */
void world_break(struct world *world, const char *invariant);
void queue_put(struct world *world, struct queue *queue, const struct message *message);
struct message queue_take(struct queue *queue);

void process_begin(struct world *world, uint8_t place, uint8_t incarnation);
void process_tell(struct world *world, struct process *p, const struct commit_event *event,
                  const struct message *open);
void process_hear(struct world *world, struct process *p);
bool process_may(const struct world *world, const struct process *p, enum action_kind kind);
bool process_may_lose(const struct process *p, uint8_t member); /* if it is gone, or as a fault */
bool process_may_load(const struct world *world, const struct process *p, uint8_t member);
void process_load(struct world *world, struct process *p, uint8_t member);

void coordinator_begin(struct world *world);
void coordinator_tell(struct world *world, const struct rendezvous_event *event,
                      const struct message *message);
void coordinator_hear(struct world *world, struct process *p);
bool coordinator_may_grant(const struct world *world, const struct process *p);
void coordinator_grant(struct world *world, struct process *p);
void coordinator_sync(struct world *world);
void coordinator_crash(struct world *world, uint8_t kept);
bool coordinator_may_find(const struct world *world, uint8_t peer);
void coordinator_find(struct world *world, uint8_t peer);

/* Replaces the message by what src/wire reads after it has written the message. */
void codec_pass(struct world *world, struct message *message);
