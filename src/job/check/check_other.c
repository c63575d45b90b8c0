/* Checks what the schema cannot say about the objects that come with a job: ConfigMap, Secret and
 * PersistentVolumeClaim. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/quantity.h"
#include "job/check/context.h"
#include "job/text.h"

#include <string.h>

enum { KEY_BYTES_MAX = 253, DATA_BYTES_MAX = 1 << 20 };

/* The keys that the data of some types of Secrets must have. */
static const struct type {
    const char *type;
    const char *keys[2];
    bool any; /* one of the keys is enough */
} types[] = {
    {"kubernetes.io/tls", {"tls.crt", "tls.key"}, false},
    {"kubernetes.io/dockerconfigjson", {".dockerconfigjson", NULL}, false},
    {"kubernetes.io/dockercfg", {".dockercfg", NULL}, false},
    {"kubernetes.io/basic-auth", {"username", "password"}, true},
    {"kubernetes.io/ssh-auth", {"ssh-privatekey", NULL}, false},
};

static bool good_key(const char *key)
{
    size_t length = strnlen(key, KEY_BYTES_MAX + 1);
    return length > 0 && length <= KEY_BYTES_MAX && strcmp(key, ".") != 0 &&
           strcmp(key, "..") != 0 &&
           key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] ==
               '\0';
}

static void check_section(struct check *c, const json_t *object, const char *section, bool base64)
{
    const char *key;
    json_t *value;
    size_t mark = check_enter(c, section);
    json_object_foreach (json_object_get(object, section), key, value) {
        const char *text = json_string_value(value);
        if (!good_key(key)) {
            check_say(c, JOB_ERROR, key, NULL,
                      "a key must be made of letters, digits, '-', '_' and '.'");
        } else if (strncmp(key, "..", 2) == 0) {
            check_say(c, JOB_ERROR, key, NULL, "must not start with '..'");
        }
        if (base64 && text && !base64_is(text)) {
            check_say(c, JOB_ERROR, key,
                      strcmp(section, "data") == 0 ? "put plain text under stringData" : NULL,
                      "must be base64");
        }
    }
    check_leave(c, mark);
}

/* ---- config maps ---- */

static void check_key_is_once(struct check *c, const json_t *object)
{
    const char *key;
    json_t *value;
    size_t mark = check_enter(c, "data");
    json_object_foreach (json_object_get(object, "data"), key, value) {
        if (json_object_get(json_object_get(object, "binaryData"), key)) {
            check_say(c, JOB_ERROR, key, NULL, "the key is in binaryData, too");
        }
    }
    check_leave(c, mark);
}

/* Counts the bytes: four characters of base64 are three bytes. */
static size_t count_bytes(const json_t *section, bool base64)
{
    const char *key;
    json_t *value;
    size_t bytes = 0;
    json_object_foreach ((json_t *)section, key, value) {
        const char *text = json_string_value(value);
        size_t length = json_string_length(value);
        size_t padding = 0;
        while (base64 && padding < length && text[length - 1 - padding] == '=') {
            padding++;
        }
        bytes += base64 ? length / 4 * 3 - padding : length;
    }
    return bytes;
}

static void check_size(struct check *c, const char *path, size_t bytes)
{
    if (bytes > DATA_BYTES_MAX) {
        check_say(c, JOB_ERROR, path, NULL, "too long: may not be more than %d bytes",
                  DATA_BYTES_MAX);
        check_reason(c, "FieldValueTooLong");
    }
}

void check_config_map(struct check *c, const json_t *object)
{
    check_section(c, object, "data", false);
    check_section(c, object, "binaryData", true);
    check_key_is_once(c, object);
    check_size(c, NULL,
               count_bytes(json_object_get(object, "data"), false) +
                   count_bytes(json_object_get(object, "binaryData"), true));
}

/* ---- secrets ---- */

static bool has_key(const json_t *secret, const char *key)
{
    return json_object_get(json_object_get(secret, "data"), key) ||
           json_object_get(json_object_get(secret, "stringData"), key);
}

static void check_keys(struct check *c, const json_t *secret, const struct type *type)
{
    const char *const *keys = type->keys;
    bool fits = type->any && (has_key(secret, keys[0]) || has_key(secret, keys[1]));
    size_t mark = check_enter(c, "data");
    for (size_t i = 0; !fits && i < 2 && keys[i]; i++) {
        if (!has_key(secret, keys[i])) {
            check_say(c, JOB_ERROR, keys[i], NULL, "is missing in a Secret of type %s", type->type);
            check_reason(c, "FieldValueRequired");
        }
    }
    check_leave(c, mark);
}

/* Checks a file with passwords of registries, which must be JSON to be readable. The message does
 * not repeat its content. */
static void check_registries(struct check *c, const json_t *secret, const char *key)
{
    const char *plain = json_string_value(json_object_get(doc_at(secret, "stringData"), key));
    const char *encoded = json_string_value(json_object_get(doc_at(secret, "data"), key));
    muster_auto(free) char *bytes = NULL;
    size_t count = 0;
    bool given = plain || (encoded && base64_is(encoded));
    if (!plain && given && base64_decode(encoded, &bytes, &count, NULL) < 0) {
        return;
    }
    json_t *parsed = given ? json_loads(plain ? plain : bytes, 0, NULL) : NULL;
    if (given && !parsed) {
        size_t mark = check_enter(c, "data");
        check_say(c, JOB_ERROR, key, NULL, "must be JSON");
        check_leave(c, mark);
    }
    json_decref(parsed);
}

void check_secret(struct check *c, const json_t *object)
{
    const char *name = doc_text(object, "type", "");
    check_section(c, object, "data", true);
    check_section(c, object, "stringData", false);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].type, name) == 0) {
            check_keys(c, object, &types[i]);
            if (strncmp(types[i].keys[0], ".docker", 7) == 0) {
                check_registries(c, object, types[i].keys[0]);
            }
        }
    }
    check_size(c, "data",
               count_bytes(json_object_get(object, "data"), true) +
                   count_bytes(json_object_get(object, "stringData"), false));
}

/* ---- claims ---- */

static void check_storage(struct check *c, const json_t *spec)
{
    const json_t *storage = doc_at(spec, "resources.requests.storage");
    double bytes = json_number_value(storage);
    if (json_is_string(storage) && !quantity_read(json_string_value(storage), &bytes)) {
        return; /* already reported */
    }
    size_t mark = check_enter(c, "resources");
    if (!storage) {
        check_required(c, "storage", "add resources: {requests: {storage: 1Gi}}",
                       "requests no storage");
    } else if (bytes == 0) {
        check_enter(c, "requests");
        check_say(c, JOB_ERROR, "storage", NULL, "must be greater than zero");
    }
    check_leave(c, mark);
}

static void check_class(struct check *c, const json_t *spec)
{
    const char *name = doc_text(spec, "storageClassName", "");
    const char *fault = *name ? job_text_fault(SCHEMA_SUBDOMAIN, name) : NULL;
    if (fault) {
        check_say(c, JOB_ERROR, "storageClassName", NULL, "\"%.80s\" %s", name, fault);
    }
}

/* `object` has a spec like that of a PersistentVolumeClaim: it is a claim itself, or a template of
 * a claim. */
void check_claim(struct check *c, const json_t *object)
{
    static const char modes[] = "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod";
    const json_t *spec = json_object_get(object, "spec");
    const json_t *access = json_object_get(spec, "accessModes");
    bool once_per_pod = false;
    size_t index;
    json_t *mode;
    if (!json_is_object(spec)) {
        return; /* already reported */
    }
    size_t top = check_enter(c, "spec");
    if (json_array_size(access) == 0) {
        check_required(c, "accessModes", "add accessModes: [ReadWriteOnce]", "is missing");
    }
    size_t mark = check_enter(c, "accessModes");
    json_array_foreach (access, index, mode) {
        if (json_is_string(mode)) {
            size_t item = check_enter_index(c, index);
            check_choice(c, json_string_value(mode), modes);
            once_per_pod = once_per_pod || strcmp(json_string_value(mode), "ReadWriteOncePod") == 0;
            check_leave(c, item);
        }
    }
    check_leave(c, mark);
    if (once_per_pod && json_array_size(access) > 1) {
        check_say(c, JOB_ERROR, "accessModes", NULL,
                  "may not use ReadWriteOncePod with other access modes");
        check_reason(c, "FieldValueForbidden");
    }
    check_storage(c, spec);
    check_class(c, spec);
    check_leave(c, top);
}
