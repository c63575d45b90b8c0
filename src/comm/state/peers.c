/* What is known of the other ranks: alive, dead, suspected, closed.
 *
 * Proof of death is the kernel's word in the segment, or the end of a link. Suspicion is silence,
 * which failure.c counts. A suspected process on this host is killed before the error returns: if
 * it was only stopped and is continued later, it would go on writing into memory that it shares
 * with us (quiesce.c handles processes that cannot be killed).
 *
 * Layer: comm. Thread: any; the states are written by the heartbeat thread and read by all.
 */
#include "comm/state/peers.h"

#include "comm/system/deadline.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KILL_WAIT_MS = 200 };

enum muster_peer_state peers_state(const struct muster_comm *comm, int rank)
{
    const struct peer *peer = &comm->peers[rank];
    if (rank == comm->rank) {
        return phase_code(&comm->life) != 0 ? MUSTER_PEER_CLOSED : MUSTER_PEER_ALIVE;
    }
    if (peer->local >= 0) {
        const struct control *c = peers_control(comm, rank);
        if (atomic_load_explicit(&c->closed, memory_order_acquire)) {
            return MUSTER_PEER_CLOSED;
        }
        if (heartbeat_is_dead(&c->heartbeat)) {
            return MUSTER_PEER_DEAD;
        }
    }
    return (enum muster_peer_state)atomic_load_explicit(&peer->state, memory_order_acquire);
}

bool peers_kill(struct muster_comm *comm, int rank)
{
    struct control *c = peers_control(comm, rank);
    pid_t pid = atomic_load(&c->pid);
    int fd = comm->peers[rank].killable ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0) {
        return false;
    }
    /* It is still alive after the descriptor was opened, so the process id cannot have been given
     * to another process. */
    if (!heartbeat_is_dead(&c->heartbeat) && pid != getpid()) {
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    }
    close(fd);
    int64_t end = deadline_now_ns() + KILL_WAIT_MS * INT64_C(1000000);
    while (pid != getpid() && !heartbeat_is_dead(&c->heartbeat) && deadline_now_ns() < end) {
        struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return heartbeat_is_dead(&c->heartbeat);
}

int64_t peers_ended_after_ms(const struct muster_comm *comm, int rank)
{
    const struct peer *peer = &comm->peers[rank];
    bool ended =
        rank != comm->rank && peer->local >= 0 &&
        atomic_load_explicit(&peer->state, memory_order_acquire) == MUSTER_PEER_SUSPECTED &&
        heartbeat_is_dead(&peers_control(comm, rank)->heartbeat);
    return ended ? comm->heartbeat_timeout_ms : 0;
}

/* Whether a debugger traces the thread whose /proc status is at `path`. */
static bool is_traced(const char *path)
{
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *tracer = strstr(text, "\nTracerPid:\t");
    return tracer && tracer[strlen("\nTracerPid:\t")] != '0';
}

bool peers_is_traced(const struct muster_comm *comm, int rank)
{
    char path[40];
    uint32_t owner = atomic_load(&peers_control(comm, rank)->heartbeat.owner);
    (void)snprintf(path, sizeof path, "/proc/%u/status", owner & FUTEX_TID_MASK);
    return comm->peers[rank].killable && is_traced(path);
}

bool peers_this_thread_is_traced(void)
{
    return is_traced("/proc/thread-self/status");
}

int peers_failed_rank(const struct muster_comm *comm)
{
    int suspected = 0;
    for (int r = 0; r < comm->size; r++) {
        enum muster_peer_state state = r == comm->rank ? MUSTER_PEER_ALIVE : peers_state(comm, r);
        if (state == MUSTER_PEER_DEAD) {
            return r + 1;
        }
        suspected = state == MUSTER_PEER_SUSPECTED ? -(r + 1) : suspected;
    }
    return suspected;
}

void peers_believe(struct muster_comm *comm, int failed_rank)
{
    int rank = (failed_rank < 0 ? -failed_rank : failed_rank) - 1;
    if (rank >= 0 && rank < comm->size && comm->peers[rank].local < 0) {
        int alive = MUSTER_PEER_ALIVE;
        (void)atomic_compare_exchange_strong(&comm->peers[rank].state, &alive,
                                             failed_rank < 0 ? MUSTER_PEER_SUSPECTED
                                                             : MUSTER_PEER_DEAD);
    }
}
