/* See short_path.h. */
#include "cli/show/short_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The part of path behind `folder` and a slash; NULL if the path is not in the folder. */
static const char *below(const char *path, const char *folder)
{
    size_t length = folder ? strlen(folder) : 0;
    bool inside = length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/' &&
                  path[length + 1] != '\0';
    return inside ? path + length + 1 : NULL;
}

const char *short_path_from(const char *path, const char *cwd, const char *home,
                            char ret[SHORT_PATH_BYTES])
{
    const char *here = below(path, cwd);
    const char *there = below(path, home);
    snprintf(ret, SHORT_PATH_BYTES, "%s%s", here || !there ? "" : "~/",
             here    ? here
             : there ? there
                     : path);
    return ret;
}

const char *short_path(const char *path, char ret[SHORT_PATH_BYTES])
{
    char cwd[PATH_MAX];
    return short_path_from(path, getcwd(cwd, sizeof cwd), getenv("HOME"), ret);
}
