/* Ends the links of a communicator, so that the goodbye of this rank, and all it sent before,
 * arrive although its sockets are closed.
 *
 * A socket that is closed with unread data, or that receives data afterwards, resets its
 * connection, and data that was not acknowledged is lost. Therefore a rank that leaves discards
 * incoming data until the peer's kernel has acknowledged everything, which takes one round trip
 * whatever the peer computes, or until the peer has left, too. It does not wait for dead peers.
 *
 * - It waits for the acknowledgement of the goodbye until a peer that has not got it suspects us:
 *   after that, the end of the heartbeat socket proves nothing to the peer.
 * - Messages may have to wait for a reader that computes for long: after a short time they are left
 *   to the kernel. The side that sends last sends nothing more that would reset the connection.
 * - Lanes of collectives lose no data that is needed: a rank that sends there has entered a later
 *   call, and so has read the data of all calls that this rank completed.
 *
 * Layer: comm; see link.h. Memory: none. Thread: the caller's.
 */
#include "comm/state/peers.h"
#include "comm/system/deadline.h"
#include "comm/tcp/link.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGES_MS = 200,
    UNSUSPECTED_MS = 2000, /* used if silence is not a reason to suspect a rank, or is one only
                              later */
    FIRST_NAP_NS = 20 * 1000,
    LONGEST_NAP_NS = 1000 * 1000,
};

static bool has_arrived(const struct channel *c)
{
    int unacknowledged = 0;
    return c->fd < 0 || channel_has_ended(c) || ioctl(c->fd, SIOCOUTQ, &unacknowledged) < 0 ||
           unacknowledged == 0;
}

/* Called before the wait, because the end of a lane must be acknowledged too, and that may take a
 * while. */
static void end_lanes(struct link *link, bool in_order)
{
    for (int lane = 0; lane < LANES; lane++) {
        struct channel *c = &link->channels[lane];
        if (lane == LANE_MESSAGES && in_order && !has_arrived(c)) {
            (void)shutdown(c->fd, SHUT_WR);
        } else {
            fork_close(&c->fd);
        }
    }
}

static void drain(struct channel *c)
{
    char waste[16 * 1024];
    ssize_t n = recv(c->fd, waste, sizeof waste, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        ending_channel(&c->state, CHANNEL_ENDED);
    }
}

/* Finds what that rank's kernel has not acknowledged: adds these channels to fds, and returns the
 * new number of fds. */
static int find_rest(struct muster_comm *comm, int rank, bool messages, struct pollfd *fds, int num)
{
    struct channel *lane = &comm->peers[rank].link->channels[LANE_MESSAGES];
    const struct channel *life = &comm->peers[rank].link->channels[LINK_HEARTBEAT];
    bool knows = has_arrived(life);
    if (!knows) {
        link_listen(comm, rank);
        fds[num++] = (struct pollfd){.fd = life->fd, .events = POLLIN};
    }
    if ((messages || !knows) && !has_arrived(lane)) {
        drain(lane);
        fds[num++] = (struct pollfd){.fd = lane->fd, .events = POLLIN};
    }
    return num;
}

static bool is_there(const struct muster_comm *comm, int rank)
{
    enum muster_peer_state state = peers_state(comm, rank);
    return state == MUSTER_PEER_ALIVE || state == MUSTER_PEER_CLOSED;
}

static int64_t word_limit_ns(const struct muster_comm *comm)
{
    int64_t suspected_ms = comm->heartbeat_timeout_ms + 2 * HEARTBEAT_MS;
    bool soon = comm->heartbeat_timeout_ms > 0 && suspected_ms < UNSUSPECTED_MS;
    return (soon ? suspected_ms : UNSUSPECTED_MS) * INT64_C(1000000);
}

static void wait_for_kernels(struct muster_comm *comm)
{
    struct pollfd fds[MUSTER_MAX_RANKS * 2];
    struct timespec nap = {0, FIRST_NAP_NS};
    int64_t start = deadline_now_ns(), limit = word_limit_ns(comm);
    for (int64_t waited = 0; waited < limit; waited = deadline_now_ns() - start) {
        int num = 0;
        for (int r = 0; r < comm->size; r++) {
            if (comm->peers[r].link && is_there(comm, r)) {
                num = find_rest(comm, r, waited < MESSAGES_MS * INT64_C(1000000), fds, num);
            }
        }
        if (num == 0) {
            return;
        }
        if (ppoll(fds, (nfds_t)num, &nap, NULL) == 0) {
            nap.tv_nsec = nap.tv_nsec < LONGEST_NAP_NS ? 2 * nap.tv_nsec : LONGEST_NAP_NS;
        }
    }
}

void link_leave(struct muster_comm *comm)
{
    if (atomic_load(&comm->last_word) == 0) {
        link_say_closed(comm, 0); /* the communicator never opened: the others must not take this
                                     rank for dead */
    }
    for (int r = 0; r < comm->size; r++) {
        if (comm->peers[r].link) {
            end_lanes(comm->peers[r].link, phase_is_leaving(&comm->life));
        }
    }
    wait_for_kernels(comm);
}
