/* See check.h. */
#include "job/check/check.h"

#include "base/doc.h"
#include "base/text.h"
#include "job/check/context.h"
#include "job/check/kinds.h"
#include "job/paste.h"
#include "job/text.h"

#include <stdio.h>
#include <string.h>

/* The kinds that a file may contain, and the check of each beyond the check of its fields. */
static const struct kind {
    const char *kind;
    const char *api_version;
    enum schema_type type;
    enum schema_form name_form;
    void (*check)(struct check *c, const json_t *object);
} kinds[] = {
    {"PyTorchJob", "kubeflow.org/v1", SCHEMA_job, SCHEMA_LABEL_1035, check_job_spec},
    {"ConfigMap", "v1", SCHEMA_config_map, SCHEMA_SUBDOMAIN, check_config_map},
    {"Secret", "v1", SCHEMA_secret, SCHEMA_SUBDOMAIN, check_secret},
    {"PersistentVolumeClaim", "v1", SCHEMA_claim, SCHEMA_SUBDOMAIN, check_claim},
    {"Namespace", "v1", SCHEMA_namespace, SCHEMA_LABEL, NULL},
};

enum {
    KIND_COUNT = sizeof kinds / sizeof kinds[0],
    NAME_BYTES_MAX = 256,
    SUBDOMAIN_BYTES_MAX = 253,
    GENERATED_BYTES = 8,
    SUFFIX_BYTES = 32,
    KIND_TEXT_BYTES = 512
};

enum { ANNOTATIONS_BYTES_MAX = 256 << 10 };

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kinds[i].kind, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Returns how long a name of this object may be, and what is appended to it ("" except for
 * jobs). */
static size_t name_max(const json_t *object, const struct kind *kind, char *ret_suffix,
                       size_t bytes)
{
    *ret_suffix = '\0';
    return kind && kind->type == SCHEMA_job ? check_job_name_max(object, ret_suffix, bytes)
                                            : SUBDOMAIN_BYTES_MAX;
}

static void say_too_long(struct check *c, const char *field, const char *hint, const char *suffix)
{
    check_say(c, JOB_ERROR, field, hint,
              "too long: with \"%s\" appended, pod names may not exceed 63 characters", suffix);
}

/* `text` is metadata.name. */
static void check_name_text(struct check *c, const char *text, enum schema_form form, size_t max,
                            const char *suffix)
{
    const char *fault = job_text_fault(form, text);
    bool too_long = *suffix && strlen(text) > max;
    char mended[NAME_BYTES_MAX];
    char hint[NAME_BYTES_MAX + 32];
    if (!fault && !too_long) {
        return;
    }
    job_text_mend(form, text, max, mended, sizeof mended);
    snprintf(hint, sizeof hint, "did you mean \"%s\"?", mended);
    const char *template = paste_template_hint(text);
    const char *says = template ? template : *mended ? hint : NULL;
    if (too_long && !template) {
        say_too_long(c, "name", says, suffix);
    } else {
        check_say(c, JOB_ERROR, "name", says, "\"%.80s\" %s", text, fault);
    }
}

/* Checks generateName. The API appends five characters to it. */
static void check_generate_name(struct check *c, const char *text, enum schema_form form,
                                size_t max, const char *suffix)
{
    char name[NAME_BYTES_MAX + GENERATED_BYTES];
    snprintf(name, sizeof name, "%.*sxxxxx", NAME_BYTES_MAX - 1, text);
    const char *fault = job_text_fault(form, name);
    if (*suffix && strlen(name) > max) {
        char more[2 * GENERATED_BYTES + 64];
        snprintf(more, sizeof more, "xxxxx%s", suffix);
        say_too_long(c, "generateName", NULL, more);
    } else if (fault) {
        check_say(c, JOB_ERROR, "generateName", NULL, "\"%.80s\" %s", text, fault);
    }
}

static void check_name(struct check *c, const json_t *object, const struct kind *kind,
                       enum schema_form form)
{
    const char *name = doc_text(object, "metadata.name", NULL);
    const char *prefix = doc_text(object, "metadata.generateName", NULL);
    char suffix[SUFFIX_BYTES];
    size_t max = name_max(object, kind, suffix, sizeof suffix);
    if (!doc_at(object, "metadata.name") && !prefix) {
        check_required(c, "name", NULL, "is missing");
    } else if (name) {
        check_name_text(c, name, form, max, suffix);
        if (!*name) {
            check_reason(c, "FieldValueRequired");
        }
    } else if (prefix && !doc_at(object, "metadata.name")) {
        check_generate_name(c, prefix, form, max, suffix);
    }
}

/* Label values must have a form, because objects are selected by them; annotations need no form. */
static void check_labels(struct check *c, const json_t *labels)
{
    const char *key;
    json_t *value;
    size_t mark = check_enter(c, "labels");
    json_object_foreach ((json_t *)labels, key, value) {
        const char *text = json_string_value(value);
        const char *fault = text ? job_text_fault(SCHEMA_LABEL_VALUE, text) : NULL;
        const char *key_fault = job_text_fault(SCHEMA_QUALIFIED, key);
        if (key_fault) {
            check_say(c, JOB_ERROR, key, NULL, "a label's name %s", key_fault);
        }
        if (fault) {
            check_say(c, JOB_ERROR, key, NULL, "\"%.70s\" %s", text, fault);
        }
    }
    check_leave(c, mark);
}

static void check_annotations(struct check *c, const json_t *annotations)
{
    const char *key;
    json_t *value;
    size_t total = 0;
    size_t mark = check_enter(c, "annotations");
    json_object_foreach ((json_t *)annotations, key, value) {
        const char *fault = job_text_fault(SCHEMA_QUALIFIED, key);
        total += strlen(key) + json_string_length(value);
        if (fault) {
            check_say(c, JOB_ERROR, key, NULL, "an annotation's name %s", fault);
        }
    }
    if (total > ANNOTATIONS_BYTES_MAX) {
        check_say(c, JOB_ERROR, NULL, NULL,
                  "too long: all annotations together may not exceed %d bytes",
                  ANNOTATIONS_BYTES_MAX);
        check_reason(c, "FieldValueTooLong");
    }
    check_leave(c, mark);
}

void check_maps(struct check *c, const json_t *metadata)
{
    check_labels(c, doc_at(metadata, "labels"));
    check_annotations(c, doc_at(metadata, "annotations"));
}

static void check_owners(struct check *c, const json_t *owners)
{
    static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
    int controllers = 0;
    size_t index;
    json_t *owner;
    size_t top = check_enter(c, "ownerReferences");
    if (owners && !json_is_array(owners)) {
        check_say(c, JOB_ERROR, NULL, NULL, "must be a list");
    }
    json_array_foreach (owners, index, owner) {
        size_t mark = check_enter_index(c, index);
        controllers += doc_bool(owner, "controller", false);
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
            if (!*doc_text(owner, needed[i], "")) {
                check_say(c, JOB_ERROR, needed[i], NULL, "is missing");
            }
        }
        const char *uid = doc_text(owner, "uid", ""); /* names the folder of a job's pods */
        const char *fault = *uid ? job_text_fault(SCHEMA_LABEL, uid) : NULL;
        if (fault) {
            check_say(c, JOB_ERROR, "uid", NULL, "\"%.80s\" %s", uid, fault);
        }
        check_leave(c, mark);
    }
    if (controllers > 1) {
        check_say(c, JOB_ERROR, NULL, NULL, "only one of them may be the controller");
    }
    check_leave(c, top);
}

/* A finalizer must have a domain, or be one of Kubernetes' own; a custom resource may have any. */
static void check_finalizers(struct check *c, const json_t *finalizers, bool custom)
{
    static const char *const own[] = {"kubernetes", "orphan", "foregroundDeletion"};
    size_t index;
    json_t *finalizer;
    size_t top = check_enter(c, "finalizers");
    json_array_foreach (finalizers, index, finalizer) {
        const char *name = json_is_string(finalizer) ? json_string_value(finalizer) : "";
        const char *fault = job_text_fault(SCHEMA_QUALIFIED, name);
        size_t mark = check_enter_index(c, index);
        if (fault) {
            check_say(c, JOB_ERROR, NULL, NULL, "\"%.80s\" %s", name, fault);
        } else if (!custom && !strchr(name, '/') &&
                   !text_is_any_of(name, own, sizeof own / sizeof own[0])) {
            check_say(c, JOB_ERROR, NULL, NULL,
                      "\"%.80s\" must have a domain, as in example.com/name", name);
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}

/* `kind` is NULL for a kind that only the API knows. */
static void check_metadata(struct check *c, const json_t *object, const struct kind *kind)
{
    const json_t *metadata = doc_at(object, "metadata");
    if (!json_is_object(metadata)) {
        return; /* already reported */
    }
    size_t mark = check_enter(c, "metadata");
    check_name(c, object, kind, kind ? kind->name_form : SCHEMA_SUBDOMAIN);
    check_maps(c, metadata);
    check_owners(c, doc_at(metadata, "ownerReferences"));
    check_finalizers(c, doc_at(metadata, "finalizers"), kind && kind->type == SCHEMA_job);
    check_leave(c, mark);
}

static void say_unknown_kind(struct check *c, const json_t *object, const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcasecmp(kinds[i].kind, name) == 0) {
            char hint[64];
            snprintf(hint, sizeof hint, "did you mean %s?", kinds[i].kind);
            check_say(c, JOB_ERROR, "kind", hint, "\"%.60s\" is not a kind that muster reads",
                      name);
            return;
        }
    }
    char message[KIND_TEXT_BYTES], hint[KIND_TEXT_BYTES];
    kinds_explain(object, message, sizeof message, hint, sizeof hint);
    check_say(c, JOB_ERROR, "kind", hint, "%s", message);
}

void check_object(struct check *c, const json_t *object)
{
    if (!json_is_object(object)) {
        check_say(c, JOB_ERROR, NULL,
                  "an object begins with apiVersion: and kind:", "this document is not a mapping");
        return;
    }
    const char *name = doc_text(object, "kind", "");
    const struct kind *kind = find_kind(name);
    if (!kind) {
        if (*name || !c->partial) {
            say_unknown_kind(c, object, name);
        }
        return;
    }
    const char *version = doc_text(object, "apiVersion", kind->api_version);
    if (strcmp(version, kind->api_version) != 0) {
        char hint[64];
        snprintf(hint, sizeof hint, "did you mean %s?", kind->api_version);
        check_say(c, JOB_ERROR, "apiVersion", hint,
                  "\"%.60s\" is not an apiVersion of %s that muster reads", version, name);
    }
    check_walk(c, object, kind->type);
    if (c->partial) {
        return;
    }
    check_metadata(c, object, kind);
    if (kind->check) {
        kind->check(c, object);
    }
}

void job_check(const json_t *object, const struct yaml_document *source,
               struct job_problems *problems)
{
    struct check c;
    check_init(&c, source, problems);
    check_object(&c, object);
    check_done(&c);
}

void job_check_metadata(const json_t *object, struct job_problems *problems)
{
    struct check c;
    check_init(&c, NULL, problems);
    const json_t *metadata = json_object_get(object, "metadata");
    if (!json_is_object(metadata)) {
        check_required(&c, "metadata", NULL, "is missing");
    }
    size_t mark = check_enter(&c, "metadata");
    check_walk(&c, metadata, SCHEMA_metadata);
    check_leave(&c, mark);
    check_metadata(&c, object, NULL);
    check_done(&c);
}

static bool is_no_error(const struct job_problem *problem, void *arg)
{
    (void)arg;
    return problem->severity != JOB_ERROR;
}

/* Reports only errors of a pod. The schema's warnings and notes are about templates, whose
 * restartPolicy is overwritten and whose fields a user wrote; in a pod, kubectl run fills in some
 * fields. */
void job_check_pod(const json_t *object, struct job_problems *problems)
{
    struct check c;
    job_check_metadata(object, problems);
    size_t from = problems->count;
    check_init(&c, NULL, problems);
    check_pod(&c, object);
    check_done(&c);
    job_problems_drop(problems, from, is_no_error, NULL);
}

/* Setting or removing the queue is allowed, as in upstream's transition rule. */
void job_check_update(const json_t *before, const json_t *after, struct job_problems *problems)
{
    static const struct {
        const char *path;
        bool once_set; /* may be set or removed, but not changed */
    } immutable[] = {
        {"spec.runPolicy.managedBy", false},
        {"spec.runPolicy.schedulingPolicy.queue", true},
    };
    for (size_t i = 0; i < sizeof immutable / sizeof immutable[0]; i++) {
        const json_t *old = doc_at(before, immutable[i].path);
        const json_t *new = doc_at(after, immutable[i].path);
        bool same = old && new ? json_equal(old, new) : old == new;
        if (!same && !(immutable[i].once_set && (!old || !new))) {
            job_problem_add(problems, JOB_ERROR, immutable[i].path,
                            "delete the job and make it anew", "field is immutable");
        }
    }
}
