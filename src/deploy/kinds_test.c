/* The schema of each kind, as kubectl explain gets it. */
#include "deploy/kinds.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"

#define IN ".properties."

static const struct known {
    const char *api_version, *kind, *path, *type;
} known[] = {
    {"v1", "Pod", "properties.spec" IN "containers.items" IN "command", "array"},
    {"v1", "Pod", "properties.status", "object"},
    {"v1", "Pod", "properties.metadata" IN "labels", "object"},
    {"v1", "ConfigMap", "properties.immutable", "boolean"},
    {"v1", "Secret", "properties.stringData", "object"},
    {"v1", "PersistentVolumeClaim", "properties.spec" IN "accessModes", "array"},
    {"v1", "Namespace", "properties.metadata", "object"},
    {"v1", "Service", "properties.spec" IN "ports.items" IN "targetPort", "integer"},
    {"v1", "Service", "properties.spec" IN "ports", "array"},
    {"v1", "Node", "properties.status" IN "conditions.items" IN "type", "string"},
    {"v1", "Event", "properties.involvedObject" IN "name", "string"},
    {"events.k8s.io/v1", "Event", "properties.regarding" IN "name", "string"},
    {"kubeflow.org/v1", "PyTorchJob", "properties.spec" IN "runPolicy" IN "backoffLimit",
     "integer"},
};

static void each_kind_has_its_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *k = &known[i];
        muster_auto(doc) json_t *schema = kinds_schema(k->api_version, k->kind);
        char path[128];
        (void)snprintf(path, sizeof path, "%s.type", k->path);
        assert_string_equal(doc_text(schema, "type", ""), "object");
        assert_true(*doc_text(schema, "description", ""));
        assert_string_equal(doc_text(schema, path, k->path), k->type);
    }
}

static void the_groups_of_events_are_told_apart(void **state)
{
    (void)state;
    muster_auto(doc) json_t *old = kinds_schema("v1", "Event");
    muster_auto(doc) json_t *new = kinds_schema("events.k8s.io/v1", "Event");
    assert_null(doc_at(old, "properties.regarding"));
    assert_null(doc_at(new, "properties.involvedObject"));
    assert_null(kinds_schema("apps/v1", "Deployment"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_fields),
        cmocka_unit_test(the_groups_of_events_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
