/* muster create and muster apply. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "cli/show/output.h"
#include "cli/submit/effect.h"
#include "cli/submit/environment.h"
#include "cli/submit/images.h"
#include "cli/submit/last_applied.h"
#include "cli/submit/preflight.h"
#include "cli/submit/refusal.h"
#include "control/verdict.h"

#include <stdio.h>
#include <string.h>

struct creator {
    struct cli *cli;
    struct output output;
    bool apply;
    bool dry_run;
};

static int print_result(struct creator *c, const json_t *object, const char *verb)
{
    char name[600];
    cli_object_name(object, name, sizeof name);
    if (!c->output.word) {
        printf("%s %s%s\n", name, verb, c->dry_run ? " (dry run)" : "");
        return cli_print("", &c->cli->err);
    }
    if (output_is(&c->output, "name")) {
        printf("%s\n", name);
        return cli_print("", &c->cli->err);
    }
    return output_print(c->cli, &c->output, object);
}

/* The object as it was applied last, by kubectl or by muster; NULL if it never was. */
static json_t *applied_last(const json_t *current)
{
    const char *text = json_string_value(
        json_object_get(doc_at(current, "metadata.annotations"), LAST_APPLIED_ANNOTATION));
    json_t *last = NULL;
    return text && doc_parse(text, strlen(text), &last, NULL) == 0 ? last : NULL;
}

/* Adds kubectl's annotation. Our annotations about the submitter are not part of the file, so they
 * are added after this. */
static int note_applied(const struct creator *c, json_t *object)
{
    struct kube_ref ref = objects_ref(c->cli, object);
    int r = ref.namespace && strcmp(ref.resource->kind, "Namespace") != 0
                ? doc_set_text(object, "metadata.namespace", ref.namespace)
                : 0;
    muster_auto(free) char *text = r < 0 ? NULL : last_applied_print(object);
    json_t *notes = doc_at(object, "metadata.annotations");
    if (text && !json_is_object(notes)) {
        notes = json_object();
        r = doc_set(object, "metadata.annotations", notes);
    }
    return text && r == 0 &&
                   json_object_set_new(notes, LAST_APPLIED_ANNOTATION, json_string(text)) == 0
               ? 0
               : err_no_memory(&c->cli->err);
}

static int make(const struct creator *c, json_t *object, json_t **ret)
{
    int r = objects_annotate(c->cli, object, NULL);
    return r < 0 ? r : objects_create(c->cli, object, ret);
}

/* Annotates a job that changes, and sends its environment, which pods have that it makes from now
 * on. A job that is over makes none. */
static int note_change(const struct creator *c, const json_t *before, json_t *object)
{
    int r = objects_annotate(c->cli, object, before);
    bool over = verdict_of(before, NULL, false).end != VERDICT_RUNNING;
    return r < 0 || over ? r : environment_send(c->cli, object);
}

/* The object without what a client does not write: the job's controller may write the status at any
 * time. */
static json_t *without_status(const json_t *object)
{
    json_t *copy = json_deep_copy(object);
    json_t *metadata = json_object_get(copy, "metadata");
    json_object_del(copy, "status");
    json_object_del(metadata, "resourceVersion");
    json_object_del(metadata, "managedFields");
    return copy;
}

/* Whether the object has not changed: the API then keeps its resourceVersion. */
static bool is_same(const json_t *before, const json_t *after)
{
    if (strcmp(doc_text(before, "metadata.resourceVersion", ""),
               doc_text(after, "metadata.resourceVersion", "?")) == 0) {
        return true;
    }
    muster_auto(doc) json_t *was = without_status(before);
    muster_auto(doc) json_t *is = without_status(after);
    return was && is && json_equal(was, is);
}

static int change(const struct creator *c, json_t *object, json_t **ret, const char **verb)
{
    struct kube_ref ref = objects_ref(c->cli, object);
    muster_auto(doc) json_t *before = NULL;
    int r = objects_check_named(c->cli, object);
    r = r < 0 ? r : kube_get(c->cli->kube, &ref, &before, &c->cli->err);
    if (r == MUSTER_ENOENT) {
        *verb = "created";
        return make(c, object, ret);
    }
    r = r < 0 ? r : note_change(c, before, object);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *last = applied_last(before);
    muster_auto(doc) json_t *patch = last_applied_patch(last, before, object);
    r = patch ? kube_patch(c->cli->kube, &ref, patch, ret, &c->cli->err)
              : err_no_memory(&c->cli->err);
    r = refusal_explain(c->cli, object, r);
    if (r == 0) {
        *verb = is_same(before, *ret) ? "unchanged" : "configured";
    }
    return r;
}

static int submit(const struct creator *c, json_t *object, json_t **ret, const char **verb)
{
    int r = c->apply ? note_applied(c, object) : 0;
    if (r < 0) {
        return r;
    }
    *verb = "created";
    return c->apply ? change(c, object, ret, verb) : make(c, object, ret);
}

static int rehearse(void *context, json_t *object)
{
    muster_auto(doc) json_t *result = NULL;
    const char *verb = NULL;
    return submit(context, object, &result, &verb);
}

static int put(struct creator *c, json_t *object)
{
    muster_auto(doc) json_t *result = NULL;
    const char *verb = "created";
    if (c->dry_run) {
        int failed = objects_annotate_options(c->cli, object);
        return failed < 0 ? failed : print_result(c, object, verb);
    }
    int r = submit(c, object, &result, &verb);
    return r < 0 ? r : print_result(c, result, verb);
}

static int put_all(struct cli *cli, bool apply)
{
    struct creator c = {.cli = cli, .apply = apply, .dry_run = args_flag(&cli->args, "dry-run")};
    struct objects objects = {0};
    int r = output_read(cli, &c.output);
    r = r < 0 ? r : objects_read(cli, OBJECTS_ALL, &objects);
    r = r < 0 ? r : environment_check(cli);
    r = r < 0 ? r : images_check(cli, &objects);
    r = r < 0 ? r : effect_check(cli, &objects);
    if (r == 0 && !c.dry_run) {
        r = cli_connect(cli, KUBE_START);
        r = r < 0 ? r : preflight_objects(cli, &objects, rehearse, &c);
    }
    for (size_t i = 0; i < objects.count && r == 0; i++) {
        r = put(&c, objects.list[i]);
    }
    if (r == 0 && c.dry_run) {
        r = environment_say_lacking(cli);
    }
    objects_done(&objects);
    output_done(&c.output);
    return r;
}

int cli_create(struct cli *cli)
{
    return put_all(cli, false);
}

int cli_apply(struct cli *cli)
{
    return put_all(cli, true);
}
