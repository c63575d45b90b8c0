/* See doing.h. For a rank of this host the flight record tells what it is in, for a rank of
 * another host its heartbeats. */
#include "comm/health/doing.h"

#include "comm/state/peers.h"
#include "comm/tcp/link.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t doing_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                         uint64_t *ret_count, bool *ret_ended)
{
    if (comm->peers[rank].local < 0) {
        return link_last_call(comm, rank, ret_shape, ret_count, ret_ended);
    }
    const struct flight *flight = &peers_control(comm, rank)->flight;
    uint64_t number = flight_newest(flight, ret_shape, ret_count);
    *ret_ended = flight_has_ended(flight, number);
    return number;
}

static char read_state(int pid)
{
    char path[32], text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    return at && at[1] == ' ' ? at[2] : '\0';
}

/* Describes the state of a process whose process id means the same here, as the kernel reports it;
 * "" for others. */
static void describe_process(const struct muster_comm *comm, int rank, char *ret, size_t size_bytes)
{
    int pid = comm->peers[rank].killable ? atomic_load(&peers_control(comm, rank)->pid) : 0;
    char state = pid > 0 ? read_state(pid) : '\0';
    const char *does = state == 'R'   ? "runs"
                       : state == 'T' ? "is stopped"
                       : state == 'D' ? "waits for a device"
                                      : "sleeps";
    ret[0] = '\0';
    if (state) {
        (void)snprintf(ret, size_bytes, " (process %d %s)", pid, does);
    }
}

uint64_t doing_describe(struct muster_comm *comm, int rank, char *ret, size_t size_bytes)
{
    uint64_t shape = 0, count = 0;
    bool ended = false;
    char call[80], process[64];
    uint64_t number = doing_last_call(comm, rank, &shape, &count, &ended);
    describe_process(comm, rank, process, sizeof process);
    flight_name(shape, count, call, sizeof call);
    if (number == 0) {
        (void)snprintf(ret, size_bytes, "has entered no call%s", process);
    } else {
        (void)snprintf(ret, size_bytes, "is in %scall %llu, %s%s", ended ? "no call since " : "",
                       (unsigned long long)comm_user_number(number), call, process);
    }
    return number;
}
