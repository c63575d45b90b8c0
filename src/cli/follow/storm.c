/* See storm.h. */
#include "cli/follow/storm.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/text.h"
#include "control/control.h"
#include "job/annotations.h"

#include <assert.h>
#include <string.h>

enum { LINE_BYTES_MAX = 300 };

void storm_init(struct storm *storm)
{
    *storm = (struct storm){.remade = json_object(), .first_unix_ms = INT64_MAX};
}

void storm_done(struct storm *storm)
{
    json_decref(storm->remade);
    storm->remade = NULL;
}

static struct control_failure failure_of(const json_t *job, const json_t *pod)
{
    muster_auto(doc) json_t *alone = json_array();
    json_array_append(alone, (json_t *)(uintptr_t)pod);
    return control_first_failure(job, alone);
}

static void keep_first(struct storm *storm, const struct control_failure *failure)
{
    if (storm->first[0] && failure->at_unix_ms >= storm->first_unix_ms) {
        return;
    }
    struct buf text;
    buf_init(&text, STORM_TEXT_BYTES * 8);
    control_failure_text(failure, &text);
    text_copy(storm->first, sizeof storm->first, buf_str(&text));
    text_copy(storm->pod, sizeof storm->pod, failure->pod);
    text_copy(storm->container, sizeof storm->container, failure->container);
    storm->first_unix_ms = failure->at_unix_ms;
    buf_done(&text);
}

static int64_t remade(const struct storm *storm, const json_t *pod)
{
    const char *name = doc_text(pod, "metadata.name", "");
    return json_integer_value(json_object_get(storm->remade, name));
}

static bool is_another(const json_t *before, const json_t *pod)
{
    return strcmp(doc_text(before, "metadata.uid", ""), doc_text(pod, "metadata.uid", "")) != 0;
}

/* Whether the container never began: a kubelet that ends a pod reports such a container as killed.
 */
static bool never_began(const json_t *pod, const struct control_failure *failure)
{
    return doc_at(pod, "metadata.deletionTimestamp") &&
           strcmp(failure->reason, "ContainerStatusUnknown") == 0;
}

void storm_pod(struct storm *storm, const json_t *job, const json_t *before, const json_t *pod)
{
    assert(storm->remade);
    struct control_failure failure = failure_of(job, pod);
    if (failure.found && !never_began(pod, &failure)) {
        keep_first(storm, &failure);
    }
    if (before && is_another(before, pod) && failure_of(job, before).found) {
        json_object_set_new(storm->remade, doc_text(pod, "metadata.name", ""),
                            json_integer(remade(storm, pod) + 1));
    }
}

int64_t storm_restarts(const struct storm *storm, const json_t *pod)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    int64_t most = 0;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        size_t i;
        json_t *status;
        json_array_foreach (doc_at(pod, lists[l]), i, status) {
            int64_t count = doc_int(status, "restartCount", 0);
            most = count > most ? count : most;
        }
    }
    return most + remade(storm, pod);
}

bool storm_is_due(struct storm *storm, const json_t *pod)
{
    bool due = !storm->told && storm_restarts(storm, pod) >= STORM_RESTARTS;
    storm->told = storm->told || due;
    return due;
}

bool storm_is_unbounded(const json_t *job)
{
    return !doc_at(job, "spec.runPolicy.backoffLimit") &&
           !doc_at(job, "spec.runPolicy.activeDeadlineSeconds") &&
           !json_object_get(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_MAX_RESTARTS);
}

void storm_print(const struct storm *storm, const char *last_line, struct buf *out)
{
    buf_text(out, storm->first);
    if (storm->first[0] && last_line && *last_line) {
        buf_text(out, ": \"");
        buf_add(out, last_line, text_cut(last_line, LINE_BYTES_MAX));
        buf_text(out, "\"");
    }
}
