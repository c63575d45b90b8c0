/* Whether a process lives, for tests. Tests only. */
#pragma once

#include "process/identity.h"

#include <unistd.h>

static inline bool identity_lives(const char *identity)
{
    int fd = -1;
    if (identity_open(identity, &fd, NULL) < 0) {
        return false;
    }
    close(fd);
    return true;
}
