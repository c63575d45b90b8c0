/* See openapi.h. */
#include "deploy/openapi.h"

#include <string.h>

/* As apimachinery reads a quantity; the same text is in every custom resource that holds pods. */
#define QUANTITY_PATTERN                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\" \
    ".[0-9]*)?)|(\\.[0-9]+))))?$"

/* Lists whose entries are known by these keys, as in the API of Kubernetes itself: each but the
 * first has a default. */
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

void openapi_put(struct openapi *api, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        api->failed = true;
    }
}

void openapi_append(struct openapi *api, json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0) {
        api->failed = true;
    }
}

json_t *openapi_object(void)
{
    return json_pack("{s:s}", "type", "object");
}

void openapi_rule(struct openapi *api, json_t *schema, const char *rule, const char *message)
{
    json_t *rules = json_object_get(schema, "x-kubernetes-validations");
    if (!rules) {
        openapi_put(api, schema, "x-kubernetes-validations", json_array());
        rules = json_object_get(schema, "x-kubernetes-validations");
    }
    openapi_append(api, rules, json_pack("{s:s, s:s}", "message", message, "rule", rule));
}

json_t *openapi_property(const json_t *schema, const char *name)
{
    return json_object_get(json_object_get(schema, "properties"), name);
}

static json_t *words(struct openapi *api, const char *list)
{
    json_t *found = json_array();
    while (*list) {
        size_t length = strcspn(list, " ");
        openapi_append(api, found, json_stringn(list, length));
        list += length + strspn(list + length, " ");
    }
    return found;
}

static json_t *text(struct openapi *api, const struct schema_field *field)
{
    json_t *schema = json_pack("{s:s}", "type", "string");
    if (field->form == SCHEMA_WORDS) {
        openapi_put(api, schema, "enum", words(api, field->words));
    } else if (field->required && field->form != SCHEMA_FREE) {
        openapi_put(api, schema, "minLength", json_integer(1));
    }
    return schema;
}

static json_t *integer(struct openapi *api, const struct schema_field *field)
{
    bool small = field->max <= INT32_MAX && field->min >= INT32_MIN;
    json_t *schema =
        json_pack("{s:s, s:s}", "type", "integer", "format", small ? "int32" : "int64");
    if (field->min > (small ? INT32_MIN : INT64_MIN)) {
        openapi_put(api, schema, "minimum", json_integer(field->min));
    }
    if (field->max < (small ? INT32_MAX : INT64_MAX)) {
        openapi_put(api, schema, "maximum", json_integer(field->max));
    }
    return schema;
}

static json_t *quantity(void)
{
    return json_pack("{s:b, s:[{s:s}, {s:s}], s:s}", "x-kubernetes-int-or-string", 1, "anyOf",
                     "type", "integer", "type", "string", "pattern", QUANTITY_PATTERN);
}

static json_t *map_of(struct openapi *api, json_t *values)
{
    json_t *schema = openapi_object();
    openapi_put(api, schema, "additionalProperties", values);
    return schema;
}

static json_t *list_of(struct openapi *api, json_t *items)
{
    json_t *schema = json_pack("{s:s}", "type", "array");
    openapi_put(api, schema, "items", items);
    return schema;
}

/* What tells the entries of a list apart must be there in each of them: required, or by default. */
static void name_entries(struct openapi *api, json_t *list, const struct schema_field *field)
{
    for (size_t i = 0; i < sizeof named_lists / sizeof named_lists[0]; i++) {
        if (named_lists[i].in != field->type || strcmp(named_lists[i].list, field->name) != 0) {
            continue;
        }
        const char *second = named_lists[i].second;
        json_t *keys = json_pack("[s]", named_lists[i].key);
        if (second) {
            openapi_append(api, keys, json_string(second));
            openapi_put(api, openapi_property(json_object_get(list, "items"), second), "default",
                        json_string(named_lists[i].second_default));
        }
        openapi_put(api, list, "x-kubernetes-list-type", json_string("map"));
        openapi_put(api, list, "x-kubernetes-list-map-keys", keys);
        return;
    }
    openapi_put(api, list, "x-kubernetes-list-type", json_string("atomic"));
}

static json_t *list(struct openapi *api, const struct schema_field *field)
{
    json_t *schema = list_of(api, openapi_type(api, field->of));
    name_entries(api, schema, field);
    return schema;
}

static json_t *field_schema(struct openapi *api, const struct schema_field *field)
{
    switch (field->kind) {
    case SCHEMA_ANY: return json_pack("{s:b}", "x-kubernetes-preserve-unknown-fields", 1);
    case SCHEMA_TEXT: return text(api, field);
    case SCHEMA_TEXTS: return list_of(api, json_pack("{s:s}", "type", "string"));
    case SCHEMA_TEXT_MAP: return map_of(api, json_pack("{s:s}", "type", "string"));
    case SCHEMA_INTEGER: return integer(api, field);
    case SCHEMA_BOOLEAN: return json_pack("{s:s}", "type", "boolean");
    case SCHEMA_QUANTITY: return quantity();
    case SCHEMA_QUANTITY_MAP: return map_of(api, quantity());
    case SCHEMA_OBJECT: return openapi_type(api, field->of);
    case SCHEMA_LIST: return list(api, field);
    }
    return NULL;
}

json_t *openapi_type(struct openapi *api, enum schema_type type)
{
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    json_t *schema = openapi_object();
    json_t *properties = json_object();
    json_t *required = json_array();
    for (size_t i = 0; i < count; i++) {
        if (fields[i].type == type) {
            openapi_put(api, properties, fields[i].name, field_schema(api, &fields[i]));
            if (fields[i].required) {
                openapi_append(api, required, json_string(fields[i].name));
            }
        }
    }
    openapi_put(api, schema, "properties", properties);
    if (json_array_size(required) > 0) {
        openapi_put(api, schema, "required", required);
    } else {
        json_decref(required);
    }
    return schema;
}
