/* See doc.h. */
#include "base/doc.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES_MAX = 256, FLAGS_PRINT = JSON_COMPACT | JSON_ENCODE_ANY };

/* Copies the part of `path` up to the next dot into `key` and returns the rest, or NULL at the
 * end. */
static const char *next_key(const char *path, char key[KEY_BYTES_MAX])
{
    const char *dot = strchrnul(path, '.');
    size_t length = (size_t)(dot - path);
    assert(length > 0 && length < KEY_BYTES_MAX);
    memcpy(key, path, length);
    key[length] = '\0';
    return *dot ? dot + 1 : NULL;
}

static json_t *child(const json_t *doc, const char *key)
{
    if (json_is_array(doc)) {
        char *end;
        unsigned long index = strtoul(key, &end, 10);
        return *end ? NULL : json_array_get(doc, index);
    }
    return json_object_get(doc, key);
}

json_t *doc_at(const json_t *doc, const char *path)
{
    const json_t *at = doc;
    for (const char *rest = path; rest && at;) {
        char key[KEY_BYTES_MAX];
        rest = next_key(rest, key);
        at = child(at, key);
    }
    return json_is_null(at) ? NULL : (json_t *)at;
}

const char *doc_text(const json_t *doc, const char *path, const char *fallback)
{
    const json_t *value = doc_at(doc, path);
    return json_is_string(value) ? json_string_value(value) : fallback;
}

int64_t doc_int(const json_t *doc, const char *path, int64_t fallback)
{
    const json_t *value = doc_at(doc, path);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : fallback;
}

bool doc_bool(const json_t *doc, const char *path, bool fallback)
{
    const json_t *value = doc_at(doc, path);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

json_t *doc_find(const json_t *list, const char *path, const char *text)
{
    size_t i;
    json_t *each;
    json_array_foreach (list, i, each) {
        const char *found = doc_text(each, path, NULL);
        if (found && strcmp(found, text) == 0) {
            return each;
        }
    }
    return NULL;
}

bool doc_has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *each;
    json_array_foreach (list, i, each) {
        if (json_is_string(each) && strcmp(json_string_value(each), text) == 0) {
            return true;
        }
    }
    return false;
}

static int compare_elements(const void *left, const void *right, void *compare)
{
    int (**by)(const json_t *a, const json_t *b) = compare;
    return (*by)(*(const json_t *const *)left, *(const json_t *const *)right);
}

json_t *doc_sorted(const json_t *list, int (*compare)(const json_t *a, const json_t *b))
{
    size_t count = json_array_size(list);
    muster_auto(doc) json_t *sorted = json_array();
    muster_auto(free) json_t **elements = calloc(count + 1, sizeof *elements);
    if (!sorted || !elements) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        elements[i] = json_array_get(list, i);
    }
    qsort_r(elements, count, sizeof *elements, compare_elements, &compare);
    for (size_t i = 0; i < count; i++) {
        if (json_array_append(sorted, elements[i]) < 0) {
            return NULL;
        }
    }
    return muster_take(sorted);
}

int doc_compare_versions(const json_t *a, const json_t *b)
{
    long long va = strtoll(doc_text(a, "metadata.resourceVersion", "0"), NULL, 10);
    long long vb = strtoll(doc_text(b, "metadata.resourceVersion", "0"), NULL, 10);
    return (va > vb) - (va < vb);
}

int doc_set(json_t *doc, const char *path, json_t *value)
{
    assert(json_is_object(doc));
    char key[KEY_BYTES_MAX];
    const char *rest = next_key(path, key);
    while (rest) {
        json_t *next = json_object_get(doc, key);
        if (!json_is_object(next)) {
            next = json_object();
            if (json_object_set_new(doc, key, next) != 0) {
                json_decref(value);
                return MUSTER_ENOMEM;
            }
        }
        doc = next;
        rest = next_key(rest, key);
    }
    return json_object_set_new(doc, key, value) == 0 ? 0 : MUSTER_ENOMEM;
}

int doc_set_text(json_t *doc, const char *path, const char *value)
{
    return doc_set(doc, path, json_string(value));
}

int doc_set_int(json_t *doc, const char *path, int64_t value)
{
    return doc_set(doc, path, json_integer(value));
}

/* jansson has a limit of depth (JSON_PARSER_MAX_DEPTH, 2048), but the stack of our readers is
 * smaller. */
static bool deeper_than(const json_t *doc, int depth)
{
    if (!json_is_object(doc) && !json_is_array(doc)) {
        return false;
    }
    if (depth == 0) {
        return true;
    }
    const char *key;
    json_t *value;
    size_t index;
    json_object_foreach ((json_t *)doc, key, value) {
        if (deeper_than(value, depth - 1)) {
            return true;
        }
    }
    json_array_foreach (doc, index, value) {
        if (deeper_than(value, depth - 1)) {
            return true;
        }
    }
    return false;
}

/* jansson reports a failed allocation as a syntax error, or loses the end of a token and succeeds
 * (2.14): only its allocator knows of the failure. */
static json_malloc_t real_malloc;
static _Thread_local bool malloc_failed;

static void *watched_malloc(size_t size)
{
    void *memory = real_malloc(size);
    malloc_failed = malloc_failed || !memory;
    return memory;
}

static json_t *load(const char *text, size_t length, size_t flags, json_error_t *ret_error,
                    bool *ret_starved)
{
    json_malloc_t given_malloc;
    json_free_t given_free;
    json_get_alloc_funcs(&given_malloc, &given_free);
    if (given_malloc != watched_malloc) { /* otherwise another thread is here, too */
        real_malloc = given_malloc;
    }
    malloc_failed = false;
    json_set_alloc_funcs(watched_malloc, given_free);
    json_t *doc = json_loadb(text, length, flags, ret_error);
    json_set_alloc_funcs(real_malloc, given_free);
    *ret_starved = malloc_failed;
    return doc;
}

static int parse(const char *text, size_t length, size_t flags, json_t **ret,
                 struct muster_err *err)
{
    json_error_t error;
    bool starved = false;
    json_t *doc = load(text, length, flags | JSON_DECODE_ANY, &error, &starved);
    if (starved) {
        json_decref(doc);
        return err_no_memory(err);
    }
    if (!doc) {
        return muster_fail(err, MUSTER_EDATA, "JSON: line %d, column %d: %s", error.line,
                           error.column, error.text);
    }
    if (deeper_than(doc, 128)) {
        json_decref(doc);
        return muster_fail(err, MUSTER_ETOOBIG, "JSON: nested deeper than 128 levels");
    }
    *ret = doc;
    return 0;
}

int doc_parse(const char *text, size_t length, json_t **ret, struct muster_err *err)
{
    return parse(text, length, JSON_REJECT_DUPLICATES, ret, err);
}

int doc_parse_last(const char *text, size_t length, json_t **ret, struct muster_err *err)
{
    return parse(text, length, 0, ret, err);
}

static int append(const char *bytes, size_t count, void *out)
{
    buf_add(out, bytes, count);
    return buf_failed(out) ? -1 : 0;
}

/* json_dumps is not used: when memory is short, it may leave out a quote after a key and still
 * succeed (jansson 2.14). The buffer remembers a failed append. */
static char *print(const json_t *doc, size_t flags)
{
    struct buf text;
    buf_init(&text, SIZE_MAX / 4);
    int r = json_dump_callback(doc, append, &text, flags);
    char *result = r ? NULL : buf_steal(&text);
    buf_done(&text);
    return result;
}

char *doc_print(const json_t *doc)
{
    return print(doc, FLAGS_PRINT);
}

char *doc_print_pretty(const json_t *doc)
{
    return print(doc, JSON_INDENT(4) | JSON_ENCODE_ANY);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char **doc_keys(const json_t *object, size_t *ret_count)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof *keys);
    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        if (keys) {
            keys[count++] = key;
        }
    }
    if (keys) {
        qsort(keys, count, sizeof *keys, by_name);
    }
    *ret_count = count;
    return keys;
}

const char *doc_type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "a mapping", [JSON_ARRAY] = "a list",  [JSON_STRING] = "text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "no value",
    };
    return names[json_typeof(value)];
}
