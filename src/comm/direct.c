/* All-reduce of buffers that all ranks of the host see (muster_comm_alloc): each rank folds its
 * share of all inputs and writes it into all outputs. Nothing is copied; the price is one exchange
 * before, in which the ranks tell where their buffers lie (offsets differ), and one after.
 *
 * When one rank's buffer is private, all learn it in the first exchange and go the private way.
 *
 * Layer: comm. Memory: the task's. Thread: the holder of the lane.
 */
#include "comm/internal.h"

#include "schedule/partition.h"

enum { IN_WORD, OUT_WORD, REGION_SHIFT = 44 };

/* Where a buffer lies, the same for all ranks; 0: it is private. */
static uint64_t locate(const struct muster_comm *comm, const void *buffer, size_t bytes)
{
    for (int i = 0; i < comm->num_regions; i++) {
        const struct region *region = &comm->regions[i];
        const char *part = region->base + (size_t)comm->local_rank * region->part_bytes;
        size_t offset = (size_t)((uintptr_t)buffer - (uintptr_t)part);
        if (region->base && offset < region->part_bytes && bytes <= region->part_bytes - offset) {
            return (uint64_t)(i + 1) << REGION_SHIFT | offset;
        }
    }
    return 0;
}

static char *address_of(const struct muster_comm *comm, int rank, uint64_t place)
{
    const struct region *region = &comm->regions[(place >> REGION_SHIFT) - 1];
    return region->base + (size_t)comm->peers[rank].local * region->part_bytes +
           (place & ((UINT64_C(1) << REGION_SHIFT) - 1));
}

static bool all_direct(const struct muster_comm *comm, const uint64_t *words)
{
    for (int r = 0; r < comm->size; r++) {
        if (words[r * COMM_WORDS + IN_WORD] == 0 || words[r * COMM_WORDS + OUT_WORD] == 0) {
            return false;
        }
    }
    return true;
}

static void fold_share(struct muster_comm *comm, struct task *task, const uint64_t *words)
{
    const struct muster_call *call = &task->call;
    size_t part = call->count / (size_t)comm->size + PARTITION_GRAIN;
    struct partition p = partition_part(call->count, comm->size, part, 0, comm->rank);
    const void *sources[COMM_MAX_RANKS];
    void *outs[COMM_MAX_RANKS];
    int num_outs = 0;
    size_t offset = p.first * task->unit;
    outs[num_outs++] = (char *)call->out + offset;
    for (int r = 0; r < comm->size; r++) {
        sources[r] = address_of(comm, r, words[r * COMM_WORDS + IN_WORD]) + offset;
        if (r != comm->rank) {
            outs[num_outs++] = address_of(comm, r, words[r * COMM_WORDS + OUT_WORD]) + offset;
        }
    }
    reduce_into(reduce_find(call->type, call->op), outs, num_outs, sources, comm->size, p.count,
                task->unit, call->op == MUSTER_AVG ? comm->size : 1);
}

static int direct_step(struct muster_comm *comm, struct task *task, struct muster_err *err)
{
    int rc = exchange_step(comm, task, err);
    if (rc <= 0) {
        return rc;
    }
    const uint64_t *words = comm->lanes[task->lane].words;
    if (all_direct(comm, words)) {
        if (!settle_may_write(comm, task)) {
            rc = failure_check(comm, task, err);
            return rc < 0 ? rc : MUSTER_EABORTED;
        }
        fold_share(comm, task, words);
        settle_wrote(comm);
        exchange_barrier(comm, task);
    } else {
        call_go_private(comm, task);
    }
    return task->step(comm, task, err);
}

void direct_start(struct muster_comm *comm, struct task *task)
{
    size_t bytes = task->call.count * task->unit;
    task->words[IN_WORD] = locate(comm, task->call.in, bytes);
    task->words[OUT_WORD] = locate(comm, task->call.out, bytes);
    exchange_words(comm, task);
    task->step = direct_step;
}
