/* See stall_notes.h. */
#include "cli/follow/stall_notes.h"

#include "job/annotations.h"

#include <stdio.h>

enum { SELECTOR_BYTES = 128 };

static void event_changed(void *context, enum kube_change change, const json_t *event)
{
    struct stall_notes *notes = context;
    if (change == KUBE_DELETED) {
        return;
    }
    screen_note(notes->screen, "warning: %s%s%s%s", doc_text(event, "message", ""),
                notes->hinted ? "" : " (muster stacks ", notes->hinted ? "" : notes->job,
                notes->hinted ? "" : " shows all)");
    notes->hinted = true;
}

int stall_notes_start(struct stall_notes *notes, struct cli *cli, struct screen *screen,
                      const json_t *job)
{
    char labels[SELECTOR_BYTES];
    if (cli_on_cluster(cli)) {
        *notes = (struct stall_notes){0}; /* on a cluster, nothing looks for ranks that stall */
        return 0;
    }
    const struct kube_ref events = {kube_resource_find("events"),
                                    doc_text(job, "metadata.namespace", "default"), NULL, NULL};
    snprintf(labels, sizeof labels, "%s=%s", JOB_LABEL_EVENT, doc_text(job, "metadata.uid", ""));
    const struct kube_query query = {.labels = labels, .fields = "reason=RankStalled"};
    *notes = (struct stall_notes){.screen = screen};
    snprintf(notes->job, sizeof notes->job, "%s", doc_text(job, "metadata.name", ""));
    return kube_watch_start(cli->kube, &events, &query,
                            &(struct kube_watch_events){event_changed, notes}, &notes->watch,
                            &cli->err);
}

void stall_notes_stop(struct stall_notes *notes)
{
    kube_watch_stop(notes->watch);
    notes->watch = NULL;
}
