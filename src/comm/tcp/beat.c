/* Heartbeats as datagrams. Layer: comm; see beat.h. */
#include "comm/tcp/beat.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { BEAT_MAGIC = 0x6d626561 };

struct beat {
    uint32_t magic;
    int32_t rank;
    uint64_t generation;
    uint32_t word;
    uint32_t zero;
};

/* Connections that were accepted at one port share this port; only the pair of both ends identifies
 * one. */
int beat_open(int connection)
{
    struct sockaddr_storage here, there;
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    int on = 1;
    if (getsockname(connection, (struct sockaddr *)&here, &here_bytes) < 0 ||
        getpeername(connection, (struct sockaddr *)&there, &there_bytes) < 0) {
        return -1;
    }
    int fd = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
                    bind(fd, (struct sockaddr *)&here, here_bytes) < 0 ||
                    connect(fd, (struct sockaddr *)&there, there_bytes) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void beat_send(int fd, uint64_t generation, int rank, uint32_t word)
{
    struct beat beat = {BEAT_MAGIC, rank, generation, word, 0};
    if (fd >= 0) {
        (void)send(fd, &beat, sizeof beat, MSG_NOSIGNAL);
    }
}

static bool is_of(const struct beat *beat, uint64_t generation, int rank)
{
    return beat->magic == BEAT_MAGIC && beat->rank == rank && beat->generation == generation;
}

bool beat_receive(int fd, uint64_t generation, int rank, uint32_t *ret_word)
{
    struct beat beat;
    bool heard = false;
    ssize_t n;
    /* If one of our beats was refused, this error is reported once, before the beats that have
     * arrived. */
    while (fd >= 0 && ((n = recv(fd, &beat, sizeof beat, 0)) >= 0 || errno == ECONNREFUSED)) {
        if (n == (ssize_t)sizeof beat && is_of(&beat, generation, rank)) {
            heard = true;
            *ret_word = beat.word != 0 ? beat.word : *ret_word;
        }
    }
    return heard;
}
