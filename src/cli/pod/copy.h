/* Copies files and folders. Layer: cli (does I/O). */
#pragma once

#include <muster/err.h>

/* Copies as cp -r does: a file to a file, a folder's content into a folder (made if missing). Links
 * are copied as links, sockets and devices are left out. Times and modes are kept as far as
 * permitted. MUSTER_EINVAL, and nothing is lost, if both are the same file or `to` lies within the
 * folder `from`. */
int copy_tree(const char *from, const char *to, struct muster_err *err);

/* Appends a file's bytes to another. */
int copy_append(const char *from, const char *to, struct muster_err *err);
