/* See variables.h. */
#include "base/variables.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t variables_name_length(const char *entry)
{
    const char *equals = strchr(entry, '=');
    return equals ? (size_t)(equals - entry) : 0;
}

const char *variables_value(char *const *list, const char *name)
{
    size_t length = strlen(name);
    for (; list && *list; list++) {
        if (strncmp(*list, name, length) == 0 && (*list)[length] == '=') {
            return *list + length + 1;
        }
    }
    return NULL;
}

/* ---- Parsing ---- */

static int check(const char *bytes, size_t count, size_t *ret_entries, struct muster_err *err)
{
    size_t entries = 0;
    bool divided = false;
    if (count > VARIABLES_BYTES_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "an environment of %zu KiB: at most %d KiB fit",
                           count >> 10, VARIABLES_BYTES_MAX >> 10);
    }
    if (count > 0 && bytes[count - 1] != '\0') {
        return muster_fail(err, MUSTER_EDATA, "the environment is cut off");
    }
    for (const char *at = bytes; at < bytes + count; at += strlen(at) + 1) {
        if (*at ? variables_name_length(at) == 0 : divided) {
            return muster_fail(err, MUSTER_EDATA, "entry %zu of the environment is no NAME=VALUE",
                               entries);
        }
        if (strlen(at) >= VARIABLE_BYTES_MAX) {
            return muster_fail(err, MUSTER_ETOOBIG, "entry %zu of the environment is too large",
                               entries);
        }
        divided = divided || !*at;
        entries++;
    }
    *ret_entries = entries;
    return 0;
}

static void divide(struct variables *v, size_t count)
{
    char **into = v->shell;
    v->given = NULL;
    for (char *at = v->bytes; at < v->bytes + count; at += strlen(at) + 1) {
        if (*at) {
            *into++ = at;
        } else {
            *into++ = NULL;
            v->given = into;
        }
    }
    *into = NULL;
    v->given = v->given ? v->given : into;
}

/* Takes `bytes`. */
static int parse(char *bytes, size_t count, struct variables *ret, struct muster_err *err)
{
    size_t entries = 0;
    struct variables v = {.bytes = bytes};
    int r = check(bytes, count, &entries, err);
    if (r == 0) {
        v.shell = calloc(entries + 1, sizeof *v.shell);
        r = v.shell ? 0 : err_no_memory(err);
    }
    if (r < 0) {
        variables_done(&v);
        return r;
    }
    divide(&v, count);
    *ret = v;
    return 0;
}

int variables_parse(const char *bytes, size_t count, struct variables *ret, struct muster_err *err)
{
    char *copy = malloc(count + 1);
    if (!copy) {
        return err_no_memory(err);
    }
    memcpy(copy, bytes, count);
    copy[count] = '\0';
    return parse(copy, count, ret, err);
}

static int open_own(const char *path, size_t *ret_bytes, struct muster_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return file_fail(err, errno == ENOENT ? MUSTER_ENOENT : MUSTER_EOS, "read", path);
    }
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        info.st_size > VARIABLES_BYTES_MAX) {
        close(fd);
        return muster_fail(err, MUSTER_EDATA, "%s is no environment of ours", path);
    }
    *ret_bytes = (size_t)info.st_size;
    return fd;
}

int variables_read(const char *path, struct variables *ret, struct muster_err *err)
{
    size_t size = 0;
    size_t used = 0;
    muster_auto(close) int fd = open_own(path, &size, err);
    char *bytes = fd < 0 ? NULL : malloc(size + 1);
    if (!bytes) {
        return fd < 0 ? fd : err_no_memory(err);
    }
    for (ssize_t n = 1; used < size && n > 0; used += n > 0 ? (size_t)n : 0) {
        n = read(fd, bytes + used, size - used);
    }
    bytes[used] = '\0';
    return parse(bytes, used, ret, err);
}

void variables_done(struct variables *variables)
{
    free(variables->bytes);
    free(variables->shell);
    *variables = (struct variables){0};
}

/* ---- Merging ---- */

struct ranked {
    char *entry;
    size_t name_length;
    size_t place;
};

static int compare_names(const struct ranked *a, const struct ranked *b)
{
    size_t shorter = a->name_length < b->name_length ? a->name_length : b->name_length;
    int order = memcmp(a->entry, b->entry, shorter);
    return order ? order : (a->name_length > b->name_length) - (a->name_length < b->name_length);
}

static int by_name(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = compare_names(a, b);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

static struct ranked *collect(char *const *const *lists, size_t count, size_t *ret_entries)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        for (char *const *entry = lists[i]; entry && *entry; entry++) {
            entries++;
        }
    }
    struct ranked *all = calloc(entries + 1, sizeof *all);
    size_t used = 0;
    for (size_t i = 0; all && i < count; i++) {
        for (char *const *entry = lists[i]; entry && *entry; entry++, used++) {
            all[used] = (struct ranked){*entry, variables_name_length(*entry), used};
        }
    }
    *ret_entries = entries;
    return all;
}

char **variables_merge(char *const *const *lists, size_t count)
{
    size_t entries = 0;
    size_t kept = 0;
    muster_auto(free) struct ranked *all = collect(lists, count, &entries);
    char **merged = all ? calloc(entries + 1, sizeof *merged) : NULL;
    if (!merged) {
        return NULL;
    }
    qsort(all, entries, sizeof *all, by_name);
    for (size_t i = 0; i < entries; i++) {
        bool first = i == 0 || compare_names(&all[i - 1], &all[i]) != 0;
        if (first && all[i].name_length > 0) {
            merged[all[i].place] = all[i].entry;
        }
    }
    for (size_t i = 0; i < entries; i++) {
        if (merged[i]) {
            merged[kept++] = merged[i];
        }
    }
    merged[kept] = NULL;
    return merged;
}
