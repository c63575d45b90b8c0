/* See sources.h. Messages are the kubelet's (CreateContainerConfigError). */
#include "pod/sources.h"

#include "base/doc.h"
#include "base/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 1 << 20, KEY_BYTES_MAX = 256 };

/* The two kinds of object that have keys. */
struct store {
    const char *word;   /* its name in messages */
    const char *binary; /* the field whose values are base64 */
    const char *plain;
    bool secret;
};

static const struct store config_map = {"configmap", "binaryData", "data", false};
static const struct store secret = {"secret", "data", "stringData", true};

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Returns false if it is not base64, or has bytes that no variable can hold. */
static bool decode(const char *text, struct buf *out)
{
    unsigned bits = 0;
    int held = 0;
    for (; *text && *text != '='; text++) {
        int value = base64_value(*text);
        if (value < 0 && isspace((unsigned char)*text)) {
            continue;
        }
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (unsigned)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            char byte = (char)(bits >> held & 0xff);
            if (byte == '\0') {
                return false;
            }
            buf_add(out, &byte, 1);
        }
    }
    return true;
}

static const json_t *find_store(const struct pod_sources *sources, const struct store *kind,
                                const char *name)
{
    return json_object_get(kind->secret ? sources->secrets : sources->config_maps, name);
}

/* Returns 1: appended; 0: no such key; negative: its bytes are not text. */
static int append_key(const struct store *kind, const json_t *object, const char *key,
                      struct buf *out, struct muster_err *err)
{
    const json_t *plain = json_object_get(doc_at(object, kind->plain), key);
    if (json_is_string(plain)) {
        buf_text(out, json_string_value(plain));
        return 1;
    }
    const json_t *encoded = json_object_get(doc_at(object, kind->binary), key);
    if (!json_is_string(encoded)) {
        return 0;
    }
    if (!decode(json_string_value(encoded), out)) {
        return muster_fail(err, MUSTER_EDATA, "key %s of %s %s is not text in base64", key,
                           kind->word, doc_text(object, "metadata.name", ""));
    }
    return 1;
}

static int from_key(const struct source_scope *scope, const struct store *kind,
                    const json_t *selector, struct buf *out, struct muster_err *err)
{
    const char *name = doc_text(selector, "name", "");
    const char *key = doc_text(selector, "key", "");
    bool optional = doc_bool(selector, "optional", false);
    const json_t *object = find_store(scope->sources, kind, name);
    if (!object) {
        return optional ? 0
                        : muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", kind->word, name);
    }
    int r = append_key(kind, object, key, out, err);
    if (r != 0 || optional) {
        return r;
    }
    return muster_fail(err, MUSTER_ENOENT, "couldn't find key %s in %s %s/%s", key,
                       kind->secret ? "Secret" : "ConfigMap",
                       doc_text(scope->pod, "metadata.namespace", "default"), name);
}

/* Copies "x" of "metadata.labels['x']"; returns false if `path` does not have that form. */
static bool subscript(const char *path, const char *field, char ret_key[KEY_BYTES_MAX])
{
    size_t length = strlen(field);
    if (strncmp(path, field, length) != 0 || strncmp(path + length, "['", 2) != 0) {
        return false;
    }
    const char *start = path + length + 2;
    const char *end = strstr(start, "']");
    if (!end || end[2] || end - start >= KEY_BYTES_MAX) {
        return false;
    }
    snprintf(ret_key, KEY_BYTES_MAX, "%.*s", (int)(end - start), start);
    return true;
}

static const char *plain_field(const struct source_scope *scope, const char *path)
{
    const struct pod_sources *s = scope->sources;
    if (strcmp(path, "metadata.name") == 0 || strcmp(path, "metadata.uid") == 0) {
        return doc_text(scope->pod, path, "");
    }
    if (strcmp(path, "metadata.namespace") == 0) {
        return doc_text(scope->pod, path, "default");
    }
    if (strcmp(path, "spec.serviceAccountName") == 0) {
        return doc_text(scope->pod, path, "default");
    }
    const struct {
        const char *path, *value;
    } places[] = {{"spec.nodeName", s->node_name},
                  {"status.hostIP", s->host_ip},
                  {"status.hostIPs", s->host_ip},
                  {"status.podIP", s->pod_ip},
                  {"status.podIPs", s->pod_ip}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(path, places[i].path) == 0) {
            return places[i].value ? places[i].value : "";
        }
    }
    return NULL;
}

static int from_field(const struct source_scope *scope, const json_t *selector, struct buf *out,
                      struct muster_err *err)
{
    const char *path = doc_text(selector, "fieldPath", "");
    char key[KEY_BYTES_MAX];
    const char *value = plain_field(scope, path);
    if (!value && subscript(path, "metadata.labels", key)) {
        const json_t *labels = doc_at(scope->pod, "metadata.labels");
        value = json_string_value(json_object_get(labels, key));
        value = value ? value : "";
    } else if (!value && subscript(path, "metadata.annotations", key)) {
        const json_t *annotations = doc_at(scope->pod, "metadata.annotations");
        value = json_string_value(json_object_get(annotations, key));
        value = value ? value : "";
    }
    if (!value) {
        return muster_fail(err, MUSTER_EDATA, "fieldRef: no such field of a pod: %s", path);
    }
    buf_text(out, value);
    return 1;
}

static const json_t *container_named(const struct source_scope *scope, const char *name)
{
    const json_t *found = doc_find(doc_at(scope->pod, "spec.containers"), "name", name);
    return found ? found : scope->container;
}

/* A quantity may be written as a number. */
static int64_t quantity_at(const json_t *list, const char *name)
{
    const json_t *value = json_object_get(list, name);
    if (json_is_integer(value)) {
        json_int_t whole = json_integer_value(value);
        return 0 <= whole && whole < INT64_MAX / 1000 ? whole * 1000 : -1;
    }
    return json_is_string(value) ? quantity_milli(json_string_value(value)) : -1;
}

static int64_t node_milli(const struct pod_sources *s, const char *name)
{
    if (strcmp(name, "cpu") == 0) {
        return s->node_cpu_milli;
    }
    bool fits = s->node_memory_bytes < INT64_MAX / 1000;
    return strcmp(name, "memory") == 0 && fits ? s->node_memory_bytes * 1000 : 0;
}

/* Appends limits.x or requests.x in whole units of the divisor, rounded up. A limit that is not set
 * is the node's amount; a request that is not set is the limit. */
static int from_resource(const struct source_scope *scope, const json_t *selector, struct buf *out,
                         struct muster_err *err)
{
    const char *resource = doc_text(selector, "resource", "");
    const char *dot = strchr(resource, '.');
    bool limit = strncmp(resource, "limits.", 7) == 0;
    if (!dot || (!limit && strncmp(resource, "requests.", 9) != 0)) {
        return muster_fail(err, MUSTER_EDATA, "resourceFieldRef: no such resource: %s", resource);
    }
    const char *name = dot + 1;
    const json_t *container = container_named(scope, doc_text(selector, "containerName", ""));
    const json_t *limits = doc_at(container, "resources.limits");
    int64_t value = limit ? -1 : quantity_at(doc_at(container, "resources.requests"), name);
    value = value < 0 ? quantity_at(limits, name) : value;
    value = value < 0 ? (limit ? node_milli(scope->sources, name) : 0) : value;
    int64_t divisor = quantity_at(selector, "divisor");
    divisor = divisor > 0 ? divisor : 1000;
    buf_format(out, "%lld", (long long)(value / divisor + (value % divisor != 0)));
    return 1;
}

int pod_value_from(const struct source_scope *scope, const json_t *from, struct buf *out,
                   struct muster_err *err)
{
    const json_t *selector;
    if ((selector = doc_at(from, "configMapKeyRef"))) {
        return from_key(scope, &config_map, selector, out, err);
    }
    if ((selector = doc_at(from, "secretKeyRef"))) {
        return from_key(scope, &secret, selector, out, err);
    }
    if ((selector = doc_at(from, "fieldRef"))) {
        return from_field(scope, selector, out, err);
    }
    if ((selector = doc_at(from, "resourceFieldRef"))) {
        return from_resource(scope, selector, out, err);
    }
    return muster_fail(err, MUSTER_EDATA,
                       "valueFrom: has none of configMapKeyRef, secretKeyRef, fieldRef, "
                       "resourceFieldRef");
}

/* Whether the key can be a name of a variable: other keys are skipped, as a kubelet does. */
static bool is_name(const char *key)
{
    return *key && !isdigit((unsigned char)*key) && !strpbrk(key, "= \t\n");
}

static int add_keys(const struct store *kind, const json_t *object, const char *field,
                    const char *prefix, json_t *env, struct muster_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (doc_at(object, field), key, value) {
        char name[2 * KEY_BYTES_MAX];
        int length = snprintf(name, sizeof name, "%s%s", prefix, key);
        if (length >= (int)sizeof name || !is_name(name)) {
            continue;
        }
        struct buf text;
        buf_init(&text, VALUE_BYTES_MAX);
        int r = append_key(kind, object, key, &text, err);
        if (r >= 0) {
            r = json_object_set_new(env, name, json_string(buf_str(&text))) == 0
                    ? 0
                    : muster_fail(err, MUSTER_EDATA, "key %s of %s %s is not text", key, kind->word,
                                  doc_text(object, "metadata.name", ""));
        }
        buf_done(&text);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int pod_env_from(const struct source_scope *scope, const json_t *source, json_t *env,
                 struct muster_err *err)
{
    const json_t *reference = doc_at(source, "configMapRef");
    const struct store *kind = reference ? &config_map : &secret;
    reference = reference ? reference : doc_at(source, "secretRef");
    const char *name = doc_text(reference, "name", "");
    const json_t *object = find_store(scope->sources, kind, name);
    if (!object) {
        bool optional = doc_bool(reference, "optional", false);
        return optional ? 0
                        : muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", kind->word, name);
    }
    const char *prefix = doc_text(source, "prefix", "");
    int r = add_keys(kind, object, kind->binary, prefix, env, err);
    return r < 0 ? r : add_keys(kind, object, kind->plain, prefix, env, err);
}
