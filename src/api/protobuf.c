/* See protobuf.h. A message is described by a table of its fields; unknown ones are skipped. */
#include "api/protobuf.h"

#include "base/base64.h"
#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <stdint.h>
#include <string.h>

enum { BYTES_MAX = 4 << 20 };

/* What is left to read; `failed` sticks. */
struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    bool failed;
};

enum kind { TEXT, BOOL, NUMBER, TEXT_LIST, MESSAGE, TEXT_MAP, BYTES_MAP };

struct field {
    unsigned number; /* 0 ends a table */
    enum kind kind;
    const char *name;
    const struct field *message;
};

static const struct field metadata_fields[] = {
    {1, TEXT, "name", NULL},
    {2, TEXT, "generateName", NULL},
    {3, TEXT, "namespace", NULL},
    {5, TEXT, "uid", NULL},
    {6, TEXT, "resourceVersion", NULL},
    {11, TEXT_MAP, "labels", NULL},
    {12, TEXT_MAP, "annotations", NULL},
    {0},
};

static const struct field config_map_fields[] = {
    {1, MESSAGE, "metadata", metadata_fields},
    {2, TEXT_MAP, "data", NULL},
    {3, BYTES_MAP, "binaryData", NULL},
    {4, BOOL, "immutable", NULL},
    {0},
};

static const struct field secret_fields[] = {
    {1, MESSAGE, "metadata", metadata_fields},
    {2, BYTES_MAP, "data", NULL},
    {3, TEXT, "type", NULL},
    {4, TEXT_MAP, "stringData", NULL},
    {5, BOOL, "immutable", NULL},
    {0},
};

static const struct field namespace_fields[] = {
    {1, MESSAGE, "metadata", metadata_fields},
    {0},
};

static const struct field precondition_fields[] = {
    {1, TEXT, "uid", NULL},
    {2, TEXT, "resourceVersion", NULL},
    {0},
};

static const struct field delete_fields[] = {
    {1, NUMBER, "gracePeriodSeconds", NULL}, {2, MESSAGE, "preconditions", precondition_fields},
    {3, BOOL, "orphanDependents", NULL},     {4, TEXT, "propagationPolicy", NULL},
    {5, TEXT_LIST, "dryRun", NULL},          {0},
};

static const struct field eviction_fields[] = {
    {1, MESSAGE, "metadata", metadata_fields},
    {2, MESSAGE, "deleteOptions", delete_fields},
    {0},
};

static const struct {
    const char *kind;
    const struct field *fields;
} kinds[] = {
    {"ConfigMap", config_map_fields}, {"Secret", secret_fields},
    {"Namespace", namespace_fields},  {"DeleteOptions", delete_fields},
    {"Eviction", eviction_fields},
};

/* ---- the wire ---- */

static uint64_t read_varint(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end) {
            break;
        }
        unsigned char byte = *c->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return value;
        }
    }
    c->failed = true;
    return 0;
}

static struct cursor read_bytes(struct cursor *c, uint64_t count)
{
    if (c->failed || count > (uint64_t)(c->end - c->at)) {
        c->failed = true;
        return (struct cursor){c->end, c->end, true};
    }
    struct cursor part = {c->at, c->at + count, false};
    c->at += count;
    return part;
}

/* One field: its number, and its bytes or, for a number, its value. False at the end or on a
 * failure. */
static bool next_field(struct cursor *c, unsigned *ret_number, struct cursor *ret_bytes,
                       uint64_t *ret_value)
{
    if (c->failed || c->at == c->end) {
        return false;
    }
    uint64_t tag = read_varint(c);
    *ret_number = (unsigned)(tag >> 3);
    *ret_bytes = (struct cursor){0};
    *ret_value = 0;
    switch (tag & 7) {
    case 0: *ret_value = read_varint(c); break;
    case 1: (void)read_bytes(c, 8); break;
    case 2: *ret_bytes = read_bytes(c, read_varint(c)); break;
    case 5: (void)read_bytes(c, 4); break;
    default: c->failed = true;
    }
    return !c->failed;
}

static size_t length_of(const struct cursor *part)
{
    return (size_t)(part->end - part->at);
}

/* ---- messages ---- */

/* NULL when it is no UTF-8, which build notes. */
static json_t *text_of(const struct cursor *part)
{
    return json_stringn(part->at ? (const char *)part->at : "", length_of(part));
}

static json_t *base64_of(const struct cursor *part)
{
    struct buf text;
    buf_init(&text, BYTES_MAX);
    base64_encode(part->at, length_of(part), &text);
    json_t *value = buf_failed(&text) ? NULL : json_string(buf_str(&text));
    buf_done(&text);
    return value;
}

/* A map's entry is a message of its own: 1 is the key, 2 the value. */
static void read_entry(struct build *b, struct cursor *c, json_t *map, bool bytes)
{
    unsigned number;
    uint64_t value;
    struct cursor part, key = {0}, content = {0};
    while (next_field(c, &number, &part, &value)) {
        if (number == 1) {
            key = part;
        } else if (number == 2) {
            content = part;
        }
    }
    json_t *name = text_of(&key);
    if (c->failed || !name) {
        b->failed = true;
    } else {
        build_set(b, map, json_string_value(name), bytes ? base64_of(&content) : text_of(&content));
    }
    json_decref(name);
}

static void read_message(struct build *b, struct cursor *c, const struct field *fields,
                         json_t *into);

static void read_value(struct build *b, struct cursor *part, uint64_t value,
                       const struct field *field, json_t *into)
{
    switch (field->kind) {
    case TEXT:
        if (length_of(part) > 0) {
            build_set(b, into, field->name, text_of(part));
        }
        break;
    case BOOL: build_set(b, into, field->name, json_boolean(value != 0)); break;
    case NUMBER: build_set(b, into, field->name, json_integer((json_int_t)value)); break;
    case TEXT_LIST: build_add(b, build_array_at(b, into, field->name), text_of(part)); break;
    case MESSAGE:
        read_message(b, part, field->message, build_object_at(b, into, field->name));
        break;
    case TEXT_MAP:
    case BYTES_MAP:
        read_entry(b, part, build_object_at(b, into, field->name), field->kind == BYTES_MAP);
        break;
    }
}

/* The depth is the tables', not the input's. */
static void read_message(struct build *b, struct cursor *c, const struct field *fields,
                         json_t *into)
{
    unsigned number;
    uint64_t value;
    struct cursor part;
    while (next_field(c, &number, &part, &value)) {
        for (const struct field *field = fields; field->number; field++) {
            if (field->number == number) {
                read_value(b, &part, value, field, into);
            }
        }
    }
    b->failed = b->failed || c->failed;
}

/* ---- the envelope: "k8s\0", then {1: {1: apiVersion, 2: kind}, 2: the object} ---- */

static const struct field type_fields[] = {
    {1, TEXT, "apiVersion", NULL}, {2, TEXT, "kind", NULL}, {0}};

static const struct field *find_kind(const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) == 0) {
            return kinds[i].fields;
        }
    }
    return NULL;
}

int protobuf_read(const char *bytes, size_t count, json_t **ret, struct muster_err *err)
{
    static const char magic[4] = {'k', '8', 's', '\0'};
    struct cursor all = {(const unsigned char *)bytes, (const unsigned char *)bytes + count, false};
    struct cursor mark = read_bytes(&all, sizeof magic);
    struct cursor part, raw = {0};
    unsigned number;
    uint64_t value;
    struct build b = {.failed = mark.failed || memcmp(mark.at, magic, sizeof magic) != 0};
    muster_auto(doc) json_t *object = build_value(&b, json_object());
    while (!b.failed && next_field(&all, &number, &part, &value)) {
        if (number == 1) {
            read_message(&b, &part, type_fields, object);
        } else if (number == 2) {
            raw = part;
        }
    }
    const struct field *fields = find_kind(doc_text(object, "kind", ""));
    if (!b.failed && !all.failed && !fields) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "a %.60s in protobuf cannot be read: send it as JSON (with kubectl: "
                           "--dry-run=client -o yaml, then kubectl create -f)",
                           doc_text(object, "kind", "object"));
    }
    if (!b.failed && !all.failed) {
        read_message(&b, &raw, fields, object);
    }
    if (b.failed || all.failed) {
        return muster_fail(err, MUSTER_EINVAL, "the body is not a Kubernetes protobuf message");
    }
    *ret = muster_take(object);
    return 0;
}
