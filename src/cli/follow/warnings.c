/* See warnings.h. */
#include "cli/follow/warnings.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { FIELDS_BYTES = 128, UNSTARTED_MS = 2000, DISK_MS = 2000, DISK_BYTES_MIN = 64 << 10 };

static bool is_about(const struct followed_job *j, const json_t *event)
{
    const json_t *pod = json_object_get(j->pods, doc_text(event, "involvedObject.name", ""));
    return pod && strcmp(doc_text(event, "involvedObject.uid", ""),
                         doc_text(pod, "metadata.uid", "")) == 0;
}

/* Prints the events of this reason about pods of the job, each once. */
static void tell_events(struct followed_job *j, const char *reason, const char *words)
{
    muster_auto(doc) json_t *answer = NULL;
    const struct kube_ref events = {kube_resource_find("events"), j->namespace, NULL, NULL};
    char fields[FIELDS_BYTES];
    snprintf(fields, sizeof fields, "reason=%s", reason);
    if (kube_list(j->follow->cli->kube, &events, &(struct kube_query){.fields = fields}, &answer,
                  NULL) < 0) {
        return;
    }
    size_t i;
    json_t *event;
    json_array_foreach (doc_at(answer, "items"), i, event) {
        const char *text = doc_text(event, "message", "");
        if (is_about(j, event) && !json_object_get(j->told, text)) {
            screen_note(j->follow->screen, "warning: %s: %s", words, text);
            json_object_set_new(j->told, text, json_true());
        }
    }
}

/* Reports limits that cannot be kept, PID namespaces that are not available, and a network in which
 * ranks would wait for each other in silence. The agent writes such an event before the status that
 * says that the pod runs. */
static void tell_isolation(struct followed_job *j)
{
    j->untold = false;
    j->asked_ms = clock_ms();
    tell_events(j, "IsolationDegraded", "isolation is degraded");
    tell_events(j, "LoopbackDown", "ranks cannot reach each other");
}

void warnings_isolation(struct follow *f, int64_t pause_ms)
{
    for (size_t i = 0; i < f->job_count; i++) {
        struct followed_job *j = &f->jobs[i];
        if (j->untold && clock_ms() - j->asked_ms >= pause_ms) {
            tell_isolation(j);
        }
    }
}

void warnings_unstarted(struct followed_job *j)
{
    if (cli_on_cluster(j->follow->cli) || j->over || clock_ms() - j->unstarted_ms < UNSTARTED_MS) {
        return;
    }
    j->unstarted_ms = clock_ms();
    const char *name;
    json_t *pod;
    json_object_foreach (j->pods, name, pod) {
        if (!doc_at(pod, "status.containerStatuses")) {
            tell_events(j, "FailedCreatePodSandBox", "a rank cannot be started; it is tried again");
            return;
        }
    }
}

void warnings_disk(struct follow *f)
{
    struct statvfs disk;
    if (f->disk_told || cli_on_cluster(f->cli) || clock_ms() - f->disk_ms < DISK_MS) {
        return;
    }
    f->disk_ms = clock_ms();
    const char *home = kube_home(f->cli->kube);
    if (statvfs(home, &disk) == 0 &&
        (uint64_t)disk.f_bavail * disk.f_frsize < (uint64_t)DISK_BYTES_MIN) {
        f->disk_told = true;
        screen_note(f->screen,
                    "warning: the disk of %s is full: logs have gaps, and no end of a rank can be "
                    "written down until there is space again",
                    home);
    }
}
