/* The kinds of resources.def and the paths of their objects. Pure. */
#include "base/buf.h"
#include "kube/internal.h"

#include <string.h>
#include <strings.h>

enum { PATH_BYTES_MAX = 64 << 10 };

const struct kube_resource kube_resources[] = {
#define IN_GROUP(group, core, prefix) (sizeof(group) == 1 ? core : prefix group "/v1")
#define RESOURCE(group, plural, singular, kind, short_name, aliases, namespaced, ...)              \
    {plural,                                                                                       \
     singular,                                                                                     \
     kind,                                                                                         \
     IN_GROUP(group, "/api/v1", "/apis/"),                                                         \
     IN_GROUP(group, "v1", ""),                                                                    \
     short_name " " aliases,                                                                       \
     namespaced},
#include "base/resources.def"
#undef RESOURCE
#undef IN_GROUP
};
const size_t kube_resource_count = sizeof kube_resources / sizeof kube_resources[0];

static bool among(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && strncasecmp(at, name, length) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

const struct kube_resource *kube_resource_find(const char *name)
{
    for (size_t i = 0; i < kube_resource_count; i++) {
        const struct kube_resource *r = &kube_resources[i];
        if (!strcasecmp(r->plural, name) || !strcasecmp(r->singular, name) ||
            among(r->aliases, name)) {
            return r;
        }
    }
    return NULL;
}

const struct kube_resource *kube_resource_of(const json_t *object)
{
    const char *kind = doc_text(object, "kind", "");
    const char *version = doc_text(object, "apiVersion", "");
    const struct kube_resource *first = NULL;
    for (size_t i = 0; i < kube_resource_count; i++) {
        const struct kube_resource *r = &kube_resources[i];
        if (strcmp(r->kind, kind) == 0 && strcmp(r->api_version, version) == 0) {
            return r;
        }
        first = !first && strcmp(r->kind, kind) == 0 ? r : first;
    }
    return first;
}

static void add_encoded(struct buf *out, const char *text)
{
    char *encoded = curl_easy_escape(NULL, text, 0);
    buf_text(out, encoded ? encoded : "");
    curl_free(encoded);
}

static void add_parameter(struct buf *out, char *separator, const char *name, const char *value)
{
    if (value) {
        buf_format(out, "%c%s=", *separator, name);
        add_encoded(out, value);
        *separator = '&';
    }
}

static void add_query(struct buf *out, const struct kube_query *query)
{
    char separator = '?';
    add_parameter(out, &separator, "labelSelector", query->labels);
    add_parameter(out, &separator, "fieldSelector", query->fields);
    if (query->more) {
        buf_format(out, "%c%s", separator, query->more);
    }
}

char *kube_muster_path(const char *first, ...)
{
    struct buf out;
    va_list parts;
    buf_init(&out, PATH_BYTES_MAX);
    buf_text(&out, "/muster/v1");
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *)) {
        buf_text(&out, "/");
        add_encoded(&out, part);
    }
    va_end(parts);
    return buf_steal(&out);
}

char *kube_path_with(const char *path, const struct kube_query *query)
{
    struct buf out;
    buf_init(&out, PATH_BYTES_MAX);
    buf_text(&out, path);
    add_query(&out, query);
    return buf_steal(&out);
}

char *kube_path(const struct kube_ref *ref, const struct kube_query *query)
{
    struct buf out;
    buf_init(&out, PATH_BYTES_MAX);
    buf_text(&out, ref->resource->prefix);
    if (ref->namespace && ref->resource->namespaced) {
        buf_text(&out, "/namespaces/");
        add_encoded(&out, ref->namespace);
    }
    buf_format(&out, "/%s", ref->resource->plural);
    if (ref->name) {
        buf_text(&out, "/");
        add_encoded(&out, ref->name);
    }
    if (ref->subresource) {
        buf_format(&out, "/%s", ref->subresource);
    }
    if (query) {
        add_query(&out, query);
    }
    return buf_steal(&out);
}
