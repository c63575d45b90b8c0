/* Finds out which user is at the other end of a Unix socket. Layer: comm; see credentials.h. */
#include "comm/endpoint/credentials.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OVERFLOW_UID = 65534 };

/* In a user namespace that maps only some users, the kernel shows all others as one number. */
static bool all_users_have_numbers(void)
{
    unsigned long inside, outside, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool read = map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3;
    if (map) {
        (void)fclose(map);
    }
    return read && count == UINT32_MAX;
}

bool credentials_are_shared(void)
{
    return geteuid() == OVERFLOW_UID && !all_users_have_numbers();
}

bool credentials_are_ours(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0 || peer.pid < 0 ||
        peer.uid == (uid_t)-1) {
        return false;
    }
    return peer.uid == geteuid() && !credentials_are_shared();
}
