/* deploy/base/definition.yaml is equal to what the program makes. MUSTER_UPDATE=1 writes the file
 * again. */
#include "deploy/definition.h"
#include "deploy/openapi.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

static const char *path_of(const char *name)
{
    static char path[4096];
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(path, sizeof path, "%s/deploy/%s", source ? source : ".", name);
    return path;
}

static void expect_file(const char *name, json_t *doc)
{
    assert_non_null(doc);
    char *text = yaml_print(doc);
    assert_non_null(text);
    if (getenv("MUSTER_UPDATE")) {
        assert_int_equal(file_write(path_of(name), text, strlen(text), 0644, NULL), 0);
    }
    char *stored = NULL;
    size_t bytes = 0;
    assert_int_equal(file_read(path_of(name), 1 << 20, &stored, &bytes, NULL), 0);
    assert_string_equal(stored, text);
    free(stored);
    free(text);
    json_decref(doc);
}

static void the_files_are_what_the_program_makes(void **state)
{
    (void)state;
    expect_file("base/definition.yaml", definition_new());
}

/* Checks that each field of the tables is in the definition, wherever its type is. */
static void check_type(const json_t *schema, enum schema_type type)
{
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].type != type || type == SCHEMA_job) {
            continue;
        }
        json_t *property = openapi_property(schema, fields[i].name);
        if (!property && !json_object_get(schema, "additionalProperties")) {
            fail_msg("%s.%s is not in the definition", schema_title(type), fields[i].name);
        }
        if (fields[i].kind == SCHEMA_OBJECT && property) {
            check_type(property, fields[i].of);
        } else if (fields[i].kind == SCHEMA_LIST && property) {
            check_type(json_object_get(property, "items"), fields[i].of);
        }
    }
}

static void every_field_of_a_job_is_there(void **state)
{
    (void)state;
    muster_auto(doc) json_t *made = definition_new();
    json_t *job = doc_at(made, "spec.versions.0.schema.openAPIV3Schema");
    check_type(openapi_property(job, "spec"), SCHEMA_job_spec);
    json_t *replicas = doc_at(job, "properties.spec.properties.pytorchReplicaSpecs");
    check_type(json_object_get(replicas, "additionalProperties"), SCHEMA_replica_spec);
    check_type(openapi_property(job, "status"), SCHEMA_job_status);
}

static void counters_are_one_value(void **state)
{
    (void)state;
    muster_auto(doc) json_t *made = definition_new();
    const json_t *status = doc_at(made, "spec.versions.0.schema.openAPIV3Schema.properties.status");
    const json_t *counters = openapi_property(status, "counters");
    assert_string_equal(doc_text(counters, "x-kubernetes-map-type", ""), "atomic");
    assert_true(doc_bool(counters, "x-kubernetes-preserve-unknown-fields", false));
}

/* Checks that each value has a type: an API server refuses a schema without types. */
static void check_structural(const json_t *schema, const char *path)
{
    bool typed = json_object_get(schema, "type") ||
                 json_object_get(schema, "x-kubernetes-int-or-string") ||
                 json_object_get(schema, "x-kubernetes-preserve-unknown-fields");
    if (!typed) {
        fail_msg("%s has no type", path);
    }
    const char *name;
    json_t *property;
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        check_structural(property, name);
    }
    static const char *const inner[] = {"items", "additionalProperties"};
    for (size_t i = 0; i < 2; i++) {
        if (json_object_get(schema, inner[i])) {
            check_structural(json_object_get(schema, inner[i]), path);
        }
    }
}

static void every_value_has_a_type(void **state)
{
    (void)state;
    muster_auto(doc) json_t *made = definition_new();
    check_structural(doc_at(made, "spec.versions.0.schema.openAPIV3Schema"), "v1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_are_what_the_program_makes),
        cmocka_unit_test(every_field_of_a_job_is_there),
        cmocka_unit_test(counters_are_one_value),
        cmocka_unit_test(every_value_has_a_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
