/* The files of deploy/ that the program carries with it; made from them when it is built
 * (cmake/embed.cmake). No code: static data. */
#pragma once

#include <stddef.h>

struct deploy_file {
    const char *name; /* below deploy/, NULL after the last */
    const char *text;
    size_t bytes;
};

extern const struct deploy_file deploy_files[];
