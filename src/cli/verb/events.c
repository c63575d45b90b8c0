/* muster events: lists events, oldest first; with -w also those that come. */
#include "cli/command/verbs.h"

#include "base/time/age.h"
#include "base/time/clock.h"
#include "cli/pod/pod_name.h"
#include "cli/pod/target.h"
#include "cli/show/event_list.h"
#include "cli/show/output.h"
#include "job/annotations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
    struct cli *cli;
    const char *name; /* only events of objects with this name, or of the job with this name */
    char *uid;        /* uid of the job or pod with this name now; earlier ones do not count */
    bool missing;     /* no object has the name now */
    struct output output;
    json_t *first; /* with --watch: what the first list holds, until it is printed */
    int failed;    /* with --watch: the code of a failed print */
};

/* Whether an event is about the name: events of a job are its own and those of its pods, which are
 * named after it. */
static bool has_name(const struct printer *p, const json_t *event)
{
    const char *object = doc_text(event, "involvedObject.name", "");
    muster_auto(free) char *job = pod_name_job(object);
    return strcmp(object, p->name) == 0 || (job && strcmp(job, p->name) == 0);
}

/* Whether an event is about the uid: that of its object, or of the job in its label. Events that
 * other programs wrote have no label. */
static bool has_uid(const struct printer *p, const json_t *event)
{
    const json_t *labels = doc_at(event, "metadata.labels");
    const char *job = json_string_value(json_object_get(labels, JOB_LABEL_EVENT));
    const char *object = doc_text(event, "involvedObject.uid", "");
    bool own = strcmp(doc_text(event, "involvedObject.name", ""), p->name) == 0;
    return strcmp(object, p->uid) == 0 || (job ? strcmp(job, p->uid) == 0 : !own || !*object);
}

static bool about(const struct printer *p, const json_t *event)
{
    return !p->name || (has_name(p, event) && (!p->uid || has_uid(p, event)));
}

static int print_line(struct printer *p, const json_t *event)
{
    char age[AGE_BYTES];
    long long count = (long long)doc_int(event, "count", 1);
    char times[32] = "";
    if (count > 1) {
        snprintf(times, sizeof times, " (x%lld)", count);
    }
    printf("%-8s %-8s %-24s %s/%s  %s%s\n", age_since(event_list_time(event), clock_unix_ms(), age),
           doc_text(event, "type", "Normal"), doc_text(event, "reason", ""),
           doc_text(event, "involvedObject.kind", ""), doc_text(event, "involvedObject.name", ""),
           doc_text(event, "message", ""), times);
    return cli_print("", &p->cli->err);
}

static int print_event(struct printer *p, const json_t *event)
{
    if (!about(p, event)) {
        return 0;
    }
    return p->output.word ? output_print(p->cli, &p->output, event) : print_line(p, event);
}

static void changed(void *context, enum kube_change change, const json_t *event)
{
    struct printer *p = context;
    if (p->first) {
        json_array_append(p->first, (json_t *)(uintptr_t)event);
    } else if (p->failed == 0 && change != KUBE_DELETED &&
               (p->failed = print_event(p, event)) < 0) {
        uv_stop(&p->cli->loop);
    }
}

static int print_all(struct printer *p, const json_t *items)
{
    muster_auto(doc) json_t *sorted = event_list_sort(items);
    muster_auto(doc) json_t *chosen = json_array();
    size_t i;
    json_t *event;
    json_array_foreach (sorted, i, event) {
        if (about(p, event)) {
            json_array_append(chosen, event);
        }
    }
    if (p->missing && json_array_size(chosen) == 0) {
        return MUSTER_ENOENT; /* the error is target_find's */
    }
    if (p->output.word) {
        muster_auto(doc) json_t *list =
            json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", chosen);
        return output_print(p->cli, &p->output, list);
    }
    if (json_array_size(chosen) == 0) {
        fprintf(stderr, "No events.\n");
    }
    int r = 0;
    json_array_foreach (chosen, i, event) {
        r = r < 0 ? r : print_line(p, event);
    }
    return r;
}

static int print_once(struct printer *p, const struct kube_ref *ref)
{
    muster_auto(doc) json_t *list = NULL;
    int r = kube_list(p->cli->kube, ref, NULL, &list, &p->cli->err);
    return r < 0 ? r : print_all(p, doc_at(list, "items"));
}

static int watch(struct printer *p, const struct kube_ref *ref)
{
    struct kube_watch *watch = NULL;
    struct kube_watch_events events = {changed, p};
    muster_auto(doc) json_t *first = json_array();
    p->first = first;
    int r = kube_watch_start(p->cli->kube, ref, NULL, &events, &watch, &p->cli->err);
    p->first = NULL;
    r = r < 0 ? r : print_all(p, first);
    free(p->uid); /* later events are about any object with this name */
    p->uid = NULL;
    if (r == 0) {
        uv_run(&p->cli->loop, UV_RUN_DEFAULT);
        r = p->failed;
    }
    kube_watch_stop(watch);
    return r;
}

/* Finds the object whose events are meant. If no object has the name now, all events of the name
 * count. */
static int find_object(struct printer *p, struct target *target)
{
    muster_auto(doc) json_t *object = NULL;
    if (!p->name || !cli_namespace(p->cli)) {
        return 0;
    }
    int r = target_find(p->cli, cli_namespace(p->cli), true, target, &object);
    const char *uid = doc_text(object, "metadata.uid", NULL);
    p->uid = uid ? strdup(uid) : NULL;
    p->missing = r == MUSTER_ENOENT && !args_flag(&p->cli->args, "watch");
    return r == MUSTER_ENOENT ? 0 : r;
}

int cli_events(struct cli *cli)
{
    struct printer p = {.cli = cli};
    struct target target = {0};
    int r = output_read(cli, &p.output);
    r = r < 0 ? r : cli_expect_operands(cli, 0, 1);
    if (r == 0 && cli->args.operand_count) {
        r = target_read(cli, cli->args.operands[0], &target);
        p.name = target.name;
    }
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    r = r < 0 ? r : find_object(&p, &target);
    if (r == 0) {
        struct kube_ref ref = {kube_resource_find("events"), cli_namespace(cli), NULL, NULL};
        r = args_flag(&cli->args, "watch") ? watch(&p, &ref) : print_once(&p, &ref);
    }
    free(p.uid);
    output_done(&p.output);
    return r;
}
