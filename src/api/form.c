/* See form.h. Source: k8s.io/apiserver, negotiation and transformation of responses. */
#include "api/form.h"

#include "api/shape/shape.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CLAUSE_BYTES_MAX = 256 };

/* ---- what the client wants ---- */

static bool is_json(const char *type)
{
    return strcasecmp(type, "application/json") == 0 || strcmp(type, "*/*") == 0 ||
           strcasecmp(type, "application/*") == 0;
}

/* For a word such as "as=Table": returns the value if the parameter has this name, else `value`. */
static const char *take_parameter(const char *word, const char *name, const char *value)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : value;
}

static int find_kind(const char *as, enum form_kind *ret)
{
    static const char *const kinds[] = {[FORM_WHOLE] = "",
                                        [FORM_METADATA] = "PartialObjectMetadata",
                                        [FORM_METADATA_LIST] = "PartialObjectMetadataList",
                                        [FORM_TABLE] = "Table"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], as) == 0) {
            *ret = (enum form_kind)i;
            return 0;
        }
    }
    return MUSTER_ENOENT;
}

/* Reads one clause such as `application/json;as=Table;v=v1;g=meta.k8s.io`, and destroys its
 * text. */
static bool take_clause(char *clause, struct form *ret)
{
    char *rest = NULL;
    const char *as = "";
    const char *group = "";
    const char *version = "";
    const char *type = strtok_r(clause, "; ", &rest);
    if (!type || !is_json(type)) {
        return false;
    }
    for (const char *word; (word = strtok_r(NULL, "; ", &rest));) {
        as = take_parameter(word, "as", as);
        group = take_parameter(word, "g", group);
        version = take_parameter(word, "v", version);
    }
    bool is_v1 = strcmp(version, "v1") == 0;
    if (find_kind(as, &ret->kind) < 0) {
        return false;
    }
    ret->api_version = is_v1 ? "meta.k8s.io/v1" : "meta.k8s.io/v1beta1";
    return ret->kind == FORM_WHOLE ||
           ((is_v1 || strcmp(version, "v1beta1") == 0) && strcmp(group, "meta.k8s.io") == 0);
}

static bool take_accepted(const char *accept, struct form *ret)
{
    const char *at = accept;
    if (!at || !*at) {
        return true;
    }
    while (*at) {
        const char *end = strchrnul(at, ',');
        char clause[CLAUSE_BYTES_MAX];
        if ((size_t)(end - at) < sizeof clause) {
            memcpy(clause, at, (size_t)(end - at));
            clause[end - at] = '\0';
            if (take_clause(clause, ret)) {
                return true;
            }
        }
        at = *end ? end + 1 : end;
    }
    return false;
}

static int take_rows(const char *include, struct form *ret, struct muster_err *err)
{
    static const char *const words[] = {
        [ROWS_METADATA] = "Metadata", [ROWS_OBJECT] = "Object", [ROWS_NONE] = "None"};
    if (ret->kind != FORM_TABLE || !include || !*include) {
        return 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], include) == 0) {
            ret->rows = (enum table_rows)i;
            return 0;
        }
    }
    return muster_fail(err, MUSTER_EINVAL,
                       "Unable to convert to Table as requested: includeObject: Invalid value: "
                       "\"%.40s\": must be 'Metadata', 'Object', 'None', or empty",
                       include);
}

int form_read(const struct http_request *request, bool is_list, struct form *ret,
              struct muster_err *err)
{
    *ret = (struct form){0};
    if (!take_accepted(http_header(request, "Accept"), ret)) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "only the following media types are accepted: application/json");
    }
    if (ret->kind == FORM_METADATA && is_list) {
        return muster_fail(
            err, MUSTER_EUNSUPPORTED,
            "you requested PartialObjectMetadata, but the requested object is a list");
    }
    if (ret->kind == FORM_METADATA_LIST && !is_list) {
        return muster_fail(
            err, MUSTER_EUNSUPPORTED,
            "you requested PartialObjectMetadataList, but the requested object is not a list");
    }
    return take_rows(http_query(request, "includeObject"), ret, err);
}

/* ---- what it gets ---- */

json_t *form_object(const struct form *form, const struct resource *resource, json_t *object)
{
    if (form->kind == FORM_WHOLE) {
        return shape_show(resource->shape, object);
    }
    if (form->kind != FORM_TABLE) {
        return table_partial(form->api_version, object);
    }
    muster_auto(doc) json_t *items = json_pack("[O]", object);
    muster_auto(doc) json_t *meta =
        json_pack("{s:s}", "resourceVersion", doc_text(object, "metadata.resourceVersion", ""));
    return items && meta ? form_list(form, resource, items, meta) : NULL;
}

static json_t *metadata_of_all(const struct form *form, const json_t *items)
{
    struct build b = {0};
    json_t *list = build_value(&b, json_array());
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        build_add(&b, list, table_partial(form->api_version, item));
    }
    return build_end(&b, list);
}

json_t *form_list(const struct form *form, const struct resource *resource, json_t *items,
                  json_t *meta)
{
    if (form->kind == FORM_TABLE) {
        return table_make(form->api_version, form->rows, resource, items, meta);
    }
    struct build b = {0};
    char kind[64];
    bool whole = form->kind == FORM_WHOLE;
    (void)snprintf(kind, sizeof kind, "%sList", whole ? resource->kind : "PartialObjectMetadata");
    json_t *list = build_value(&b, json_object());
    build_text(&b, list, "kind", kind);
    build_text(&b, list, "apiVersion", whole ? resource->api_version : form->api_version);
    build_set(&b, list, "metadata", meta ? json_incref(meta) : json_object());
    build_set(&b, list, "items",
              whole ? shape_show_all(resource->shape, items) : metadata_of_all(form, items));
    return build_end(&b, list);
}

json_t *form_bookmark(const struct form *form, const struct resource *resource, const char *version)
{
    bool whole = form->kind == FORM_WHOLE;
    return json_pack("{s:s, s:s, s:{s:s}}", "kind",
                     whole ? resource->kind : "PartialObjectMetadata", "apiVersion",
                     whole ? resource->api_version : form->api_version, "metadata",
                     "resourceVersion", version);
}
