/* See inspect.h. */
#include "process/supervisor/inspect.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "process/stack/collectives.h"
#include "process/stack/report_text.h"
#include "process/stack/stacks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_MS_MAX = 5000,
    ANSWER_MS_MAX = 1000,
    SIGNAL_MS_MAX = 700, /* shorter, as a signal that ends a deadline must not be late */
    LOG_BYTES_MAX = 512 << 10,
};

/* One request under way. */
struct request {
    const struct inspect *inspect;
    int64_t ticket;
    int signal;
    char *id; /* set by inspect_explain only */
};

static void free_request(struct request *request)
{
    if (request) {
        free(request->id);
        free(request);
    }
}

/* Takes the stacks of all attempts: a rank may wait for one that was not asked for. */
static int take(struct request *request, const char *id, const struct stacks_options *options,
                stacks_done_fn done)
{
    const struct inspect *inspect = request->inspect;
    muster_auto(free) struct stacks_root *roots = calloc(*inspect->count + 1, sizeof *roots);
    struct stacks *stacks;
    for (size_t i = 0; roots && i < *inspect->count; i++) {
        roots[i] = attempt_stacks_root(inspect->attempts[i]);
        roots[i].quiet = !attempt_fits(inspect->attempts[i], id) ||
                         (request->id && attempt_is_explained(inspect->attempts[i]));
    }
    return roots ? stacks_take(inspect->loop, roots, *inspect->count, options, done, request,
                               &stacks, NULL)
                 : MUSTER_ENOMEM;
}

/* ---- For a controller ---- */

static void answer(void *data, const json_t *report)
{
    struct request *request = data;
    muster_auto(doc) json_t *event = json_pack("{s:s, s:I, s:O}", "event", "stacks", "ticket",
                                               (json_int_t)request->ticket, "attempts", report);
    if (event) {
        request->inspect->tell(request->inspect->data, event);
    }
    free_request(request);
}

void inspect_stacks(const struct inspect *inspect, const json_t *message)
{
    int64_t sample_ms = doc_int(message, "sampleMs", 0);
    sample_ms = sample_ms < 0 ? 0 : sample_ms > SAMPLE_MS_MAX ? SAMPLE_MS_MAX : sample_ms;
    const struct stacks_options options = {.sample_ms = sample_ms, .limit_ms = ANSWER_MS_MAX};
    struct request *request = calloc(1, sizeof *request);
    if (!request) {
        return;
    }
    *request = (struct request){.inspect = inspect, .ticket = doc_int(message, "ticket", 0)};
    if (take(request, doc_text(message, "id", ""), &options, answer) < 0) {
        free_request(request);
    }
}

/* ---- Before the end ---- */

static void write_log(struct attempt *attempt, const json_t *report, const json_t *own)
{
    struct buf text;
    size_t i;
    json_t *line, *process;
    muster_auto(doc) json_t *collectives = collectives_describe(report);
    buf_init(&text, LOG_BYTES_MAX);
    buf_text(&text, "muster: the deadline is over; what this rank was in: ");
    report_put_state(&text, own);
    buf_text(&text, "\n");
    json_array_foreach (collectives, i, line) {
        buf_format(&text, "muster: %s\n", json_string_value(line));
    }
    json_array_foreach (json_object_get(own, "processes"), i, process) {
        report_put_process(&text, "muster:", process);
    }
    attempt_explain(attempt, buf_str(&text));
    buf_done(&text);
}

static const json_t *find(const json_t *report, const char *id)
{
    return doc_find(report, "id", id);
}

static void conclude(const struct request *request, const json_t *report)
{
    const struct inspect *inspect = request->inspect;
    for (size_t i = 0; i < *inspect->count; i++) {
        struct attempt *attempt = inspect->attempts[i];
        const json_t *own = find(report, attempt_id(attempt));
        if (!attempt_fits(attempt, request->id)) {
            continue;
        }
        if (!attempt_is_explained(attempt) &&
            json_array_size(json_object_get(own, "processes")) > 0) {
            write_log(attempt, report, own);
        }
        if (request->signal > 0) {
            attempt_signal(attempt, request->signal);
        }
    }
}

static void on_explained(void *data, const json_t *report)
{
    conclude(data, report);
    free_request(data);
}

void inspect_explain(const struct inspect *inspect, const json_t *message)
{
    const struct stacks_options options = {.limit_ms = SIGNAL_MS_MAX};
    int64_t number = doc_int(message, "signal", 0);
    struct request *request = calloc(1, sizeof *request);
    if (!request) {
        return;
    }
    *request = (struct request){.inspect = inspect,
                                .signal = number > 0 && number < NSIG ? (int)number : 0,
                                .id = strdup(doc_text(message, "id", ""))};
    if (!request->id || take(request, request->id, &options, on_explained) < 0) {
        free_request(request);
    }
}
