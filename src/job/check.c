/* See check.h. */
#include "job/check.h"

#include "base/doc.h"
#include "job/context.h"
#include "job/text.h"

#include <stdio.h>
#include <string.h>

/* The kinds a file may hold, and what is checked beyond their fields. */
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

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0], NAME_BYTES_MAX = 256 };

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

static void check_name(struct check *c, const json_t *metadata, enum schema_form form)
{
    const json_t *name = doc_at(metadata, "name");
    if (!name && !doc_at(metadata, "generateName")) {
        check_say(c, JOB_ERROR, "name", NULL, "is missing");
    }
    const char *text = json_string_value(name);
    const char *fault = text ? job_text_fault(form, text) : NULL;
    if (fault) {
        char mended[NAME_BYTES_MAX];
        char hint[NAME_BYTES_MAX + 32];
        job_text_mend(form, text, mended, sizeof mended);
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", mended);
        check_say(c, JOB_ERROR, "name", *mended ? hint : NULL, "\"%.80s\" %s", text, fault);
    }
}

/* Label values are selected by, which is why they have a form; annotations have none. */
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
        check_say(c, JOB_ERROR, NULL, NULL, "may have %d bytes at most, all together",
                  ANNOTATIONS_BYTES_MAX);
    }
    check_leave(c, mark);
}

static void check_owners(struct check *c, const json_t *owners)
{
    static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
    size_t index;
    json_t *owner;
    size_t top = check_enter(c, "ownerReferences");
    if (owners && !json_is_array(owners)) {
        check_say(c, JOB_ERROR, NULL, NULL, "must be a list");
    }
    json_array_foreach (owners, index, owner) {
        size_t mark = check_enter_index(c, index);
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
            if (!*doc_text(owner, needed[i], "")) {
                check_say(c, JOB_ERROR, needed[i], NULL, "is missing");
            }
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}

static void check_metadata(struct check *c, const json_t *object, enum schema_form name_form)
{
    const json_t *metadata = doc_at(object, "metadata");
    if (!json_is_object(metadata)) {
        return; /* said already */
    }
    size_t mark = check_enter(c, "metadata");
    check_name(c, metadata, name_form);
    check_labels(c, doc_at(metadata, "labels"));
    check_annotations(c, doc_at(metadata, "annotations"));
    check_owners(c, doc_at(metadata, "ownerReferences"));
    check_leave(c, mark);
}

static void say_unknown_kind(struct check *c, const char *name)
{
    static const char known[] =
        "muster reads PyTorchJob, ConfigMap, Secret, PersistentVolumeClaim and Namespace";
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcasecmp(kinds[i].kind, name) == 0) {
            char hint[64];
            snprintf(hint, sizeof hint, "did you mean %s?", kinds[i].kind);
            check_say(c, JOB_ERROR, "kind", hint, "\"%.60s\" is no kind that is known here", name);
            return;
        }
    }
    if (*name) {
        check_say(c, JOB_ERROR, "kind", known, "\"%.60s\" is no kind that can be run here", name);
    } else {
        check_say(c, JOB_ERROR, "kind", known, "is missing");
    }
}

void check_object(struct check *c, const json_t *object)
{
    if (!json_is_object(object)) {
        check_say(c, JOB_ERROR, NULL,
                  "a file starts with apiVersion: and kind:", "this document is no object");
        return;
    }
    const char *name = doc_text(object, "kind", "");
    const struct kind *kind = find_kind(name);
    if (!kind) {
        if (*name || !c->partial) {
            say_unknown_kind(c, name);
        }
        return;
    }
    const char *version = doc_text(object, "apiVersion", kind->api_version);
    if (strcmp(version, kind->api_version) != 0) {
        char hint[64];
        snprintf(hint, sizeof hint, "did you mean %s?", kind->api_version);
        check_say(c, JOB_ERROR, "apiVersion", hint, "\"%.60s\" has no %s that is known here",
                  version, name);
    }
    check_walk(c, object, kind->type);
    if (c->partial) {
        return;
    }
    check_metadata(c, object, kind->name_form);
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
        check_say(&c, JOB_ERROR, "metadata", NULL, "is missing");
    }
    size_t mark = check_enter(&c, "metadata");
    check_walk(&c, metadata, SCHEMA_metadata);
    check_leave(&c, mark);
    check_metadata(&c, object, SCHEMA_SUBDOMAIN);
    check_done(&c);
}

/* Set-to-unset and unset-to-set pass for the queue, as upstream's transition rule has it. */
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
