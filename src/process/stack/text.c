/* See text.h.
 *
 *     Thread 0x00007f0a (most recent call first):        other threads; the main one is the last
 *       File "/usr/lib/python3.11/threading.py", line 320 in wait
 *     Current thread 0x00007f0b (most recent call first):
 *       File "/home/me/train.py", line 42 in main
 */
#include "process/stack/text.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { FRAME_BYTES = 200, FUNCTION_BYTES = 80 };

struct frame {
    char file[FRAME_BYTES];
    char function[FUNCTION_BYTES];
    int line;
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *next_line(const char *at)
{
    const char *newline = strchr(at, '\n');
    return newline ? newline + 1 : at + strlen(at);
}

/* Returns the first line of the last thread; NULL: there is none. */
static const char *main_thread(const char *stacks)
{
    const char *found = NULL;
    for (const char *at = stacks; *at; at = next_line(at)) {
        if (starts(at, "Thread ") || starts(at, "Current thread ")) {
            found = at;
        }
    }
    return found;
}

static bool read_frame(const char *line, struct frame *ret)
{
    return sscanf(line, "  File \"%199[^\"\n]\", line %d in %79[^\n]", ret->file, &ret->line,
                  ret->function) == 3;
}

static bool is_installed(const struct frame *frame)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/",
                                        "/lib/python3",    "<frozen ",
                                        "/muster/torch/",  "/muster/redirect.py"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(frame->file, parts[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the function only wraps another, so that its name tells nothing. */
static bool is_wrapper(const char *function)
{
    static const char *const names[] = {"wrapper", "wrapped", "inner", "collective",
                                        "decorate_context"};
    return function[0] == '_' || function[0] == '<' ||
           text_is_any_of(function, names, sizeof names / sizeof names[0]);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the first line of the next thread. */
static const char *after_thread(const char *thread)
{
    const char *at = next_line(thread);
    while (*at && !starts(at, "Thread ") && !starts(at, "Current thread ")) {
        at = next_line(at);
    }
    return at;
}

void stack_text_drop_asked(char *stacks)
{
    for (char *at = stacks; *at;) {
        const char *end = after_thread(at);
        struct frame frame;
        if (read_frame(next_line(at), &frame) && strcmp(frame.function, "_wait_to_be_asked") == 0) {
            memmove(at, end, strlen(end) + 1);
            return;
        }
        at += end - at;
    }
}

bool stack_text_where(const char *stacks, char *ret, size_t room)
{
    const char *at = main_thread(stacks);
    struct frame frame, first = {0};
    char called[FUNCTION_BYTES] = "";
    for (at = at ? next_line(at) : ""; *at && read_frame(at, &frame); at = next_line(at)) {
        if (!is_installed(&frame)) {
            (void)snprintf(ret, room, "%s%s%s:%d in %s", called, *called ? " at " : "",
                           file_name(frame.file), frame.line, frame.function);
            return true;
        }
        if (!is_wrapper(frame.function)) {
            (void)snprintf(called, sizeof called, "%s", frame.function);
        }
        first = first.line ? first : frame;
    }
    if (first.line) {
        (void)snprintf(ret, room, "%s:%d in %s", file_name(first.file), first.line, first.function);
    }
    return first.line > 0;
}
