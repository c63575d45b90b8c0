/* Shortens paths for people. Layer: cli; pure. */
#pragma once

#include <limits.h>
#include <stddef.h>

enum { SHORT_PATH_BYTES = PATH_MAX };

/* Writes `path` relative to the folder `cwd` if it is in there, else as "~/…" if it is in `home`,
 * else as it is. cwd and home may be NULL. Returns ret. */
const char *short_path_from(const char *path, const char *cwd, const char *home,
                            char ret[SHORT_PATH_BYTES]);

/* The same for this process's folder and HOME. */
const char *short_path(const char *path, char ret[SHORT_PATH_BYTES]);
