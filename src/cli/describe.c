/* muster describe. */
#include "cli/verbs.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cli/describe.h"
#include "cli/eventlist.h"
#include "cli/target.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 << 20 };

/* The events of one object, in order of time; an empty array when they cannot be had. */
static json_t *events_of(struct cli *cli, const json_t *object)
{
    char fields[512];
    snprintf(fields, sizeof fields, "involvedObject.name=%s,involvedObject.kind=%s",
             doc_text(object, "metadata.name", ""), doc_text(object, "kind", ""));
    struct kube_ref ref = {kube_resource_find("events"), cli_namespace(cli), NULL, NULL};
    struct kube_query query = {.fields = fields};
    muster_auto(doc) json_t *list = NULL;
    kube_list(cli->kube, &ref, &query, &list, NULL);
    return eventlist_sort(doc_at(list, "items"));
}

static int print_object(struct cli *cli, const json_t *object)
{
    muster_auto(doc) json_t *events = events_of(cli, object);
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    if (strcmp(doc_text(object, "kind", ""), "Pod") == 0) {
        describe_pod(object, events, clock_unix_ms(), &text);
    } else {
        describe_object(object, events, clock_unix_ms(), &text);
    }
    int r = cli_print(buf_str(&text), &cli->err);
    buf_done(&text);
    return r;
}

/* All of a kind, or those whose labels fit. */
static int print_list(struct cli *cli, const struct kube_resource *resource)
{
    struct kube_ref ref = {resource, cli_namespace(cli), NULL, NULL};
    struct kube_query query = {.labels = args_value(&cli->args, "selector")};
    muster_auto(doc) json_t *list = NULL;
    int r = kube_list(cli->kube, &ref, &query, &list, &cli->err);
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
    if (r == 0) {
        r = cli_connect(cli, KUBE_START);
    }
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
        if (r == 0) {
            r = print_object(cli, object);
        }
    }
    return r;
}
