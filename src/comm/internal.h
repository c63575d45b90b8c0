/* What the files of this folder have from each other; what a communicator is made of is in state.h.
 *
 * - call.c: a public call becomes a task: checked, numbered, its algorithm chosen
 * - exchange.c: tasks that run a schedule; hierarchy.c: several of them, by way of the hosts
 * - small.c, swap.c, ring.c, direct.c: all-reduce on one host; message.c: tasks that send and
 * receive
 * - progress.c, background.c: who runs tasks, and where; wait.c: how a thread waits
 * - failure.c: when it should not
 * - segment.c: memory of a host; link.c, frames.c, stream.c, leave.c: sockets to other
 * hosts; team.c: who is where
 * - form.c: communicators from a list; endpoint.c, arrivals.c: how its members connect
 * - meet.c, meet_port.c, split.c: where the list comes from
 *
 * A task's step does what can be done now and returns: 1 done, 0 waiting, negative failed. Only the
 * holder of its lane steps a task.
 *
 * Layer: comm.
 */
#pragma once

#include <stdbool.h>

#include <muster/comm.h>

#include "comm/state.h"
#include "schedule/choose.h"
#include "schedule/partition.h"

/* call.c */
int call_check(const struct muster_comm *comm, const struct muster_call *call,
               struct muster_err *err);
int call_prepare(struct muster_comm *comm, const struct muster_call *call, struct task *ret,
                 struct muster_err *err);
/* What makes calls differ, in one word; and that with the call's number, in the half word that
 * travels with every round and stands in every slot. */
uint64_t call_digest(uint64_t generation, uint64_t shape, uint64_t count);
static inline uint32_t call_sign(uint64_t number, uint64_t digest)
{
    return (uint32_t)((number + digest) * 0x9e3779b97f4a7c15u >> 32);
}
/* Says what this rank is doing, for the others' error messages; before its first round. */
static inline void call_record(struct muster_comm *comm, uint64_t number, uint64_t shape,
                               uint64_t count)
{
    struct call_record *record = &comm->control->calls[number % CALL_RECORDS];
    atomic_store_explicit(&record->number, 0, memory_order_relaxed); /* of an older call */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&record->shape, shape, memory_order_relaxed);
    atomic_store_explicit(&record->count, count, memory_order_relaxed);
    atomic_store_explicit(&record->number, number, memory_order_release);
}
/* A rank of this host's record of a call. 1: it was read. */
int call_read(const struct control *control, uint64_t number, uint64_t *ret_shape,
              uint64_t *ret_count);
/* Of the newest call that it has entered: its number; 0: none. */
uint64_t call_newest(const struct control *control, uint64_t *ret_shape, uint64_t *ret_count);
/* First step of a task on its lane: publishes the call's record. */
void call_begin(struct muster_comm *comm, struct task *task);
/* Of an all-reduce. */
struct schedule_choice call_choose(const struct muster_comm *comm, size_t bytes,
                                   bool shared_memory);
/* An all-reduce through staging, whatever the buffers are. */
void call_go_private(struct muster_comm *comm, struct task *task);
/* What must be equal on all ranks. */
void call_signed(const struct muster_comm *comm, const struct muster_call *call,
                 uint64_t *ret_shape, uint64_t *ret_count);
void call_name(uint64_t shape, uint64_t count, char *ret, size_t size_bytes);

/* exchange.c */
/* An exchange within a team; the caller sets the rest of the plan, the buffers and the fold. */
void exchange_init(struct exchange *x, const struct team *team, enum schedule_pattern pattern,
                   size_t count, size_t unit, size_t capacity);
void exchange_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern);
void exchange_start_uneven(struct muster_comm *comm, struct task *task);
/* A step of one of several exchanges of a task; as a task's. */
int exchange_advance(struct muster_comm *comm, struct task *task, struct exchange *x,
                     struct muster_err *err);

/* hierarchy.c */
/* MUSTER_ENOMEM, or 0. After the teams. */
int hierarchy_init(struct muster_comm *comm);
void hierarchy_free(struct muster_comm *comm);
/* This call goes by way of the hosts. */
bool hierarchy_fits(const struct muster_comm *comm, const struct task *task);
void hierarchy_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern);

/* direct.c */
void direct_start(struct muster_comm *comm, struct task *task);
/* What can be said of a call before it begins. */
void direct_prepare(const struct muster_comm *comm, const struct muster_call *call,
                    struct direct *ret);

/* swap.c */
void swap_start(struct muster_comm *comm, struct task *task, size_t block_bytes);
/* What can be said of a call before it begins. */
void swap_prepare(struct muster_comm *comm, const struct muster_call *call, size_t block_bytes,
                  struct swap *ret);

/* ring.c */
void ring_start(struct muster_comm *comm, struct task *task, size_t block_bytes);

/* wait.c */
struct waiter {
    unsigned turns;
    unsigned moves;
    int64_t since_ns;  /* 0: not yet looked at the clock */
    int64_t polled_ns; /* when the user's interrupted() was last asked */
    bool noticed;      /* failure_notice was called */
    uint32_t bell;
    bool sleepy; /* registered as a sleeper: the next turn sleeps */
};
/* Between two steps that found nothing to do: spins, then yields, then sleeps. Negative: give up.
 * Without a task only the user's interruption is looked for. */
int wait_turn(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
              struct muster_err *err);
/* The checks of a turn without its wait. may_interrupt: on the thread of a blocking call. */
int wait_check(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               bool may_interrupt, struct muster_err *err);
/* In the place of a turn when something came through a link: what comes next may be near, too. */
int wait_moved(struct waiter *waiter, struct muster_comm *comm, const struct task *task,
               struct muster_err *err);
/* It has done with spinning and may take its time. */
bool wait_is_slow(const struct waiter *waiter, const struct muster_comm *comm);
void wait_end(struct waiter *waiter, struct muster_comm *comm);
/* Sleeps until one of the words differs from its value, at most timeout_ms. num <= WAIT_MAX_WORDS.
 */
enum { WAIT_MAX_WORDS = 64, WAIT_SLICE_MS = 2 };
void wait_on_words(_Atomic uint32_t *const *words, const uint32_t *values, int num, int timeout_ms);
void wait_wake_word(_Atomic uint32_t *word);
void wait_ring(struct control *control);
int64_t wait_now_ns(void);
/* From now on; timeouts of centuries end never. */
int64_t wait_deadline_ns(int64_t timeout_ms);
/* For poll: at least 0, at most a minute. */
int wait_ms_until(int64_t deadline_ns);

static inline void wait_wake(struct control *control)
{
    if (atomic_load_explicit(&control->sleepers, memory_order_relaxed) > 0) {
        wait_ring(control);
    }
}

static inline void wait_wake_locals(struct muster_comm *comm)
{
    for (int l = 0; l < comm->local_size; l++) {
        if (l != comm->local_rank) {
            wait_wake(segment_control(&comm->segment, l));
        }
    }
}

/* failure.c */
/* 0, or why this task cannot be waited for any longer: the rank that it waits for is gone or does
 * something else. */
int failure_check(struct muster_comm *comm, const struct task *task, struct muster_err *err);
/* The rank that the task waits for will not come. */
bool failure_is_gone(const struct muster_comm *comm, const struct task *task);
int failure_timeout(struct muster_comm *comm, const struct task *task, int64_t waited_ms,
                    struct muster_err *err);
/* One line on stderr about those that have not entered it yet; nothing when all have. */
void failure_notice(struct muster_comm *comm, const struct task *task, int64_t waited_ms);
/* Rank does something else than this task. */
int failure_mismatch(struct muster_comm *comm, const struct task *task, int rank,
                     struct muster_err *err);
/* Closes this rank's side for good; the first code stays. */
void failure_close(struct muster_comm *comm, int code);
/* A suspected rank of this host. True once the kernel has confirmed its death: from then on it
 * writes nothing. */
bool failure_kill(struct muster_comm *comm, int rank);
/* Of which rank's end we know, as a word for others: 1 + a rank that is proven dead, else the
 * negative of 1 + one that is suspected; 0: none. */
int failure_culprit(const struct muster_comm *comm);
/* Another rank's word about a third, unless it is of this host: of those we know better. */
void failure_believe(struct muster_comm *comm, int culprit);
/* On the heartbeat thread. */
void failure_beat(void *comm);
enum muster_peer_state failure_peer_state(const struct muster_comm *comm, int rank);

/* settle.c */
/* Around writing into other ranks' memory of muster_comm_alloc: said some time before, allowed when
 * then no rank has closed (-1, else one that has), and done. */
void settle_intend(struct muster_comm *comm);
int settle_find_closed(const struct muster_comm *comm);
void settle_wrote(struct muster_comm *comm);
/* By the thread that closed the communicator: waits until nobody writes into our memory. */
void settle(struct muster_comm *comm);
/* By others that saw it closed. */
void settle_wait(const struct muster_comm *comm);

/* progress.c */
/* Steps a task to its end on the calling thread. */
int progress_run(struct muster_comm *comm, struct task *task, struct muster_err *err);
/* Waits until no thread is inside a call of this closed communicator. */
void progress_drain(struct muster_comm *comm);

/* comm.c */
/* An empty communicator of these ranks; hosts[r] is the lowest rank on r's host. */
struct muster_comm *comm_new(int rank, int size, const int *hosts,
                             const struct muster_comm_options *options);
/* MUSTER_EINVAL in a process that was forked from the owner. */
int comm_check_own(const struct muster_comm *comm, struct muster_err *err);

/* message.c */
int message_init(struct muster_comm *comm, struct muster_err *err);
void message_start(struct task *task);
void message_free(struct muster_comm *comm);

/* form.c */
int form_comm(struct muster_endpoint *endpoint, const struct muster_member *members, int size,
              int my_index, uint64_t generation, int64_t deadline_ns,
              const struct muster_comm_options *options, struct muster_comm **ret,
              struct muster_err *err);

/* Users count their own calls from 1. */
static inline uint64_t comm_user_number(uint64_t number)
{
    return number > 0 ? number - 1 : 0;
}

static inline uint64_t comm_flag(uint32_t round, uint32_t signature)
{
    return (uint64_t)round << 32 | signature;
}

static inline void comm_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Makes the lines of a slot that we have just read ours, by writing back a word of each: its owner
 * then overwrites it at full speed, where taking back a shared line costs 8 ns (measured, AMD Zen).
 * The caller must be the slot's only reader. */
static inline void comm_claim(void *start, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SEGMENT_LINE) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)((char *)start + at);
        atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

/* Copies out of a slot and claims its lines. */
static inline void comm_take(void *to, void *from, size_t bytes)
{
    size_t whole = bytes / SEGMENT_LINE * SEGMENT_LINE;
    for (size_t at = 0; at < whole; at += SEGMENT_LINE) {
        char *line = (char *)from + at;
        __builtin_memcpy((char *)to + at, line, SEGMENT_LINE);
        comm_claim(line, 1);
    }
    __builtin_memcpy((char *)to + whole, (char *)from + whole, bytes - whole);
    comm_claim((char *)from + whole, bytes - whole);
}
