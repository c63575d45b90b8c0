/* Memory that the ranks of a host share: muster_comm_alloc and muster_comm_release. Both are
 * collective, so that an allocation has the same place in every rank's list.
 *
 * Layer: comm. Memory: extensions of the segment; they end with the communicator. Thread: the one
 * that makes calls.
 */
#include "comm/algorithm/way.h"
#include "comm/health/failure.h"
#include "comm/health/quiesce.h"
#include "comm/system/sized.h"

#include <assert.h>

/* Returns the first free place, or the number of allocations if none is free. */
static int find_place(const struct muster_comm *comm)
{
    int place = 0;
    while (place < comm->num_allocations && comm->allocations[place].parts.base) {
        place++;
    }
    return place;
}

static void remember(struct muster_comm *comm, int place, const struct allocation *allocation)
{
    assert(place <= comm->num_allocations && place < COMM_MAX_ALLOCATIONS);
    assert(allocation->parts.base && !comm->allocations[place].parts.base);
    pthread_mutex_lock(&comm->allocating);
    comm->allocations[place] = *allocation;
    comm->num_allocations += place == comm->num_allocations;
    comm->live_allocations++;
    pthread_mutex_unlock(&comm->allocating);
    way_plan(comm)->run = NULL;
}

static void forget(struct muster_comm *comm, struct allocation *allocation)
{
    assert(comm->live_allocations > 0 && allocation->parts.base);
    pthread_mutex_lock(&comm->allocating);
    segment_retract(&comm->segment, &allocation->parts);
    comm->live_allocations--;
    pthread_mutex_unlock(&comm->allocating);
    way_plan(comm)->run = NULL;
}

/* Gives back this rank's part, when no other rank can read it and no other thread of this process
 * uses it. */
static int part_with(struct muster_comm *comm, struct allocation *allocation,
                     struct muster_err *err)
{
    int r = 0;
    if (phase_code(&comm->life) != 0) {
        quiesce_wait(comm);
    } else if ((r = muster_barrier(comm, err)) == 0) {
        segment_give_back(&comm->segment, &allocation->parts, comm->local_rank);
    }
    forget(comm, allocation);
    return r;
}

int muster_comm_release(struct muster_comm *comm, void *memory, struct muster_err *err)
{
    int r = sized_check_err(err);
    r = r < 0 ? r : comm_check_own(comm, err);
    for (int i = 0; i < comm->num_allocations && r == 0; i++) {
        struct allocation *allocation = &comm->allocations[i];
        if (allocation->parts.base && allocation_start(allocation, comm->local_rank) == memory) {
            return part_with(comm, allocation, err);
        }
    }
    return r < 0 ? r
                 : muster_fail(err, MUSTER_EINVAL,
                               "this memory was not allocated by muster_comm_alloc");
}

static int check_room(const struct muster_comm *comm, size_t size_bytes, int place,
                      struct muster_err *err)
{
    if (place == COMM_MAX_ALLOCATIONS) {
        return muster_fail(err, MUSTER_ETOOBIG, "a communicator has at most %d allocations",
                           COMM_MAX_ALLOCATIONS);
    }
    if (size_bytes > (size_t)PTRDIFF_MAX / (size_t)comm->size - 2 * (size_t)SEGMENT_PAGE) {
        return muster_fail(err, MUSTER_EINVAL, "%zu bytes are more than memory can hold",
                           size_bytes);
    }
    return 0;
}

/* Either all ranks have the memory or none has, and no rank uses it before all have it. The sizes
 * must be equal, otherwise the parts would overlap. */
static int agree(struct muster_comm *comm, size_t size_bytes, bool good, struct muster_err *err)
{
    int64_t mine[] = {good, (int64_t)size_bytes, -(int64_t)size_bytes}, least[] = {0, 0, 0};
    int r = muster_all_reduce(comm, mine, least, 3, MUSTER_I64, MUSTER_MIN, err);
    if (r == 0 && least[1] != -least[2]) {
        failure_close(comm, MUSTER_EMISMATCH);
        return muster_fail(err, MUSTER_EMISMATCH,
                           "rank %d allocates %zu bytes, but the ranks' sizes are %lld to %lld",
                           comm->rank, size_bytes, (long long)least[1], -(long long)least[2]);
    }
    return r == 0 && good && !least[0]
               ? muster_fail(err, MUSTER_ENOMEM, "another rank has no memory")
               : r;
}

int muster_comm_alloc(struct muster_comm *comm, size_t size_bytes, void **ret,
                      struct muster_err *err)
{
    int place = find_place(comm), r = sized_check_err(err);
    r = r < 0 ? r : comm_check_own(comm, err);
    r = r < 0 ? r : check_room(comm, size_bytes, place, err);
    if (r < 0) {
        return r;
    }
    size_t pages = size_bytes / SEGMENT_PAGE + 2; /* one page more for the skew */
    struct allocation allocation = {.size_bytes = size_bytes};
    r = segment_extend(&comm->segment, pages * SEGMENT_PAGE, comm->local_rank, &allocation.parts,
                       err);
    int agreed = agree(comm, size_bytes, r == 0, err);
    if (r == 0 && agreed == 0) {
        remember(comm, place, &allocation);
        *ret = allocation_start(&allocation, comm->local_rank);
        return 0;
    }
    if (r == 0) {
        segment_give_back(&comm->segment, &allocation.parts, comm->local_rank);
        segment_retract(&comm->segment, &allocation.parts);
    }
    return agreed < 0 ? agreed : r;
}
