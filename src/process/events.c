/* See events.h. */
#include "process/events.h"

#include "base/doc.h"
#include "base/time/timestamp.h"

#include <string.h>

/* Records are read from a disk: a value that is not a time counts as unknown. */
static int64_t time_of(const json_t *event, const char *name)
{
    int64_t unix_ms = doc_int(event, name, 0);
    return timestamp_fits(unix_ms) ? unix_ms : 0;
}

static void tell_started(const struct process_events *to, void *data, const json_t *event)
{
    if (to->started) {
        to->started(data, doc_text(event, "id", ""), time_of(event, "at"));
    }
}

static void tell_exited(const struct process_events *to, void *data, const json_t *event)
{
    const struct process_exit how = {
        .code = (int)doc_int(event, "code", 0),
        .signal = (int)doc_int(event, "signal", 0),
        .oom = doc_bool(event, "oom", false),
        .started_unix_ms = time_of(event, "startedAt"),
        .at_unix_ms = time_of(event, "at"),
        .peak_memory_bytes = doc_int(event, "peakMemoryBytes", 0),
        .reason = doc_text(event, "reason", ""),
        .message = doc_text(event, "message", ""),
    };
    if (to->exited) {
        to->exited(data, doc_text(event, "id", ""), &how);
    }
}

static void tell_start_failed(const struct process_events *to, void *data, const json_t *event)
{
    if (to->start_failed) {
        to->start_failed(data, doc_text(event, "id", ""), (int)doc_int(event, "code", 128),
                         doc_text(event, "reason", "StartError"), doc_text(event, "message", ""));
    }
}

static void tell_note(const struct process_events *to, void *data, const json_t *event)
{
    if (to->note) {
        to->note(data, doc_text(event, "id", NULL), doc_text(event, "reason", "IsolationDegraded"),
                 doc_text(event, "text", ""));
    }
}

static void tell_stacks(const struct process_events *to, void *data, const json_t *event)
{
    if (to->stacks) {
        to->stacks(data, doc_int(event, "ticket", 0), doc_at(event, "attempts"));
    }
}

static void tell_stalled(const struct process_events *to, void *data, const json_t *event)
{
    if (to->stalled) {
        to->stalled(data, doc_text(event, "id", ""), doc_text(event, "text", ""));
    }
}

bool events_tell(const struct process_events *to, void *data, const json_t *event)
{
    static const struct {
        const char *kind;
        void (*tell)(const struct process_events *to, void *data, const json_t *event);
    } kinds[] = {
        {"started", tell_started}, {"exited", tell_exited},   {"start_failed", tell_start_failed},
        {"note", tell_note},       {"stalled", tell_stalled}, {"stacks", tell_stacks},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(doc_text(event, "event", ""), kinds[i].kind) == 0) {
            kinds[i].tell(to, data, event);
            return true;
        }
    }
    return false;
}
