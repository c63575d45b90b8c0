/* See references.h. */
#include "job/check/references.h"

#include "base/doc.h"
#include "job/check/context.h"
#include "job/job.h"

#include <string.h>

struct search {
    struct check *check;
    json_t *const *objects;
    size_t count;
    const char *namespace; /* of the present job */
    json_t *told;          /* "Kind/name" of the notes that were made; one reference */
};

static bool is_there(const struct search *s, const char *kind, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        const json_t *object = s->objects[i];
        if (strcmp(doc_text(object, "kind", ""), kind) == 0 &&
            strcmp(doc_text(object, "metadata.name", ""), name) == 0 &&
            strcmp(doc_text(object, "metadata.namespace", "default"), s->namespace) == 0) {
            return true;
        }
    }
    return false;
}

/* Notes a missing object of `kind`, which `field` under the present path names. */
static void look(struct search *s, const json_t *reference, const char *field, const char *kind)
{
    const char *name = doc_text(reference, field, "");
    if (!*name || doc_bool(reference, "optional", false) || is_there(s, kind, name)) {
        return;
    }
    json_t *key = json_sprintf("%s/%s", kind, name);
    if (key && !json_object_get(s->told, json_string_value(key))) {
        json_object_set_new(s->told, json_string_value(key), json_true());
        bool claim = strcmp(kind, "PersistentVolumeClaim") == 0;
        check_say(s->check, JOB_INFO, field, NULL, "%s %.60s is not in this file; %s", kind, name,
                  claim
                      ? "muster run refuses the job until it is created, pods of muster create wait"
                      : "pods wait until it is created");
    }
    json_decref(key);
}

/* Does the same for the element at `at` of the object at the present path. */
static void look_below(struct search *s, const json_t *object, const char *at, const char *field,
                       const char *kind)
{
    size_t mark = check_enter(s->check, at);
    look(s, json_object_get(object, at), field, kind);
    check_leave(s->check, mark);
}

static void look_in_volume(struct search *s, const json_t *volume)
{
    look_below(s, volume, "persistentVolumeClaim", "claimName", "PersistentVolumeClaim");
    look_below(s, volume, "configMap", "name", "ConfigMap");
    look_below(s, volume, "secret", "secretName", "Secret");
}

static void look_in_source(struct search *s, const json_t *source)
{
    look_below(s, source, "configMapRef", "name", "ConfigMap");
    look_below(s, source, "secretRef", "name", "Secret");
}

static void look_in_variable(struct search *s, const json_t *variable)
{
    size_t mark = check_enter(s->check, "valueFrom");
    const json_t *from = json_object_get(variable, "valueFrom");
    look_below(s, from, "configMapKeyRef", "name", "ConfigMap");
    look_below(s, from, "secretKeyRef", "name", "Secret");
    check_leave(s->check, mark);
}

static void for_each(struct search *s, const json_t *object, const char *list,
                     void (*visit)(struct search *s, const json_t *item))
{
    size_t index;
    json_t *item;
    size_t top = check_enter(s->check, list);
    json_array_foreach (json_object_get(object, list), index, item) {
        size_t mark = check_enter_index(s->check, index);
        visit(s, item);
        check_leave(s->check, mark);
    }
    check_leave(s->check, top);
}

static void look_in_container(struct search *s, const json_t *container)
{
    for_each(s, container, "envFrom", look_in_source);
    for_each(s, container, "env", look_in_variable);
}

static void look_in_job(struct search *s, const json_t *job)
{
    const json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    size_t top = check_enter(s->check, "spec");
    check_enter(s->check, "pytorchReplicaSpecs");
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        const json_t *replica = json_object_get(specs, job_role_name(role));
        const json_t *pod = doc_at(replica, "template.spec");
        size_t mark = check_enter(s->check, job_role_name(role));
        check_enter(s->check, "template");
        check_enter(s->check, "spec");
        for_each(s, pod, "volumes", look_in_volume);
        for_each(s, pod, "initContainers", look_in_container);
        for_each(s, pod, "containers", look_in_container);
        check_leave(s->check, mark);
    }
    check_leave(s->check, top);
}

void job_references_unique(json_t *const *objects, const struct yaml_document *sources,
                           size_t count, struct job_problems *problems)
{
    json_t *seen = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *kind = doc_text(objects[i], "kind", "");
        const char *name = doc_text(objects[i], "metadata.name", "");
        json_t *key = json_sprintf("%s/%s/%s", kind,
                                   doc_text(objects[i], "metadata.namespace", "default"), name);
        if (key && *name && json_object_get(seen, json_string_value(key))) {
            struct check check;
            check_init(&check, &sources[i], problems);
            check_enter(&check, "metadata");
            check_say(&check, JOB_ERROR, "name", "give it another name, or remove one of them",
                      "duplicate %s \"%.60s\" in this file", kind, name);
            check_done(&check);
        } else if (key) {
            json_object_set_new(seen, json_string_value(key), json_true());
        }
        json_decref(key);
    }
    json_decref(seen);
}

void job_references_check(json_t *const *objects, const struct yaml_document *sources, size_t count,
                          struct job_problems *problems)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(doc_text(objects[i], "kind", ""), "PyTorchJob") != 0) {
            continue;
        }
        struct check check;
        check_init(&check, &sources[i], problems);
        struct search search = {&check, objects, count,
                                doc_text(objects[i], "metadata.namespace", "default"),
                                json_object()};
        look_in_job(&search, objects[i]);
        json_decref(search.told);
        check_done(&check);
    }
}
