/* See pid_space.h. */
#include "core/pid_space.h"

#include "core/hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t pid_space(void)
{
    char boot[64];
    struct stat space;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, boot, sizeof boot) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (count <= 0 || stat("/proc/self/ns/pid", &space) < 0) {
        return 0;
    }
    uint64_t number = (uint64_t)space.st_ino;
    return hash_bytes(hash_bytes(HASH_START, boot, (size_t)count), &number, sizeof number);
}
