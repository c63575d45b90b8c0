/* Makes sure that no other process writes into our memory after a communicator has closed.
 *
 * Ranks write into each other's memory only if it is from muster_comm_alloc, and set `writing`
 * before. A thread that closes waits for the writers; a writer first looks which ranks have closed.
 * A peer that was stopped in the middle of a write is killed. If it cannot be killed (it is in
 * another PID namespace), a private copy takes the place of our memory, and writes into the old one
 * do no harm. Other threads that write into that memory at the same instant may lose their writes:
 * the buffers of a closed communicator's calls are undefined anyway.
 *
 * Layer: comm. Thread: writers are on a lane; the closing thread may be any.
 */
#include "comm/health/quiesce.h"

#include "comm/state/peers.h"
#include "comm/system/deadline.h"

#include <assert.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { UNSUSPECTED_MS = 1000 }; /* used if silence is not a reason to suspect a rank */

static struct control *control_at(const struct muster_comm *comm, int local)
{
    return segment_control(&comm->segment, local);
}

void quiesce_write_begin(struct muster_comm *comm)
{
    if (comm->live_allocations > 0) {
        atomic_store_explicit(&comm->control->writing, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in quiesce_memory */
    }
}

int quiesce_find_closed(const struct muster_comm *comm)
{
    for (int l = 0; l < comm->local_size; l++) {
        if (atomic_load_explicit(&control_at(comm, l)->closed, memory_order_relaxed)) {
            return comm->locals[l];
        }
    }
    return -1;
}

void quiesce_write_end(struct muster_comm *comm)
{
    atomic_store_explicit(&comm->control->writing, 0, memory_order_release);
}

static bool is_writing(const struct muster_comm *comm, int local)
{
    const struct control *c = control_at(comm, local);
    return atomic_load_explicit(&c->writing, memory_order_acquire) &&
           !heartbeat_is_dead(&c->heartbeat);
}

/* Returns true when the writer has finished or is dead. */
static bool wait_for_writer(struct muster_comm *comm, int local)
{
    int rank = comm->locals[local];
    int64_t end = deadline_now_ns() + UNSUSPECTED_MS * INT64_C(1000000);
    while (is_writing(comm, local)) {
        bool patient = comm->heartbeat_timeout_ms > 0 || deadline_now_ns() < end;
        /* The rank is silent. The stored state shows this even if the rank has closed, too. */
        if (!patient || atomic_load(&comm->peers[rank].state) == MUSTER_PEER_SUSPECTED) {
            return peers_kill(comm, rank);
        }
        struct timespec nap = {0, 50000};
        (void)nanosleep(&nap, NULL);
    }
    return true;
}

/* Puts a new mapping in the place of the old one, in one step. If there is no memory for it,
 * nothing can be done. */
static void make_private(struct muster_comm *comm, const struct segment_extension *parts)
{
    char *part = parts->base + (size_t)comm->local_rank * parts->part_bytes;
    void *copy =
        mmap(NULL, parts->part_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
        memcpy(copy, part, parts->part_bytes);
        void *moved =
            mremap(copy, parts->part_bytes, parts->part_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, part);
        assert(moved == part);
    }
}

static bool has_allocations(struct muster_comm *comm)
{
    pthread_mutex_lock(&comm->allocating);
    bool has = comm->live_allocations > 0;
    pthread_mutex_unlock(&comm->allocating);
    return has;
}

static void make_all_private(struct muster_comm *comm)
{
    pthread_mutex_lock(&comm->allocating);
    for (int i = 0; i < comm->num_allocations; i++) {
        if (comm->allocations[i].parts.base) {
            make_private(comm, &comm->allocations[i].parts);
        }
    }
    pthread_mutex_unlock(&comm->allocating);
}

void quiesce_memory(struct muster_comm *comm)
{
    assert(phase_code(&comm->life) != 0 && !phase_is_quiesced(&comm->life));
    bool alone = true, shares = has_allocations(comm);
    atomic_thread_fence(memory_order_seq_cst); /* the stores of `closed` come before the loads of
                                                  `writing` */
    for (int l = 0; l < comm->local_size && shares; l++) {
        alone = (l == comm->local_rank || wait_for_writer(comm, l)) && alone;
    }
    if (!alone) {
        make_all_private(comm);
    }
    phase_quiesce(&comm->life);
}

void quiesce_wait(const struct muster_comm *comm)
{
    while (!phase_is_quiesced(&comm->life)) {
        (void)sched_yield();
    }
}
