/* See trouble.h. */
#include "cli/follow/trouble.h"

#include "base/text.h"
#include "base/time/clock.h"
#include "cli/follow/hints.h"
#include "cli/submit/restarts.h"
#include "job/annotations.h"

#include <string.h>

/* The first start is tried again after 10 s: then the pod finds what was made meanwhile. */
enum { HOPELESS_MS = 12000, FIRST_BYTES_MAX = 4096 };

void trouble_init(struct trouble *trouble)
{
    *trouble = (struct trouble){0};
    storm_init(&trouble->storm);
}

void trouble_done(struct trouble *trouble)
{
    storm_done(&trouble->storm);
}

static bool on_private_network(const json_t *job)
{
    const json_t *notes = doc_at(job, "metadata.annotations");
    const char *network = json_string_value(json_object_get(notes, JOB_ANNOTATION_NETWORK));
    return network && strcmp(network, "private") == 0;
}

/* Whether the job is elastic: its workers may be lost at any time, and a worker that was replaced
 * did not end the job. */
static bool is_elastic(const json_t *job)
{
    return json_object_get(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_COORDINATOR) != NULL;
}

static struct hint_job hint_job_of(const json_t *job)
{
    return (struct hint_job){on_private_network(job), is_elastic(job)};
}

static const char *first_line(const struct trouble *t, struct trouble_view view)
{
    return pod_logs_first_failure(view.logs, t->storm.pod, t->storm.container);
}

static void tell_storm(const struct trouble *t, struct trouble_view view, struct buf *out)
{
    const char *line = first_line(t, view);
    const char *hint = line ? hint_of_line(line, hint_job_of(view.job)) : NULL;
    buf_format(out, "warning: job %s restarts again and again; the first failure: ",
               doc_text(view.job, "metadata.name", ""));
    storm_print(&t->storm, line, out);
    buf_text(out, "\n");
    if (hint) {
        buf_format(out, "  hint: %s\n", hint);
    }
    if (storm_is_unbounded(view.job)) {
        buf_format(out,
                   "  nothing bounds the restarts of job %s: spec.runPolicy.backoffLimit in its "
                   "file does (3: three restarts); Ctrl-C ends it\n",
                   doc_text(view.job, "metadata.name", ""));
    }
}

static void take_waiting(struct trouble *t, const json_t *pod)
{
    struct pod_waiting now;
    pod_waiting_of(pod, &now);
    if (now.hopeless && !*t->hopeless) {
        text_copy(t->hopeless, sizeof t->hopeless, now.why);
        t->hopeless_ms = clock_ms();
    } else if (!now.hopeless && doc_at(pod, "status.containerStatuses.0.state.running")) {
        t->hopeless[0] = '\0';
    }
}

void trouble_pod(struct trouble *trouble, struct trouble_view view, const json_t *before,
                 const json_t *pod, struct buf *out)
{
    take_waiting(trouble, pod);
    storm_pod(&trouble->storm, view.job, before, pod);
    if (storm_is_due(&trouble->storm, pod) && trouble->storm.first[0]) {
        tell_storm(trouble, view, out);
    }
}

bool trouble_is_hopeless(struct trouble *trouble, int64_t now_ms)
{
    bool due =
        *trouble->hopeless && trouble->hopeless_ms && now_ms - trouble->hopeless_ms >= HOPELESS_MS;
    trouble->hopeless_ms = due ? 0 : trouble->hopeless_ms;
    return due;
}

void trouble_add_first(const struct trouble *trouble, struct trouble_view view, const json_t *last,
                       bool stopped, struct buf *out)
{
    bool restarted =
        last && (storm_restarts(&trouble->storm, last) > 0 || restarts_of(view.job) > 0);
    if (!trouble->storm.first[0] || !(stopped || restarted) || *trouble->hopeless ||
        is_elastic(view.job)) {
        return;
    }
    struct buf first;
    buf_init(&first, FIRST_BYTES_MAX);
    storm_print(&trouble->storm, first_line(trouble, view), &first);
    if (!strstr(buf_str(out), buf_str(&first))) {
        buf_format(out, "; first failure%s: %s", stopped ? "" : ", before its restarts",
                   buf_str(&first));
    }
    buf_done(&first);
}

const char *trouble_hint(struct trouble_view view, const char *pod, const char *container)
{
    const char *hint = NULL;
    struct hint_job job = hint_job_of(view.job);
    for (size_t i = 0; !hint && pod && i < LOG_VIEW_LAST_LINES; i++) {
        const char *line = pod_logs_last_line(view.logs, pod, container, i);
        hint = line ? hint_of_line(line, job) : NULL;
    }
    return hint;
}
