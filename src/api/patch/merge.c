/* Merge patch and JSON patch. See merge.h. */
#include "api/patch/merge.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_PART_BYTES = 512 };

/* ---- RFC 7386 ---- */

/* Lays the patch over `into`, which is an object. Depth is bounded by doc_parse. */
static int lay_over(json_t *into, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)patch, key, value) {
        json_t *there = json_object_get(into, key);
        if (json_is_null(value)) {
            json_object_del(into, key);
        } else if (!json_is_object(value)) {
            if (json_object_set_new(into, key, json_deep_copy(value)) != 0) {
                return -1;
            }
        } else {
            if (!json_is_object(there)) {
                there = json_object();
                if (json_object_set_new(into, key, there) != 0) {
                    return -1;
                }
            }
            if (lay_over(there, value) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

int merge_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err)
{
    if (!json_is_object(patch)) {
        return muster_fail(err, MUSTER_EINVAL, "a merge patch must be a JSON object");
    }
    muster_auto(doc) json_t *result = json_deep_copy(doc);
    if (!result || lay_over(result, patch) < 0) {
        return err_no_memory(err);
    }
    *ret = muster_take(result);
    return 0;
}

/* ---- RFC 6902, with RFC 6901 pointers ---- */

/* Decodes the part after a '/', up to the next one, into `ret`; false when it is malformed. */
static bool next_part(const char **at, char ret[POINTER_PART_BYTES])
{
    if (**at != '/') {
        return false;
    }
    size_t used = 0;
    const char *c = *at + 1;
    for (; *c && *c != '/' && used < POINTER_PART_BYTES - 1; c++) {
        if (*c == '~') {
            c++;
            if (*c != '0' && *c != '1') {
                return false;
            }
            ret[used++] = *c == '0' ? '~' : '/';
        } else {
            ret[used++] = *c;
        }
    }
    ret[used] = '\0';
    *at = c;
    return *c == '\0' || *c == '/';
}

/* Returns the index, the array's length for "-", or -1 if the part is not an index. */
static long index_of(const json_t *array, const char *part)
{
    if (strcmp(part, "-") == 0) {
        return (long)json_array_size(array);
    }
    char *end;
    errno = 0;
    long index = strtol(part, &end, 10);
    bool plain = *part >= '0' && *part <= '9' && (*part != '0' || part[1] == '\0');
    return errno || *end || !plain || index > (long)json_array_size(array) ? -1 : index;
}

static json_t *member(json_t *container, const char *part)
{
    if (json_is_array(container)) {
        long index = index_of(container, part);
        return index < 0 ? NULL : json_array_get(container, (size_t)index);
    }
    return json_object_get(container, part);
}

/* Returns the container in which the pointer's last part, `ret_last`, is a key. */
static json_t *find_parent(json_t *root, const char *pointer, char ret_last[POINTER_PART_BYTES])
{
    json_t *at = root;
    const char *rest = pointer;
    while (at) {
        if (!next_part(&rest, ret_last)) {
            return NULL;
        }
        if (!*rest) {
            return json_is_object(at) || json_is_array(at) ? at : NULL;
        }
        at = member(at, ret_last);
    }
    return NULL;
}

static json_t *find(json_t *root, const char *pointer)
{
    char last[POINTER_PART_BYTES];
    if (!*pointer) {
        return root;
    }
    json_t *parent = find_parent(root, pointer, last);
    return parent ? member(parent, last) : NULL;
}

/* Each returns 0, or -1 if the place does not exist. They take `value`. */

static int add(json_t **root, const char *pointer, json_t *value)
{
    char last[POINTER_PART_BYTES];
    if (!*pointer) {
        json_decref(*root);
        *root = value;
        return value ? 0 : -1;
    }
    json_t *parent = find_parent(*root, pointer, last);
    if (json_is_object(parent)) {
        return json_object_set_new(parent, last, value);
    }
    long index = parent ? index_of(parent, last) : -1;
    if (index < 0) {
        json_decref(value);
        return -1;
    }
    return json_array_insert_new(parent, (size_t)index, value);
}

static int take_out(json_t *root, const char *pointer)
{
    char last[POINTER_PART_BYTES];
    json_t *parent = find_parent(root, pointer, last);
    if (!parent || !member(parent, last)) {
        return -1;
    }
    return json_is_array(parent) ? json_array_remove(parent, (size_t)index_of(parent, last))
                                 : json_object_del(parent, last);
}

static int replace(json_t **root, const char *pointer, json_t *value)
{
    if (!find(*root, pointer)) {
        json_decref(value);
        return -1;
    }
    if (*pointer && take_out(*root, pointer) < 0) {
        json_decref(value);
        return -1;
    }
    return add(root, pointer, value);
}

static int transfer(json_t **root, const char *from, const char *pointer, bool move)
{
    json_t *value = json_deep_copy(find(*root, from));
    size_t length = strlen(from);
    bool into_itself = move && strncmp(pointer, from, length) == 0 && pointer[length] == '/';
    if (!value || into_itself || (move && *from && take_out(*root, from) < 0)) {
        json_decref(value);
        return -1;
    }
    return add(root, pointer, value);
}

static int perform(json_t **root, const json_t *operation)
{
    const char *op = doc_text(operation, "op", "");
    const char *path = doc_text(operation, "path", NULL);
    json_t *value = json_object_get(operation, "value");
    if (!path) {
        return -1;
    }
    if (strcmp(op, "remove") == 0) {
        return take_out(*root, path);
    }
    if (strcmp(op, "move") == 0 || strcmp(op, "copy") == 0) {
        const char *from = doc_text(operation, "from", NULL);
        return from ? transfer(root, from, path, *op == 'm') : -1;
    }
    if (!value) {
        return -1;
    }
    if (strcmp(op, "add") == 0) {
        return add(root, path, json_deep_copy(value));
    }
    if (strcmp(op, "replace") == 0) {
        return replace(root, path, json_deep_copy(value));
    }
    json_t *there = strcmp(op, "test") == 0 ? find(*root, path) : NULL;
    return there && json_equal(there, value) ? 0 : -1;
}

int json_patch(const json_t *doc, const json_t *operations, json_t **ret, struct muster_err *err)
{
    if (!json_is_array(operations) || json_array_size(operations) > PATCH_OPERATIONS_MAX) {
        return muster_fail(err, MUSTER_EINVAL,
                           "a JSON patch must be a list of %d operations at most",
                           PATCH_OPERATIONS_MAX);
    }
    muster_auto(doc) json_t *result = json_deep_copy(doc);
    if (!result) {
        return err_no_memory(err);
    }
    size_t i;
    json_t *operation;
    json_array_foreach (operations, i, operation) {
        if (perform(&result, operation) < 0) {
            return muster_fail(err, MUSTER_EDATA,
                               "JSON patch: operation %zu cannot be done: %.20s at \"%.200s\"", i,
                               doc_text(operation, "op", "?"), doc_text(operation, "path", "?"));
        }
    }
    *ret = muster_take(result);
    return 0;
}
