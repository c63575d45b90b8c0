/* The life of a communicator after it was formed: queries, abort and end. Layer: comm. */
#include "comm/api/comm.h"

#include "comm/algorithm/hierarchy.h"
#include "comm/algorithm/rooted.h"
#include "comm/health/failure.h"
#include "comm/health/witness.h"
#include "comm/messages/message.h"
#include "comm/progress/background.h"
#include "comm/progress/inside.h"
#include "comm/progress/lane.h"
#include "comm/progress/progress.h"
#include "comm/state/peers.h"
#include "comm/state/team.h"
#include "comm/system/membarrier.h"
#include "comm/system/sized.h"
#include "comm/tcp/link.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool init_lanes(struct muster_comm *comm)
{
    for (int l = 0; l < LANES; l++) {
        struct lane *lane = &comm->lanes[l];
        lane->index = l;
        pthread_mutex_init(&lane->queue, NULL);
        lane->words = calloc((size_t)comm->size * COMM_WORDS, sizeof *lane->words);
        if (!lane->words) {
            return false;
        }
    }
    return true;
}

static void place_peers(struct muster_comm *comm, const int *hosts)
{
    for (int r = 0; r < comm->size; r++) {
        struct peer *peer = &comm->peers[r];
        peer->host = hosts[r];
        peer->local = -1;
        if (hosts[r] == hosts[comm->rank]) {
            comm->local_rank = r == comm->rank ? comm->local_size : comm->local_rank;
            comm->locals[comm->local_size] = r;
            peer->local = comm->local_size++;
        }
    }
    assert(comm->locals[comm->local_rank] == comm->rank);
    comm->all_local = comm->local_size == comm->size;
}

/* If no host has two ranks, there are no boards, and the pieces of a round may be larger. */
static size_t find_capacity(const int *hosts, int size)
{
    for (int r = 0; r < size; r++) {
        if (hosts[r] != r) {
            return BOARD_BYTES;
        }
    }
    return size > 1 ? (size_t)size * LINK_PIECE_BYTES : BOARD_BYTES;
}

/* Returns 0 for never. Notices are printed only if the option or the environment asks for them. */
static int64_t find_notice_ms(const struct muster_comm_options *options)
{
    const char *value = getenv("MUSTER_NOTICE_MS");
    char *end = NULL;
    long long ms = value ? strtoll(value, &end, 10) : 0;
    ms = options->notice_ms != 0 ? options->notice_ms : end && *end ? 0 : ms;
    return ms < 0 ? 0 : ms;
}

/* A child has neither our connections nor our memory. */
static void hang_up_in_child(void *context)
{
    struct muster_comm *comm = context;
    link_hang_up(comm);
    segment_hang_up(&comm->segment);
}

struct muster_comm *comm_new(int rank, int size, const int *hosts,
                             const struct muster_comm_options *options)
{
    assert(size >= 1 && size <= MUSTER_MAX_RANKS && rank >= 0 && rank < size);
    struct muster_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        return NULL;
    }
    comm->rank = rank;
    comm->size = size;
    comm->process = heartbeat_process();
    phase_init(&comm->life);
    comm->fenced = !membarrier_register();
    comm->segment.fd = -1;
    pthread_mutex_init(&comm->allocating, NULL);
    comm->peers = calloc((size_t)size, sizeof *comm->peers);
    comm->locals = calloc((size_t)size, sizeof *comm->locals);
    comm->allocations = calloc(COMM_MAX_ALLOCATIONS, sizeof *comm->allocations);
    comm->transport = options->transport ? strdup(options->transport) : NULL;
    if (!comm->peers || !comm->locals || !comm->allocations ||
        (options->transport && !comm->transport) || !init_lanes(comm)) {
        muster_comm_free(comm);
        return NULL;
    }
    place_peers(comm, hosts);
    comm->capacity = find_capacity(hosts, size);
    if (!team_init(comm, hosts) || hierarchy_init(comm) < 0) {
        muster_comm_free(comm);
        return NULL;
    }
    atomic_store(&comm->timeout_ms, options->timeout_ms);
    comm->heartbeat_timeout_ms = options->heartbeat_timeout_ms;
    comm->notice_ms = find_notice_ms(options);
    comm->interrupted = options->interrupted;
    comm->interrupted_context = options->interrupted_context;
    comm->fork = (struct fork_watch){.forked = hang_up_in_child, .context = comm};
    fork_remember(&comm->fork);
    return comm;
}

int muster_comm_rank(const struct muster_comm *comm)
{
    return comm->rank;
}

int muster_comm_size(const struct muster_comm *comm)
{
    return comm->size;
}

uint64_t muster_comm_generation(const struct muster_comm *comm)
{
    return comm->generation;
}

void muster_comm_set_timeout(struct muster_comm *comm, int64_t timeout_ms)
{
    atomic_store(&comm->timeout_ms, timeout_ms);
}

const char *muster_comm_describe(const struct muster_comm *comm)
{
    return comm->description;
}

int muster_comm_query(const struct muster_comm *comm, struct muster_comm_state *ret,
                      enum muster_peer_state *ret_peers, struct muster_err *err)
{
    int r = sized_check_err(err);
    r = r == 0 && ret ? sized_check(&sized_state, ret, err) : r;
    if (r < 0) {
        return r;
    }
    bool ours = comm->process == heartbeat_process();
    struct muster_comm_state state = {
        .generation = comm->generation,
        .started = comm_user_number(atomic_load(&comm->started)),
        .completed = comm_user_number(atomic_load(&comm->completed)),
        .closed = ours ? phase_code(&comm->life) : MUSTER_EINVAL,
        .input_untouched = !atomic_load(&comm->input_touched),
    };
    if (ret) {
        sized_write(&sized_state, ret, &state);
    }
    for (int rank = 0; ret_peers && rank < comm->size; rank++) {
        ret_peers[rank] = ours ? peers_state(comm, rank) : MUSTER_PEER_CLOSED;
    }
    return 0;
}

void muster_comm_abort(struct muster_comm *comm)
{
    if (comm->process == heartbeat_process()) {
        failure_close(comm, MUSTER_EABORTED);
        progress_drain(comm);
        while (!inside_is(comm, INSIDE_SEVERAL) && use_is(&comm->use, COMM_IN_SEVERAL)) {
            (void)sched_yield();
        }
    }
}

static void leave_host(struct muster_comm *comm)
{
    if (phase_of(&comm->life) != COMM_FORMING) {
        heartbeat_leave(&comm->control->heartbeat, &comm->watch);
    }
    for (int i = 0; i < comm->num_allocations; i++) {
        if (comm->allocations[i].parts.base) {
            segment_retract(&comm->segment, &comm->allocations[i].parts);
        }
    }
    segment_close(&comm->segment);
}

void muster_comm_free(struct muster_comm *comm)
{
    if (!comm || comm->process != heartbeat_process()) {
        return; /* in a forked child the communicator belongs to the parent */
    }
    if (phase_of(&comm->life) != COMM_FORMING) {
        if (lane_in_flight(comm) == 0) {
            rooted_end(comm);
            failure_leave(comm);
        } else {
            failure_close(comm, MUSTER_EABORTED);
        }
        progress_drain(comm);
        background_forget(comm);
    }
    assert(phase_of(&comm->life) == COMM_FORMING || phase_is_quiesced(&comm->life));
    if (comm->peers) {
        link_leave(comm);
    }
    message_free(comm);
    leave_host(comm);
    link_free(comm);
    fork_forget(&comm->fork);
    if (comm->witnessed) {
        witness_release();
    }
    for (int l = 0; l < LANES; l++) {
        pthread_mutex_destroy(&comm->lanes[l].queue);
        free(comm->lanes[l].words);
    }
    pthread_mutex_destroy(&comm->allocating);
    hierarchy_free(comm);
    team_done(comm);
    free(comm->allocations);
    free(comm->transport);
    free(comm->locals);
    free(comm->peers);
    free(comm);
}
