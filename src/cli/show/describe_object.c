/* Any object as a tree of labels and values; see describe.h. */
#include "cli/show/describe.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/show/describe_parts.h"
#include "cli/show/event_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 128, VALUE_BYTES = 2048, NOTE_BYTES_MAX = 140, DEPTH_MAX = 64 };

static void put_value(struct columns *c, int level, const char *label, const json_t *value);

void describe_label(const char *key, char *ret, size_t size)
{
    static const char *const all_capitals[] = {"api", "id", "ip", "uid", "url", "ttl", "cpu"};
    size_t used = 0;
    for (const char *at = key; *at && used + 2 < size;) {
        /* A word ends before a capital that follows a small letter or a digit. */
        size_t length = 1;
        while (at[length] &&
               !(isupper((unsigned char)at[length]) && !isupper((unsigned char)at[length - 1]))) {
            length++;
        }
        if (used > 0) {
            ret[used++] = ' ';
        }
        bool capitals = false;
        for (size_t i = 0; i < sizeof all_capitals / sizeof all_capitals[0]; i++) {
            capitals |=
                strlen(all_capitals[i]) == length && strncasecmp(all_capitals[i], at, length) == 0;
        }
        for (size_t i = 0; i < length && used + 1 < size; i++) {
            ret[used++] = (char)(i == 0 || capitals ? toupper((unsigned char)at[i]) : at[i]);
        }
        at += length;
    }
    ret[used] = '\0';
}

static void scalar_text(const json_t *value, char *ret, size_t size)
{
    if (json_is_string(value)) {
        snprintf(ret, size, "%s", json_string_value(value));
    } else if (json_is_integer(value)) {
        snprintf(ret, size, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(ret, size, "%g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(ret, size, "%s", json_is_true(value) ? "true" : "false");
    } else {
        snprintf(ret, size, "<nil>");
    }
}

static void put_fields(struct columns *c, int level, const json_t *object, const char *const *skip)
{
    size_t count = 0;
    const char **keys = doc_keys(object, &count);
    for (size_t i = 0; i < count; i++) {
        bool skipped = false;
        for (const char *const *s = skip; s && *s; s++) {
            skipped |= strcmp(*s, keys[i]) == 0;
        }
        if (!skipped) {
            char label[LABEL_BYTES];
            describe_label(keys[i], label, sizeof label);
            put_value(c, level, label, json_object_get(object, keys[i]));
        }
    }
    free(keys);
}

static void put_items(struct columns *c, int level, const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach (array, i, item) {
        char text[VALUE_BYTES];
        if (json_is_object(item)) {
            put_fields(c, level, item, NULL);
        } else {
            scalar_text(item, text, sizeof text);
            columns_text(c, level, text);
        }
    }
}

static void put_value(struct columns *c, int level, const char *label, const json_t *value)
{
    if (level > DEPTH_MAX) {
        return;
    }
    if (json_is_object(value)) {
        columns_line(c, level, label, NULL);
        put_fields(c, level + 1, value, NULL);
    } else if (json_is_array(value)) {
        columns_line(c, level, label, NULL);
        put_items(c, level + 1, value);
    } else {
        char text[VALUE_BYTES];
        scalar_text(value, text, sizeof text);
        columns_line(c, level, label, text);
    }
}

void describe_map(struct columns *c, const char *label, const json_t *map, const char *separator)
{
    size_t count = 0;
    const char **keys = doc_keys(map, &count);
    if (count == 0) {
        columns_line(c, 0, label, "<none>");
    }
    for (size_t i = 0; i < count; i++) {
        char value[VALUE_BYTES];
        scalar_text(json_object_get(map, keys[i]), value, sizeof value);
        char text[VALUE_BYTES + LABEL_BYTES];
        bool cut = strlen(value) > NOTE_BYTES_MAX;
        snprintf(text, sizeof text, "%s%s%.*s%s", keys[i], separator,
                 cut ? NOTE_BYTES_MAX : (int)sizeof value, value, cut ? "..." : "");
        if (i == 0) {
            columns_line(c, 0, label, text);
        } else {
            columns_more(c, text);
        }
    }
    free(keys);
}

/* Prints the metadata, with selfLink, the object's path, because the servers from which the seeds
 * come still sent it. */
static void put_metadata(struct columns *c, const json_t *object)
{
    static const char *const shown_above[] = {"name",        "namespace",     "labels",
                                              "annotations", "managedFields", NULL};
    muster_auto(doc) json_t *metadata = json_copy(doc_at(object, "metadata"));
    const char *version = doc_text(object, "apiVersion", "v1");
    char plural[LABEL_BYTES];
    snprintf(plural, sizeof plural, "%ss", doc_text(object, "kind", ""));
    for (char *p = plural; *p; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    json_object_set_new(metadata, "selfLink",
                        json_sprintf("/%s/%s/namespaces/%s/%s/%s",
                                     strchr(version, '/') ? "apis" : "api", version,
                                     doc_text(metadata, "namespace", "default"), plural,
                                     doc_text(metadata, "name", "")));
    columns_line(c, 0, "Metadata", NULL);
    put_fields(c, 1, metadata, shown_above);
}

void describe_events(struct columns *c, const json_t *events, int64_t now_unix_ms)
{
    if (json_array_size(events) == 0) {
        columns_line(c, 0, "Events", "<none>");
        return;
    }
    columns_line(c, 0, "Events", NULL);
    event_list_describe(events, now_unix_ms, c->out);
}

void describe_head(struct columns *c, const json_t *object)
{
    columns_line(c, 0, "Name", doc_text(object, "metadata.name", ""));
    columns_line(c, 0, "Namespace", doc_text(object, "metadata.namespace", ""));
}

void describe_object(const json_t *object, const json_t *events, int64_t now_unix_ms,
                     struct buf *out)
{
    static const char *const shown_above[] = {"apiVersion", "kind", "metadata", NULL};
    struct columns c;
    columns_init(&c, out);
    describe_head(&c, object);
    describe_map(&c, "Labels", doc_at(object, "metadata.labels"), "=");
    describe_map(&c, "Annotations", doc_at(object, "metadata.annotations"), ": ");
    columns_line(&c, 0, "API Version", doc_text(object, "apiVersion", ""));
    columns_line(&c, 0, "Kind", doc_text(object, "kind", ""));
    put_metadata(&c, object);
    put_fields(&c, 0, object, shown_above);
    describe_events(&c, events, now_unix_ms);
    columns_done(&c);
}
