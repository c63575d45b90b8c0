/* The files of deploy/ that the program carries with it; made from them when it is built
 * (cmake/embed.cmake). Static data. */
#pragma once

#include <stddef.h>
#include <string.h>

struct deploy_file {
    const char *name; /* path below deploy/; NULL after the last file */
    const char *text;
    size_t bytes;
};

extern const struct deploy_file deploy_files[];

/* Returns the file; NULL: there is none of that name. */
static inline const struct deploy_file *deploy_file_find(const char *name)
{
    const struct deploy_file *file = deploy_files;
    while (file->name && strcmp(file->name, name) != 0) {
        file++;
    }
    return file->name ? file : NULL;
}
