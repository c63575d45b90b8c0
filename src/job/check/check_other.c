/* What the schema cannot say about the objects that come with a job: ConfigMap, Secret and
 * PersistentVolumeClaim. */
#include "base/doc.h"
#include "job/check/context.h"

#include <string.h>

enum { KEY_BYTES_MAX = 253 };

static bool good_key(const char *key)
{
    size_t length = strnlen(key, KEY_BYTES_MAX + 1);
    return length > 0 && length <= KEY_BYTES_MAX && strcmp(key, ".") != 0 &&
           strcmp(key, "..") != 0 &&
           key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] ==
               '\0';
}

/* RFC 4648, with its padding; line ends are passed over, as Go's decoder does. */
static bool is_base64(const char *text)
{
    size_t letters = 0, padding = 0;
    for (const char *at = text; *at; at++) {
        bool letter = (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') ||
                      (*at >= '0' && *at <= '9') || *at == '+' || *at == '/';
        if (*at == '=') {
            padding++;
        } else if (letter && padding == 0) {
            letters++;
        } else if (*at != '\n' && *at != '\r') {
            return false;
        }
    }
    return padding <= 2 && (letters + padding) % 4 == 0;
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
        }
        if (base64 && text && !is_base64(text)) {
            check_say(c, JOB_ERROR, key,
                      strcmp(section, "data") == 0 ? "put plain text under stringData" : NULL,
                      "must be base64");
        }
    }
    check_leave(c, mark);
}

void check_config_map(struct check *c, const json_t *object)
{
    check_section(c, object, "data", false);
    check_section(c, object, "binaryData", true);
}

void check_secret(struct check *c, const json_t *object)
{
    check_section(c, object, "data", true);
    check_section(c, object, "stringData", false);
}

/* `object` has a spec as a PersistentVolumeClaim has: a claim itself, or a template of one. */
void check_claim(struct check *c, const json_t *object)
{
    static const char modes[] = "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod";
    const json_t *spec = json_object_get(object, "spec");
    const json_t *access = json_object_get(spec, "accessModes");
    size_t index;
    json_t *mode;
    if (!json_is_object(spec)) {
        return; /* said already */
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
            check_leave(c, item);
        }
    }
    check_leave(c, mark);
    if (!doc_at(spec, "resources.requests.storage")) {
        check_say(c, JOB_WARNING, "resources", "add resources: {requests: {storage: 1Gi}}",
                  "requests no storage; a cluster refuses the claim");
    }
    check_leave(c, top);
}
