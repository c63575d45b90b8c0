/* See env_file.h. */
#include "cli/submit/env_file.h"

#include "base/err.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int check_name(const char *name, struct muster_err *err)
{
    if (!*name) {
        return muster_fail(err, MUSTER_EDATA, "there is no name before the '='");
    }
    for (const char *at = name; *at; at++) {
        if (isspace((unsigned char)*at)) {
            return muster_fail(err, MUSTER_EDATA,
                               "white space in the name (docker's format: NAME=VALUE, nothing "
                               "around the '=')");
        }
    }
    return 0;
}

static int take_line(char *line, int (*each)(void *data, const char *name, const char *value),
                     void *data, struct muster_err *err)
{
    line += strspn(line, " \t");
    if (!*line || *line == '#') {
        return 0;
    }
    char *equals = strchr(line, '=');
    if (equals) {
        *equals = '\0';
    } else {
        for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--) {
            line[n - 1] = '\0';
        }
    }
    int r = check_name(line, err);
    return r < 0 ? r : each(data, line, equals ? equals + 1 : NULL);
}

int env_file_read(const char *path, char *text, size_t bytes,
                  int (*each)(void *data, const char *name, const char *value), void *data,
                  struct muster_err *err)
{
    static const char order_mark[] = "\xef\xbb\xbf";
    char *end = text + bytes;
    size_t number = 1;
    char *line = text;
    if (strncmp(line, order_mark, sizeof order_mark - 1) == 0) {
        line += sizeof order_mark - 1;
    }
    for (; line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *next = newline ? newline + 1 : end;
        char *last = newline ? newline : end;
        bool cut = memchr(line, '\0', (size_t)(last - line)) != NULL;
        last -= last > line && last[-1] == '\r';
        *last = '\0';
        int r =
            cut ? muster_fail(err, MUSTER_EDATA, "a NUL byte") : take_line(line, each, data, err);
        if (r < 0) {
            return muster_wrap(err, "%s:%zu", path, number);
        }
        line = next;
    }
    return 0;
}
