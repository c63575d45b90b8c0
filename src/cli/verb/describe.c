/* muster describe. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "base/time/clock.h"
#include "cli/pod/place.h"
#include "cli/pod/target.h"
#include "cli/show/describe.h"
#include "cli/show/event_list.h"
#include "job/annotations.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 << 20 };

/* Adds the events about stalled ranks to the events of their job: those events are about pods. */
static void add_stalls(struct cli *cli, const json_t *job, json_t *events)
{
    char labels[512];
    snprintf(labels, sizeof labels, "%s=%s", JOB_LABEL_EVENT, doc_text(job, "metadata.uid", ""));
    struct kube_ref ref = {kube_resource_find("events"), cli_namespace(cli), NULL, NULL};
    struct kube_query query = {.labels = labels, .fields = "reason=RankStalled"};
    muster_auto(doc) json_t *list = NULL;
    kube_list(cli->kube, &ref, &query, &list, NULL);
    json_array_extend(events, doc_at(list, "items"));
}

/* The events of one object, in order of time; an empty array if they cannot be read. They are
 * chosen by uid, because an earlier object may have had the name. */
static json_t *events_of(struct cli *cli, const json_t *object)
{
    char fields[512];
    snprintf(fields, sizeof fields,
             "involvedObject.name=%s,involvedObject.kind=%s,involvedObject.uid=%s",
             doc_text(object, "metadata.name", ""), doc_text(object, "kind", ""),
             doc_text(object, "metadata.uid", ""));
    struct kube_ref ref = {kube_resource_find("events"), cli_namespace(cli), NULL, NULL};
    struct kube_query query = {.fields = fields};
    muster_auto(doc) json_t *list = NULL;
    kube_list(cli->kube, &ref, &query, &list, NULL);
    muster_auto(doc) json_t *events = json_array();
    json_array_extend(events, doc_at(list, "items"));
    if (strcmp(doc_text(object, "kind", ""), "PyTorchJob") == 0) {
        add_stalls(cli, object, events);
    }
    return event_list_sort(events);
}

/* Adds what the controller knows about the pod's logs to the statuses of its containers. */
static void add_rotated(struct cli *cli, json_t *pod)
{
    size_t i;
    json_t *status;
    json_array_foreach (doc_at(pod, "status.containerStatuses"), i, status) {
        muster_auto(doc) json_t *place = NULL;
        if (place_get(cli, pod, doc_text(status, "name", ""), &place) == 0) {
            json_object_set_new(status, "logBytesRotated",
                                json_integer(doc_int(place, "logBytesRotated", 0)));
        }
    }
}

static int print_object(struct cli *cli, json_t *object)
{
    muster_auto(doc) json_t *events = events_of(cli, object);
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    if (strcmp(doc_text(object, "kind", ""), "Pod") == 0) {
        add_rotated(cli, object);
        describe_pod(object, events, clock_unix_ms(), &text);
    } else {
        describe_object(object, events, clock_unix_ms(), &text);
    }
    int r = cli_print(buf_str(&text), &cli->err);
    buf_done(&text);
    return r;
}

/* Prints all objects of a kind, or those whose labels fit. */
static int print_list(struct cli *cli, const struct kube_resource *resource)
{
    struct kube_ref ref = {resource, cli_namespace(cli), NULL, NULL};
    struct kube_query query = {.labels = args_value(&cli->args, "selector")};
    muster_auto(doc) json_t *list = NULL;
    int r = kube_list(cli->kube, &ref, &query, &list, &cli->err);
    if (r == 0 && json_array_size(doc_at(list, "items")) == 0) {
        cli_say_none(cli);
    }
    size_t i;
    json_t *item;
    json_array_foreach (doc_at(list, "items"), i, item) {
        json_object_set_new(item, "kind", json_string(resource->kind));
        json_object_set_new(item, "apiVersion", json_string(resource->api_version));
        if (i > 0) {
            printf("\n\n");
        }
        r = r < 0 ? r : print_object(cli, item);
    }
    return r;
}

int cli_describe(struct cli *cli)
{
    struct targets targets;
    int r = targets_read(cli, true, &targets);
    r = r < 0 ? r : targets_check_selector(cli, &targets);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    for (size_t i = 0; r == 0 && i < targets.count; i++) {
        struct target *target = &targets.list[i];
        if (i > 0) {
            printf("\n\n");
        }
        if (!target->name) {
            r = print_list(cli, target->resource);
            continue;
        }
        muster_auto(doc) json_t *object = NULL;
        r = target_find(cli, cli_namespace(cli), true, target, &object);
        r = r < 0 ? r : print_object(cli, object);
    }
    return r;
}
