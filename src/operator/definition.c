/* See definition.h. */
#include "operator/definition.h"

#include "base/doc.h"

#include <stdlib.h>

/* A named field is kept, and so is every field below a schema that keeps unknown fields. */
bool definition_keeps_counters(const json_t *definition)
{
    static const char *const path[] = {"status", "counters"};
    const json_t *version = doc_find(doc_at(definition, "spec.versions"), "name", "v1");
    const json_t *schema = doc_at(version, "schema.openAPIV3Schema");
    bool any = schema == NULL;
    for (size_t i = 0; i < sizeof path / sizeof path[0] && schema && !any; i++) {
        any = doc_bool(schema, "x-kubernetes-preserve-unknown-fields", false);
        schema = json_object_get(json_object_get(schema, "properties"), path[i]);
    }
    return any || schema;
}

/* Reads a number; "36+", which some clusters report, is 36. */
static long number_of(const json_t *version, const char *field)
{
    return strtol(doc_text(version, field, "0"), NULL, 10);
}

bool version_has_restart_rules(const json_t *version)
{
    long major = number_of(version, "major");
    return major > 1 || (major == 1 && number_of(version, "minor") >= 35);
}
