/* See openapi.h. */
#include "deploy/openapi.h"

#include <string.h>

/* The pattern that apimachinery uses for a quantity; every custom resource with pod templates has
 * this text. */
#define QUANTITY_PATTERN                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\" \
    ".[0-9]*)?)|(\\.[0-9]+))))?$"

/* Lists whose entries are identified by these keys, as in the API of Kubernetes itself: each key
 * but the first has a default. */
static const struct {
    enum schema_type in;
    const char *list;
    const char *key;
    const char *second;
    const char *second_default;
} named_lists[] = {
    {SCHEMA_pod_spec, "containers", "name", NULL, NULL},
    {SCHEMA_pod_spec, "initContainers", "name", NULL, NULL},
    {SCHEMA_pod_spec, "volumes", "name", NULL, NULL},
    {SCHEMA_pod_spec, "imagePullSecrets", "name", NULL, NULL},
    {SCHEMA_container, "env", "name", NULL, NULL},
    {SCHEMA_container, "volumeMounts", "mountPath", NULL, NULL},
    {SCHEMA_container, "ports", "containerPort", "protocol", "TCP"},
};

json_t *openapi_object(void)
{
    return json_pack("{s:s}", "type", "object");
}

void openapi_rule(struct build *b, json_t *schema, const char *rule, const char *message)
{
    build_add(b, build_array_at(b, schema, "x-kubernetes-validations"),
              json_pack("{s:s, s:s}", "message", message, "rule", rule));
}

json_t *openapi_property(const json_t *schema, const char *name)
{
    return json_object_get(json_object_get(schema, "properties"), name);
}

static json_t *words(struct build *b, const char *list)
{
    json_t *found = json_array();
    while (*list) {
        size_t length = strcspn(list, " ");
        build_add(b, found, json_stringn(list, length));
        list += length + strspn(list + length, " ");
    }
    return found;
}

static json_t *text(struct build *b, const struct schema_field *field)
{
    json_t *schema = json_pack("{s:s}", "type", "string");
    if (field->form == SCHEMA_WORDS) {
        build_set(b, schema, "enum", words(b, field->words));
    } else if (field->required && field->form != SCHEMA_FREE) {
        build_set(b, schema, "minLength", json_integer(1));
    }
    return schema;
}

static json_t *integer(struct build *b, const struct schema_field *field)
{
    bool small = field->max <= INT32_MAX && field->min >= INT32_MIN;
    json_t *schema =
        json_pack("{s:s, s:s}", "type", "integer", "format", small ? "int32" : "int64");
    if (field->min > (small ? INT32_MIN : INT64_MIN)) {
        build_set(b, schema, "minimum", json_integer(field->min));
    }
    if (field->max < (small ? INT32_MAX : INT64_MAX)) {
        build_set(b, schema, "maximum", json_integer(field->max));
    }
    return schema;
}

static json_t *quantity(void)
{
    return json_pack("{s:b, s:[{s:s}, {s:s}], s:s}", "x-kubernetes-int-or-string", 1, "anyOf",
                     "type", "integer", "type", "string", "pattern", QUANTITY_PATTERN);
}

static json_t *map_of(struct build *b, json_t *values)
{
    json_t *schema = openapi_object();
    build_set(b, schema, "additionalProperties", values);
    return schema;
}

static json_t *list_of(struct build *b, json_t *items)
{
    json_t *schema = json_pack("{s:s}", "type", "array");
    build_set(b, schema, "items", items);
    return schema;
}

/* Makes a list a map by its keys. Each entry must have the keys that identify it: required, or by
 * default. */
static void name_entries(struct build *b, json_t *list, const struct schema_field *field)
{
    for (size_t i = 0; i < sizeof named_lists / sizeof named_lists[0]; i++) {
        if (named_lists[i].in != field->type || strcmp(named_lists[i].list, field->name) != 0) {
            continue;
        }
        const char *second = named_lists[i].second;
        json_t *keys = json_pack("[s]", named_lists[i].key);
        if (second) {
            build_add(b, keys, json_string(second));
            build_set(b, openapi_property(json_object_get(list, "items"), second), "default",
                      json_string(named_lists[i].second_default));
        }
        build_set(b, list, "x-kubernetes-list-type", json_string("map"));
        build_set(b, list, "x-kubernetes-list-map-keys", keys);
        return;
    }
    build_set(b, list, "x-kubernetes-list-type", json_string("atomic"));
}

static json_t *list(struct build *b, const struct schema_field *field)
{
    json_t *schema = list_of(b, openapi_type(b, field->of));
    name_entries(b, schema, field);
    return schema;
}

static json_t *field_schema(struct build *b, const struct schema_field *field)
{
    switch (field->kind) {
    case SCHEMA_ANY: return json_pack("{s:b}", "x-kubernetes-preserve-unknown-fields", 1);
    case SCHEMA_TEXT: return text(b, field);
    case SCHEMA_TEXTS: return list_of(b, json_pack("{s:s}", "type", "string"));
    case SCHEMA_TEXT_MAP: return map_of(b, json_pack("{s:s}", "type", "string"));
    case SCHEMA_INTEGER: return integer(b, field);
    case SCHEMA_BOOLEAN: return json_pack("{s:s}", "type", "boolean");
    case SCHEMA_QUANTITY: return quantity();
    case SCHEMA_QUANTITY_MAP: return map_of(b, quantity());
    case SCHEMA_OBJECT: return openapi_type(b, field->of);
    case SCHEMA_LIST: return list(b, field);
    }
    return NULL;
}

json_t *openapi_type(struct build *b, enum schema_type type)
{
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    json_t *schema = openapi_object();
    json_t *properties = json_object();
    json_t *required = json_array();
    for (size_t i = 0; i < count; i++) {
        if (fields[i].type == type) {
            build_set(b, properties, fields[i].name, field_schema(b, &fields[i]));
            if (fields[i].required) {
                build_add(b, required, json_string(fields[i].name));
            }
        }
    }
    build_set(b, schema, "properties", properties);
    if (json_array_size(required) > 0) {
        build_set(b, schema, "required", required);
    } else {
        json_decref(required);
    }
    return schema;
}
