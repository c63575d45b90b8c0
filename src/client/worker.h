/* A worker's part in an elastic job, as the files of this folder share it.
 *
 * Two threads: the user's, which computes, forms communicators, reduces and reads state; and the
 * link's, which talks with the coordinator at any time. Both hand events to the member's core
 * (commit/member.h), under the mutex, and carry out its effects (obey.h): the link's thread sends,
 * closes and aborts; `todo` has the work for the user's thread.
 *
 * Layer: worker (part of libmuster). Memory: muster_elastic_open/close. Thread: as said; what the
 * mutex guards is marked.
 */
#pragma once

#include "client/checkpoint/file.h"
#include "client/plan/aside.h"
#include "client/plan/balance.h"
#include "client/plan/passes.h"
#include "client/plan/plan.h"
#include "client/socket/connection.h"
#include "client/socket/probe.h"
#include "commit/member.h"
#include "core/recording.h"
#include "rendezvous/rendezvous.h"
#include "wire/wire.h"

#include <muster/elastic.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
    WORKER_EXTRA_MAX = 1 << 20,
    WORKER_PIECES_MAX = 65536,
    WORKER_WHY_BYTES = 4000,
    WORKER_TOLD_MS = 20, /* passes of longer steps are reported, which costs them almost nothing */
    WORKER_FOREVER_MS = 1000 * 1000 * 1000, /* 11 days */
};

/* The state of the connection. */
enum uplink_phase {
    UPLINK_DOWN,
    UPLINK_GREETING,  /* HELLO was sent */
    UPLINK_DECLARING, /* DATASET was sent */
    UPLINK_UP,
};

/* Why the work has ended. */
enum worker_ending {
    WORKER_GOES_ON,
    WORKER_FINISHED, /* all epochs are committed and durable */
    WORKER_LEFT,     /* by its own wish */
    WORKER_EXPELLED, /* the others continue without it */
    WORKER_FAILED,   /* code and text say why */
};

/* The content of OPEN. */
struct generation {
    uint64_t number;
    uint64_t base;
    bool restore;
    char checkpoint[WIRE_TEXT_MAX + 1];
    uint8_t digest[WIRE_DIGEST_BYTES];
    int size;
    int rank; /* of this worker */
    uint64_t incarnations[MUSTER_MAX_RANKS];
    bool loaded[MUSTER_MAX_RANKS];
    struct muster_member endpoints[MUSTER_MAX_RANKS];
    struct muster_member regions[MUSTER_MAX_RANKS];
    struct shard_range suspects[WIRE_SUSPECTS_MAX]; /* records of which workers have died */
    uint32_t suspect_count;
    struct aside aside; /* of this worker's data set */
    struct plan plan;   /* with the generation's anchor */
};

/* The shares of the steps after `version` in that generation; without them all shares are equal. */
struct balance {
    uint64_t generation;
    uint64_t version;
    uint32_t counts[MUSTER_MAX_RANKS];
};

/* The tasks that the core has given to the user's thread. */
struct todo {
    bool form;
    bool load;
    bool restore;
    bool apply; /* the sum of step core.version must be handed out */
    bool heal;  /* the state must be read from members whose state differs from this worker's: see
                   `vote` */
};

/* The last vote that was not unanimous, by ranks of the generation. */
struct vote {
    bool decided; /* more than half are equal */
    bool odd[MUSTER_MAX_RANKS];
    int first; /* the first rank that is odd */
};

struct figures {
    uint64_t diverged; /* votes that were not unanimous */
    uint64_t diverged_version;
    int diverged_rank;
    int64_t odd_ns;   /* when a vote found that this worker's state was the different one */
    uint64_t trained; /* records that this worker has trained */
    uint64_t recoveries;
    int64_t lost_ns; /* when the generation was closed; 0: it was not, or the next one is formed */
    int64_t recovery_ns;
    int64_t commit_ns;
    int64_t wait_ns;         /* means over the last steps: of the exchange … */
    int64_t step_ns;         /* … and of the whole step */
    int64_t pass_ns;         /* the rest of the step, for a micro-batch; 0: not known */
    int64_t stepped_ns;      /* when the last step was committed */
    uint64_t stepped_number; /* the generation of that step */
};

enum saver_phase { SAVER_IDLE, SAVER_COPYING, SAVER_WRITING };

enum { SAVER_KNOWN_MAX = RENDEZVOUS_CHECKPOINTS_MAX, SAVER_WHY_BYTES = 256 };

/* See saver.h. */
struct saver {
    /* ---- as it was opened ---- */
    char *folder; /* NULL: no checkpoints are written */
    uint64_t every_steps;
    int64_t every_ns;
    uint32_t keep;
    bool is_started;
    pthread_t thread;

    /* ---- the saver's thread, while not IDLE ---- */
    char *copy;
    size_t room;
    uint64_t *sizes; /* of the pieces */
    size_t num_sizes;
    struct checkpoint_head head;

    /* ---- all, under the mutex ---- */
    enum saver_phase phase;
    _Atomic bool stop;
    uint64_t newest;         /* the last version whose checkpoint was begun or became known */
    int64_t newest_ns;       /* the time of that */
    uint64_t unsaid_version; /* written, but not known to be in the journal; 0: none */
    struct checkpoint_place unsaid;
    uint64_t refused_generation; /* the generation whose checkpoint cannot be read; 0: none */
    char why[SAVER_WHY_BYTES];   /* … and the reason */
    bool prune;                  /* the thread must remove checkpoints that are not kept any more */
    struct checkpoint_name known[SAVER_KNOWN_MAX]; /* in the journal; their versions ascend */
    size_t known_count;
};

/* The conditions that end forming, and later waits in the communicator. */
struct patience {
    struct muster_elastic *job;
    struct probe *probe; /* NULL: the communicator is formed */
};

struct muster_elastic {
    /* ---- as it was opened ---- */
    char *coordinator;
    char *name;
    char *dataset;
    uint8_t token[WIRE_TOKEN_BYTES];
    uint64_t environment;
    size_t extra_bytes;
    bool whole_passes; /* no pass is computed in parts */
    bool set_aside;    /* a record that crashes workers is set aside; otherwise it fails the job */
    uint32_t digest_steps; /* 0: no votes */
    uint32_t digest_skip;  /* the number of pieces, at the end, that differ between workers */
    int64_t peer_ms;
    int (*interrupted)(void *user);
    void *user;
    pid_t owner; /* the process that opened the job */
    uint64_t incarnation;
    struct muster_endpoint *endpoint;
    struct muster_region *region;
    struct wire_address address;
    struct plan plan; /* micro_batches and dataset: those of the coordinator, once the link was up.
                         The anchor is that of core.generation, and guarded by the mutex */
    pthread_t thread;
    int wake_fd; /* an eventfd: the link has something to do */
    _Atomic bool leave_asked;
    bool broken_off; /* the program closes the job before it is done, without having been asked to
                        leave */

    /* ---- the user's thread ---- */
    struct muster_elastic_piece *pieces;
    size_t num_pieces;
    struct passes passes;
    struct probe probe;
    struct patience patience;
    struct vote vote;
    bool vote_due;            /* no step has changed the state, and all pieces can be read */
    struct generation *mine;  /* a copy of the generation that it formed last */
    uint64_t *records;        /* of the pass that was handed out */
    uint64_t pass_generation; /* in which the pass was handed out */
    uint64_t pass_version;    /* the step of that pass; 0: there is none */
    uint32_t pass_micro_batch;
    uint32_t pass_positions; /* positions of its micro-batch; 0: it was handed out without any */
    uint32_t pass_records;   /* records at these positions, without those set aside */
    bool pass_is_last;       /* the pass is the last part of its micro-batch */
    void *kept_sum; /* the sum of bf16 values; also that of a call that was interrupted after it had
                       prepared */
    size_t kept_room;
    bool is_kept;
    void *sum_parts; /* this worker's parts of a sum within the step */
    size_t sum_room;
    uint64_t sums;        /* the number of sums in the current step, in this generation */
    uint64_t summed;      /* the generation of these sums; 0: there are none */
    void *extras;         /* of the step that was committed last or is under way, by micro-batch */
    uint32_t extras_room; /* in micro-batches */
    bool pristine;        /* the model has not changed since the beginning */
    uint64_t restored;    /* the version that was read from a checkpoint; 0: none was */

    /* ---- both, under the mutex ---- */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on the monotonic clock */
    struct connection connection;
    enum uplink_phase phase;
    bool settled;  /* the link was up at least once: the plan is known */
    bool stop;     /* the link's thread must end */
    bool joins;    /* muster_elastic_next was called */
    bool readable; /* the pieces hold version core.version, whole */
    bool told_leave;
    struct commit_member core;
    struct recording *recording; /* NULL: nothing is recorded */
    struct generation *generation;
    struct todo todo;
    struct shard_range at_hand; /* the records of the reported pass; count 0: none */
    bool computing;             /* the user's thread has a pass with records, and is in no call */
    struct muster_comm *comm;   /* of core.generation; NULL: not formed */
    uint64_t abort_wanted;      /* a generation that is closed and must be aborted; 0: none */
    bool aborting;              /* the link's thread is inside muster_comm_abort */
    enum worker_ending end;
    struct muster_err why; /* of FAILED and EXPELLED; otherwise the last error of the link */
    struct figures figures;
    /* Of the user's thread: */
    struct balance balance;
    uint64_t looked_number; /* the generation and the version at which shares were last reviewed */
    uint64_t looked_version;
    struct saver saver;
};

/* Waits for a change of data that the mutex guards, and regularly asks the user's function whether
 * to continue. The mutex is held. MUSTER_EINTERRUPTED. */
int worker_wait(struct muster_elastic *job, struct muster_err *err);
/* The function `interrupted` of communicators; context is the job. */
int worker_interrupted(void *context);

/* Wakes the link's thread. Can be called by any thread and by signal handlers. */
void worker_wake(const struct muster_elastic *job);
/* Ends the work of this worker; only the first reason is kept. The mutex is held. */
void worker_end(struct muster_elastic *job, enum worker_ending end, int code, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* Returns MUSTER_EINVAL in a forked child, because the job belongs to its parent. err may be
 * NULL. */
int worker_check_own(const struct muster_elastic *job, struct muster_err *err);

int64_t worker_now_ns(void);
