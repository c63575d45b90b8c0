/* See build.h. */
#include "base/build.h"

json_t *build_value(struct build *b, json_t *value)
{
    b->failed |= value == NULL;
    return value;
}

void build_set(struct build *b, json_t *object, const char *key, json_t *value)
{
    b->failed |= json_object_set_new(object, key, value) != 0;
}

void build_text(struct build *b, json_t *object, const char *key, const char *text)
{
    if (text) {
        build_set(b, object, key, json_string(text));
    }
}

void build_int(struct build *b, json_t *object, const char *key, json_int_t value)
{
    build_set(b, object, key, json_integer(value));
}

void build_add(struct build *b, json_t *array, json_t *value)
{
    b->failed |= json_array_append_new(array, value) != 0;
}

json_t *build_object_at(struct build *b, json_t *object, const char *key)
{
    if (!json_is_object(json_object_get(object, key))) {
        build_set(b, object, key, json_object());
    }
    return b->failed ? NULL : json_object_get(object, key);
}

json_t *build_array_at(struct build *b, json_t *object, const char *key)
{
    if (!json_is_array(json_object_get(object, key))) {
        build_set(b, object, key, json_array());
    }
    return b->failed ? NULL : json_object_get(object, key);
}

json_t *build_end(const struct build *b, json_t *doc)
{
    if (b->failed) {
        json_decref(doc);
        return NULL;
    }
    return doc;
}
