/* See report_text.h. */
#include "process/stack/report_text.h"

#include "base/doc.h"

#include <string.h>

static void put_indented(struct buf *out, const char *prefix, const char *text)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        if (length > 0) {
            buf_format(out, "%s    %.*s\n", prefix, (int)length, at);
        }
        at += length + (at[length] == '\n');
    }
}

void report_put_process(struct buf *out, const char *prefix, const json_t *process)
{
    long long parent = (long long)doc_int(process, "parent", 0);
    buf_format(out, "%s  pid %lld", prefix, (long long)doc_int(process, "pid", 0));
    if (parent) {
        buf_format(out, ", child of %lld", parent);
    }
    buf_format(out, " (%s): %s", doc_text(process, "command", "?"), doc_text(process, "state", ""));
    const char *stacks = doc_text(process, "stacks", "");
    if (!*stacks) {
        buf_format(out, "; %s", doc_text(process, "why", "no stacks"));
    }
    buf_text(out, "\n");
    put_indented(out, prefix, stacks);
    const char *native = doc_text(process, "native", "");
    if (*native) {
        buf_format(out, "%s    by py-spy:\n", prefix);
        put_indented(out, prefix, native);
    }
    const char *native_why = doc_text(process, "nativeWhy", "");
    if (*native_why) {
        buf_format(out, "%s    (no native frames: %s)\n", prefix, native_why);
    }
}

void report_put_state(struct buf *out, const json_t *attempt)
{
    const json_t *process = json_array_get(json_object_get(attempt, "processes"), 0);
    const char *where = doc_text(process, "where", "");
    const char *state = doc_text(process, "state", "gone");
    if (*where) {
        buf_format(out, "%s %s %s", state, strstr(where, " at ") ? "in" : "at", where);
    } else if (strcmp(state, "stopped") == 0) {
        buf_text(out, "stopped (SIGSTOP)");
    } else {
        buf_format(out, "%s (%s)", state, doc_text(process, "command", "?"));
    }
}
