/* Writes the entries of an archive as files, below one destination and nowhere else.
 *
 * The archive comes from a program in somebody's image. Its first entry is the destination itself,
 * all others are below; a name that leads elsewhere is refused, and no link that lies there is
 * followed. A file that is torn is removed.
 *
 * Layer: cli (does I/O). Ownership: unpack_init/unpack_done.
 */
#pragma once

#include "cli/copy/tar.h"

struct unpack {
    const char *to; /* borrowed */
    bool has_root;  /* the first entry was read */
    int folder;     /* the destination, if it is a folder, else -1 */
    int file;       /* the file that is being written, or -1 */
    char *path;     /* its name, for messages */
    int parent;     /* the folder that it lies in */
    char *leaf;     /* its last name */
    int64_t changed_unix_s;
};

void unpack_init(struct unpack *unpack, const char *to);
/* Removes a file that is not finished. */
void unpack_done(struct unpack *unpack);

/* The functions to give to a reader of the archive. */
struct tar_events unpack_events(struct unpack *unpack);
