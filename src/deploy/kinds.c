/* See kinds.h. Pods, claims and what holds data are in the tables of src/job; of services, nodes,
 * events the fields that are served here are listed below.
 *
 * Source: k8s.io/api core/v1, for the names.
 */
#include "deploy/kinds.h"

#include "deploy/definition.h"
#include "deploy/openapi.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

/* ---- kinds of the tables ---- */

static const struct {
    const char *kind;
    enum schema_type type; /* of the whole object, or of the field `spec` */
    const char *spec;      /* "spec", or NULL */
    const char *description;
} known[] = {
    {"ConfigMap", SCHEMA_config_map, NULL, "Text that pods get as variables or files."},
    {"Secret", SCHEMA_secret, NULL, "The same as a ConfigMap, for what nobody else may read."},
    {"Namespace", SCHEMA_namespace, NULL, "A name under which objects are kept apart."},
    {"PersistentVolumeClaim", SCHEMA_claim, NULL, "A folder that outlives the pods that mount it."},
    {"Pod", SCHEMA_pod_spec, "spec", "Containers that run together: here, processes of a rank."},
};

static void describe(struct build *b, json_t *schema, const char *description)
{
    json_t *properties = build_object_at(b, schema, "properties");
    build_text(b, schema, "description", description);
    build_set(b, properties, "apiVersion", json_pack("{s:s}", "type", "string"));
    build_set(b, properties, "kind", json_pack("{s:s}", "type", "string"));
    build_set(b, properties, "metadata", openapi_type(b, SCHEMA_metadata));
}

static json_t *known_schema(size_t i)
{
    struct build b = {0};
    json_t *schema = build_value(&b, openapi_type(&b, known[i].type));
    if (known[i].spec) {
        json_t *whole = openapi_object();
        build_set(&b, build_object_at(&b, whole, "properties"), known[i].spec, schema);
        build_set(&b, build_object_at(&b, whole, "properties"), "status", openapi_object());
        schema = whole;
    }
    describe(&b, schema, known[i].description);
    return build_end(&b, schema);
}

/* ---- the others ---- */

static const struct {
    const char *api_version, *kind, *description;
} others[] = {
    {"v1", "Service", "A name for the addresses of pods."},
    {"v1", "Node", "A machine: here, this one."},
    {"v1", "Event", "Something that happened to an object, and how often."},
    {"events.k8s.io/v1", "Event", "Something that happened to an object, and how often."},
};

/* A dot leads into an object, "[]" into the entries of a list. */
#define NEW "events.k8s.io/v1"
static const struct {
    const char *api_version, *kind, *path, *type;
} fields[] = {
    {"v1", "Service", "spec.clusterIP", "string"},
    {"v1", "Service", "spec.type", "string"},
    {"v1", "Service", "spec.selector", "object"},
    {"v1", "Service", "spec.ports[].name", "string"},
    {"v1", "Service", "spec.ports[].port", "integer"},
    {"v1", "Service", "spec.ports[].protocol", "string"},
    {"v1", "Service", "spec.ports[].targetPort", "integer"},
    {"v1", "Service", "spec.publishNotReadyAddresses", "boolean"},
    {"v1", "Service", "status", "object"},
    {"v1", "Node", "spec.unschedulable", "boolean"},
    {"v1", "Node", "status.addresses[].address", "string"},
    {"v1", "Node", "status.addresses[].type", "string"},
    {"v1", "Node", "status.allocatable", "object"},
    {"v1", "Node", "status.capacity", "object"},
    {"v1", "Node", "status.conditions[].reason", "string"},
    {"v1", "Node", "status.conditions[].status", "string"},
    {"v1", "Node", "status.conditions[].type", "string"},
    {"v1", "Node", "status.nodeInfo", "object"},
    {"v1", "Event", "count", "integer"},
    {"v1", "Event", "eventTime", "string"},
    {"v1", "Event", "firstTimestamp", "string"},
    {"v1", "Event", "involvedObject.kind", "string"},
    {"v1", "Event", "involvedObject.name", "string"},
    {"v1", "Event", "involvedObject.namespace", "string"},
    {"v1", "Event", "involvedObject.uid", "string"},
    {"v1", "Event", "lastTimestamp", "string"},
    {"v1", "Event", "message", "string"},
    {"v1", "Event", "reason", "string"},
    {"v1", "Event", "reportingComponent", "string"},
    {"v1", "Event", "type", "string"},
    {NEW, "Event", "action", "string"},
    {NEW, "Event", "deprecatedCount", "integer"},
    {NEW, "Event", "deprecatedFirstTimestamp", "string"},
    {NEW, "Event", "deprecatedLastTimestamp", "string"},
    {NEW, "Event", "eventTime", "string"},
    {NEW, "Event", "note", "string"},
    {NEW, "Event", "reason", "string"},
    {NEW, "Event", "regarding.kind", "string"},
    {NEW, "Event", "regarding.name", "string"},
    {NEW, "Event", "regarding.namespace", "string"},
    {NEW, "Event", "regarding.uid", "string"},
    {NEW, "Event", "reportingController", "string"},
    {NEW, "Event", "reportingInstance", "string"},
    {NEW, "Event", "type", "string"},
};

/* Returns the schema of a name within that of an object; it is created if it is missing. */
static json_t *step_into(struct build *b, json_t *schema, const char *name, const char *type)
{
    json_t *found = build_object_at(b, build_object_at(b, schema, "properties"), name);
    build_text(b, found, "type", type);
    return found;
}

static void add_field(struct build *b, json_t *schema, const char *path, const char *type)
{
    char name[64];
    while (true) {
        size_t length = strcspn(path, ".[");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        path += length;
        if (!*path) {
            (void)step_into(b, schema, name, type);
            return;
        }
        bool list = *path == '[';
        schema = step_into(b, schema, name, list ? "array" : "object");
        if (list) {
            schema = build_object_at(b, schema, "items");
            build_text(b, schema, "type", "object");
            path += strlen("[]");
        }
        path++; /* the dot */
    }
}

static json_t *other_schema(size_t i)
{
    struct build b = {0};
    json_t *schema = build_value(&b, openapi_object());
    describe(&b, schema, others[i].description);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        if (strcmp(fields[f].kind, others[i].kind) == 0 &&
            strcmp(fields[f].api_version, others[i].api_version) == 0) {
            add_field(&b, schema, fields[f].path, fields[f].type);
        }
    }
    return build_end(&b, schema);
}

json_t *kinds_schema(const char *api_version, const char *kind)
{
    if (strcmp(kind, "PyTorchJob") == 0) {
        muster_auto(doc) json_t *definition = definition_new();
        return json_incref(doc_at(definition, "spec.versions.0.schema.openAPIV3Schema"));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].kind, kind) == 0) {
            return known_schema(i);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].kind, kind) == 0 && strcmp(others[i].api_version, api_version) == 0) {
            return other_schema(i);
        }
    }
    return NULL;
}
