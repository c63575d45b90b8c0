/* Checks what the schema cannot say about a replica's pod template: names that must be unique or
 * must refer to something, and values that exclude each other. */
#include "base/doc.h"
#include "base/text.h"
#include "job/annotations.h"
#include "job/check/context.h"
#include "job/shell_variables.h"
#include "job/text.h"

#include <string.h>

static const char *name_of(const json_t *object)
{
    return doc_text(object, "name", "");
}

/* Reports the elements of a list that repeat the name of an earlier one. `seen` maps names to any
 * value. */
static void check_unique(struct check *c, const json_t *list, const char *key,
                         enum job_severity severity, json_t *seen, const char *consequence)
{
    size_t index;
    json_t *item;
    json_array_foreach (list, index, item) {
        const char *name = doc_text(item, key, "");
        size_t mark = check_enter_index(c, index);
        if (*name && json_object_get(seen, name)) {
            check_say(c, severity, key, NULL, "duplicate %s \"%.60s\"%s", key, name, consequence);
            check_reason(c, "FieldValueDuplicate");
        } else if (*name) {
            json_object_set_new(seen, name, json_true());
        }
        check_leave(c, mark);
    }
}

/* --- environment --- */

/* Whether it is a field of a pod that a variable may contain (Kubernetes, "Downward API"). */
static bool known_field(const char *path)
{
    static const char *const paths[] = {
        "metadata.name",           "metadata.namespace", "metadata.uid",   "spec.nodeName",
        "spec.serviceAccountName", "status.hostIP",      "status.hostIPs", "status.podIP",
        "status.podIPs",
    };
    return strncmp(path, "metadata.labels['", 17) == 0 ||
           strncmp(path, "metadata.annotations['", 22) == 0 ||
           text_is_any_of(path, paths, sizeof paths / sizeof paths[0]);
}

static void check_field_ref(struct check *c, const json_t *source)
{
    const char *path = doc_text(source, "fieldRef.fieldPath", "");
    if (*path && !known_field(path)) {
        size_t mark = check_enter(c, "valueFrom");
        check_enter(c, "fieldRef");
        check_say(c, JOB_ERROR, "fieldPath",
                  "such as metadata.name, metadata.labels['KEY'] or status.podIP",
                  "\"%.60s\" is not a field that a variable can be set from", path);
        check_leave(c, mark);
    }
}

/* Whether the text contains ${NAME}, which a shell would expand. */
static bool shell_variable(const char *text)
{
    const char *open = strstr(text, "${");
    return open && strchr(open, '}');
}

static void check_variable(struct check *c, const json_t *variable)
{
    const char *name = name_of(variable);
    const json_t *source = doc_at(variable, "valueFrom");
    bool kept = c->coordinated && strcmp(name, "PYTHONUNBUFFERED") == 0;
    if (shell_variable_is(VARIABLE_OPERATOR, name) && !kept) {
        check_say(c, JOB_WARNING, "name", "remove it",
                  "is overwritten: the operator sets %s itself", name);
    }
    check_field_ref(c, source);
    const char *value = doc_text(variable, "value", "");
    if (shell_variable(value)) {
        check_say(c, JOB_WARNING, "value", "write $(NAME); or fill in the template first",
                  "\"%.60s\" is taken as it is: ${NAME} is not expanded here", value);
    }
    if (source && doc_at(variable, "value") && *value) {
        check_say(c, JOB_ERROR, "valueFrom", NULL, "must not be used with value");
    }
    if (json_is_object(source) && json_object_size(source) != 1) {
        check_say(c, JOB_ERROR, "valueFrom", NULL,
                  "must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef");
    }
}

static void check_environment(struct check *c, const json_t *container)
{
    const json_t *env = doc_at(container, "env");
    size_t top = check_enter(c, "env");
    size_t index;
    json_t *variable;
    json_array_foreach (env, index, variable) {
        size_t mark = check_enter_index(c, index);
        check_variable(c, variable);
        check_leave(c, mark);
    }
    json_t *seen = json_object();
    check_unique(c, env, "name", JOB_WARNING, seen, ": the last one is used");
    json_decref(seen);
    check_leave(c, top);
}

/* --- volumes --- */

static void check_mounts(struct check *c, const json_t *container, const json_t *volumes)
{
    const json_t *mounts = doc_at(container, "volumeMounts");
    size_t top = check_enter(c, "volumeMounts");
    size_t index;
    json_t *mount;
    json_array_foreach (mounts, index, mount) {
        size_t mark = check_enter_index(c, index);
        if (*name_of(mount) && !json_object_get(volumes, name_of(mount))) {
            check_say(c, JOB_ERROR, "name", "add it to spec.volumes of the template",
                      "unknown volume \"%.60s\"", name_of(mount));
            check_reason(c, "FieldValueNotFound");
        }
        if (json_object_get(mount, "subPath") && json_object_get(mount, "subPathExpr")) {
            check_say(c, JOB_ERROR, "subPathExpr", "remove one of the two",
                      "must not be used with subPath");
        }
        check_leave(c, mark);
    }
    json_t *seen = json_object();
    check_unique(c, mounts, "mountPath", JOB_ERROR, seen, "");
    json_decref(seen);
    check_leave(c, top);
}

static void check_volume(struct check *c, const json_t *volume)
{
    const char *key;
    json_t *value;
    int sources = 0;
    json_object_foreach ((json_t *)volume, key, value) {
        const struct schema_field *field = schema_find(SCHEMA_volume, key);
        sources += field && strcmp(key, "name") != 0 && !json_is_null(value);
    }
    if (sources > 1) {
        check_say(c, JOB_ERROR, NULL, NULL, "must have one source; it has %d", sources);
    } else if (sources == 0) {
        check_say(c, JOB_WARNING, NULL, "write emptyDir: {}", "has no source; an emptyDir is used");
    }
}

/* Checks claim templates; their names are also names of volumes. */
static void check_claim_templates(struct check *c, const json_t *replica_spec, json_t *names)
{
    size_t top = check_enter(c, "volumeClaimTemplates");
    size_t index;
    json_t *item;
    json_array_foreach (doc_at(replica_spec, "volumeClaimTemplates"), index, item) {
        const char *name = doc_text(item, "metadata.name", "");
        const char *fault = *name ? job_text_fault(SCHEMA_LABEL, name) : NULL;
        size_t mark = check_enter_index(c, index);
        check_claim(c, item);
        check_enter(c, "metadata");
        if (fault) {
            check_say(c, JOB_ERROR, "name", NULL, "\"%.60s\" %s", name, fault);
        } else if (json_object_get(names, name)) {
            check_say(c, JOB_ERROR, "name", NULL, "duplicate name \"%.60s\"", name);
            check_reason(c, "FieldValueDuplicate");
        } else if (*name) {
            json_object_set_new(names, name, json_true());
        } else if (doc_at(item, "metadata")) {
            check_required(c, "name", NULL, "is missing");
        }
        check_leave(c, mark);
    }
    check_leave(c, top);
}

/* Checks the volumes and adds their names. */
static void check_volumes(struct check *c, const json_t *pod, json_t *names)
{
    const json_t *volumes = doc_at(pod, "volumes");
    size_t index;
    json_t *item;
    size_t top = check_enter(c, "volumes");
    json_array_foreach (volumes, index, item) {
        size_t mark = check_enter_index(c, index);
        if (json_is_object(item)) {
            check_volume(c, item);
        }
        check_leave(c, mark);
    }
    check_unique(c, volumes, "name", JOB_ERROR, names, "");
    check_leave(c, top);
}

/* --- containers --- */

static void check_container(struct check *c, const json_t *container, const json_t *volumes)
{
    check_environment(c, container);
    check_resources(c, container);
    check_mounts(c, container, volumes);
    const json_t *ports = doc_at(container, "ports");
    size_t mark = check_enter(c, "ports");
    json_t *seen = json_object();
    check_unique(c, ports, "name", JOB_ERROR, seen, "");
    json_decref(seen);
    check_leave(c, mark);
}

/* Notes a missing command. Four of the nine examples of upstream have no command: the image's own
 * command then runs. */
static void check_command(struct check *c, const json_t *container)
{
    if (c->problems->advice && !c->entrypoint_known && !doc_at(container, "command") &&
        *doc_text(container, "image", "")) {
        check_say(
            c, JOB_INFO, "image",
            "muster run --image 'IMAGE=COMMAND', or annotation " JOB_ANNOTATION_COMMAND,
            "the container has no command, and muster cannot read the image's entrypoint: the "
            "job is refused without one");
    }
}

static void check_containers(struct check *c, const json_t *pod, const char *key, json_t *names,
                             const json_t *volumes)
{
    const json_t *containers = doc_at(pod, key);
    size_t top = check_enter(c, key);
    size_t index;
    json_t *container;
    json_array_foreach (containers, index, container) {
        size_t mark = check_enter_index(c, index);
        if (json_is_object(container)) {
            check_container(c, container, volumes);
            check_command(c, container);
        }
        check_leave(c, mark);
    }
    check_unique(c, containers, "name", JOB_ERROR, names, "");
    check_leave(c, top);
}

/* Checks that there is a container called pytorch: the rank runs in it. */
static void check_rank(struct check *c, const json_t *containers)
{
    size_t index;
    json_t *container;
    json_array_foreach (containers, index, container) {
        if (strcmp(name_of(container), "pytorch") == 0) {
            return;
        }
    }
    if (json_array_size(containers) == 1) {
        size_t mark = check_enter_index(c, 0);
        check_say(c, JOB_ERROR, "name", "rename it to pytorch",
                  "one container must be called pytorch");
        check_leave(c, mark);
    } else if (json_is_array(containers)) {
        check_say(c, JOB_ERROR, NULL, NULL,
                  json_array_size(containers) ? "one of them must be called pytorch"
                                              : "must have a container called pytorch");
    }
}

/* `volumes` has names that mounts may use in addition to the pod's volumes, whose names are
 * added. */
static void check_pod_spec(struct check *c, const json_t *pod, json_t *volumes)
{
    json_t *names = json_object();
    check_volumes(c, pod, volumes);
    check_containers(c, pod, "initContainers", names, volumes);
    check_containers(c, pod, "containers", names, volumes);
    json_decref(names);
}

void check_pod(struct check *c, const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    size_t mark = check_enter(c, "spec");
    if (json_is_object(spec)) {
        json_t *volumes = json_object();
        check_walk(c, spec, SCHEMA_pod_spec);
        check_pod_spec(c, spec, volumes);
        json_decref(volumes);
        if (doc_at(spec, "containers") && json_array_size(doc_at(spec, "containers")) == 0) {
            check_required(c, "containers", NULL, "is empty");
        }
    } else {
        check_required(c, NULL, NULL, "is missing");
    }
    check_leave(c, mark);
}

void check_pod_template(struct check *c, const json_t *replica_spec)
{
    json_t *volumes = json_object();
    check_claim_templates(c, replica_spec, volumes);
    bool known = c->entrypoint_known;
    c->entrypoint_known =
        known || json_object_get(doc_at(replica_spec, "template.metadata.annotations"),
                                 JOB_ANNOTATION_COMMAND);
    const json_t *pod = doc_at(replica_spec, "template.spec");
    size_t top = check_enter(c, "template");
    size_t mark = check_enter(c, "metadata");
    check_maps(c, doc_at(replica_spec, "template.metadata"));
    check_leave(c, mark);
    check_enter(c, "spec");
    if (json_is_object(pod)) {
        check_pod_spec(c, pod, volumes);
        mark = check_enter(c, "containers");
        check_rank(c, doc_at(pod, "containers"));
        check_leave(c, mark);
    }
    check_leave(c, top);
    c->entrypoint_known = known;
    json_decref(volumes);
}
