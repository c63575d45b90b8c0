/* See words.h. */
#include "process/machine/words.h"

#include "base/doc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORD_PAGES_MAX = 32 };

static const char hint[] = "put the text into a file, for example of a ConfigMap volume";

/* Counts the terminating zero, as the kernel does. */
static size_t bytes_of(const json_t *text)
{
    return json_string_length(text) + 1;
}

static bool is_too_long(const char *what, size_t index, size_t bytes, struct words_fault *ret)
{
    size_t most = (size_t)sysconf(_SC_PAGESIZE) * WORD_PAGES_MAX;
    if (bytes <= most) {
        return false;
    }
    size_t used = strlen(ret->path);
    (void)snprintf(ret->path + used, sizeof ret->path - used, ".%s[%zu]", what, index);
    (void)snprintf(ret->text, sizeof ret->text,
                   "%zu KiB are too long: the kernel takes less than %zu KiB of a word, or of a "
                   "variable with its name",
                   bytes >> 10, most >> 10);
    ret->hint = hint;
    return true;
}

/* Adds the size of the words of the list to *sum. */
static bool list_fault(const json_t *container, const char *list, size_t *sum,
                       struct words_fault *ret)
{
    size_t i;
    json_t *word;
    json_array_foreach (doc_at(container, list), i, word) {
        *sum += bytes_of(word) + sizeof(char *);
        if (is_too_long(list, i, bytes_of(word), ret)) {
            return true;
        }
    }
    return false;
}

static bool env_fault(const json_t *container, struct words_fault *ret)
{
    size_t i;
    json_t *variable;
    json_array_foreach (doc_at(container, "env"), i, variable) {
        size_t bytes = bytes_of(doc_at(variable, "name")) + bytes_of(doc_at(variable, "value"));
        if (is_too_long("env", i, bytes, ret)) {
            return true;
        }
    }
    return false;
}

bool words_fault(const json_t *container, const char *at, long most_bytes, struct words_fault *ret)
{
    size_t sum = 0;
    (void)snprintf(ret->path, sizeof ret->path, "%s", at);
    size_t most = most_bytes > 0 && most_bytes < WORDS_BYTES_MAX ? (size_t)most_bytes
                                                                 : (size_t)WORDS_BYTES_MAX;
    if (list_fault(container, "command", &sum, ret) || list_fault(container, "args", &sum, ret) ||
        env_fault(container, ret)) {
        return true;
    }
    if (sum <= most) {
        return false;
    }
    (void)snprintf(ret->text, sizeof ret->text,
                   "command and args are too long (%zu KiB): the kernel takes %zu KiB in all "
                   "(ulimit -s is four times that)",
                   sum >> 10, most >> 10);
    ret->hint = hint;
    return true;
}
