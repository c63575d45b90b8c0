/* See protobuf.h. A message is described by a table of its fields; unknown ones are skipped. */
#include "api/protobuf/protobuf.h"

#include "api/protobuf/kinds.h"
#include "base/base64.h"
#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/timestamp.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BYTES_MAX = 4 << 20 };

/* The bytes that are not read yet; `failed` stays set. */
struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    bool failed;
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

/* One field as it was received. */
struct piece {
    unsigned number;
    bool has_bytes; /* else it is a number */
    struct cursor bytes;
    uint64_t value;
};

/* Returns false at the end or on a failure. */
static bool next_piece(struct cursor *c, struct piece *ret)
{
    if (c->failed || c->at == c->end) {
        return false;
    }
    uint64_t tag = read_varint(c);
    *ret = (struct piece){.number = (unsigned)(tag >> 3), .has_bytes = (tag & 7) == 2};
    switch (tag & 7) {
    case 0: ret->value = read_varint(c); break;
    case 1: (void)read_bytes(c, 8); break;
    case 2: ret->bytes = read_bytes(c, read_varint(c)); break;
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

/* Returns NULL if the text is not UTF-8; `build` notes the failure. */
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

/* Reads the fields 1, 2 and 3 of a small message, the last of each. */
static void read_small(struct build *b, const struct cursor *from, struct piece ret[3])
{
    struct cursor c = *from;
    struct piece piece;
    while (next_piece(&c, &piece)) {
        if (piece.number >= 1 && piece.number <= 3) {
            ret[piece.number - 1] = piece;
        }
    }
    b->failed = b->failed || c.failed;
}

/* A time of zero has no bytes, and is not set. */
static void set_time(struct build *b, json_t *into, const struct protobuf_field *field,
                     const struct cursor *bytes)
{
    enum { PER_S = 1000, NS_PER_US = 1000, US_PER_S = 1000000 };
    static const int64_t second_max = INT64_MAX / PER_S;
    struct piece part[3] = {0};
    char seconds[TIMESTAMP_BYTES], text[TIMESTAMP_BYTES + 8];
    read_small(b, bytes, part);
    int64_t second = (int64_t)part[0].value;
    if (length_of(bytes) == 0 || second > second_max || second < -second_max ||
        !timestamp_fits(second * PER_S)) {
        b->failed = b->failed || length_of(bytes) > 0;
        return;
    }
    timestamp_seconds(second * PER_S, seconds);
    if (field->type == PROTOBUF_MICRO_TIME) { /* with a fraction of six digits, before the Z */
        snprintf(text, sizeof text, "%.*s.%06uZ", (int)strlen(seconds) - 1, seconds,
                 (unsigned)(part[1].value / NS_PER_US % US_PER_S));
    } else {
        snprintf(text, sizeof text, "%s", seconds);
    }
    build_text(b, into, field->name, text);
}

static json_t *quantity_of(struct build *b, const struct cursor *bytes)
{
    struct piece part[3] = {0};
    read_small(b, bytes, part);
    return text_of(&part[0].bytes);
}

static json_t *int_or_text_of(struct build *b, const struct cursor *bytes)
{
    struct piece part[3] = {0};
    read_small(b, bytes, part);
    return part[0].value ? text_of(&part[2].bytes) : json_integer((int32_t)part[1].value);
}

static void set_raw(struct build *b, json_t *into, const struct protobuf_field *field,
                    const struct cursor *bytes)
{
    struct piece part[3] = {0};
    json_t *value = NULL;
    read_small(b, bytes, part);
    if (length_of(&part[0].bytes) > 0) {
        (void)doc_parse((const char *)part[0].bytes.at, length_of(&part[0].bytes), &value, NULL);
        build_set(b, into, field->name, value);
    }
}

/* A map's entry is a separate message: 1 is the key, 2 the value. */
static void read_entry(struct build *b, const struct cursor *bytes, enum protobuf_type type,
                       json_t *map)
{
    struct piece part[3] = {0};
    read_small(b, bytes, part);
    const struct cursor *value = &part[1].bytes;
    json_t *name = text_of(&part[0].bytes);
    if (!name || strlen(json_string_value(name)) != json_string_length(name)) {
        b->failed = true; /* a key with a NUL would become another key */
    } else {
        build_set(b, map, json_string_value(name),
                  type == PROTOBUF_BYTES_MAP      ? base64_of(value)
                  : type == PROTOBUF_QUANTITY_MAP ? quantity_of(b, value)
                                                  : text_of(value));
    }
    json_decref(name);
}

static void read_message(struct build *b, const struct cursor *bytes,
                         const struct protobuf_field *fields, json_t *into);

static void read_list_item(struct build *b, const struct cursor *bytes,
                           const struct protobuf_field *field, json_t *into)
{
    json_t *item = build_value(b, json_object());
    build_add(b, build_array_at(b, into, field->name), item);
    if (!b->failed) {
        read_message(b, bytes, field->message, item);
    }
}

static void set_number(struct build *b, const struct piece *piece,
                       const struct protobuf_field *field, json_t *into)
{
    json_int_t number = (json_int_t)piece->value;
    if (field->type == PROTOBUF_NUMBER_LIST) {
        build_add(b, build_array_at(b, into, field->name), json_integer(number));
    } else if (piece->value || field->keeps_zero) {
        bool is_bool = field->type == PROTOBUF_BOOL;
        build_set(b, into, field->name, is_bool ? json_boolean(number) : json_integer(number));
    }
}

static void set_bytes(struct build *b, const struct cursor *bytes,
                      const struct protobuf_field *field, json_t *into)
{
    switch (field->type) {
    case PROTOBUF_TEXT:
        if (length_of(bytes) > 0 || field->keeps_zero) {
            build_set(b, into, field->name, text_of(bytes));
        }
        break;
    case PROTOBUF_BYTES: build_set(b, into, field->name, base64_of(bytes)); break;
    case PROTOBUF_TIME:
    case PROTOBUF_MICRO_TIME: set_time(b, into, field, bytes); break;
    case PROTOBUF_QUANTITY: build_set(b, into, field->name, quantity_of(b, bytes)); break;
    case PROTOBUF_INT_OR_TEXT: build_set(b, into, field->name, int_or_text_of(b, bytes)); break;
    case PROTOBUF_RAW: set_raw(b, into, field, bytes); break;
    case PROTOBUF_MESSAGE:
        read_message(b, bytes, field->message, build_object_at(b, into, field->name));
        break;
    case PROTOBUF_INLINE: read_message(b, bytes, field->message, into); break;
    case PROTOBUF_LIST: read_list_item(b, bytes, field, into); break;
    case PROTOBUF_TEXT_LIST:
        build_add(b, build_array_at(b, into, field->name), text_of(bytes));
        break;
    case PROTOBUF_TEXT_MAP:
    case PROTOBUF_BYTES_MAP:
    case PROTOBUF_QUANTITY_MAP:
        read_entry(b, bytes, field->type, build_object_at(b, into, field->name));
        break;
    case PROTOBUF_BOOL:
    case PROTOBUF_NUMBER:
    case PROTOBUF_NUMBER_LIST: b->failed = true; break;
    }
}

static bool is_number(enum protobuf_type type)
{
    return type == PROTOBUF_BOOL || type == PROTOBUF_NUMBER || type == PROTOBUF_NUMBER_LIST;
}

/* The tables bound the depth, not the input; a field that is in no table is skipped. */
static void read_message(struct build *b, const struct cursor *bytes,
                         const struct protobuf_field *fields, json_t *into)
{
    struct cursor c = *bytes;
    struct piece piece;
    while (next_piece(&c, &piece)) {
        const struct protobuf_field *field = fields;
        while (field->number && field->number != piece.number) {
            field++;
        }
        if (!field->number) {
            continue;
        }
        if (is_number(field->type) == piece.has_bytes) {
            b->failed = true;
        } else if (piece.has_bytes) {
            set_bytes(b, &piece.bytes, field, into);
        } else {
            set_number(b, &piece, field, into);
        }
    }
    b->failed = b->failed || c.failed;
}

/* ---- the envelope: "k8s\0", then {1: {1: apiVersion, 2: kind}, 2: the object} ---- */

static const struct protobuf_field type_fields[] = {
    {1, PROTOBUF_TEXT, false, "apiVersion", NULL}, {2, PROTOBUF_TEXT, false, "kind", NULL}, {0}};

/* Reads the object's apiVersion and kind; *ret_raw is the rest, which is still to be read. */
static void read_envelope(struct build *b, struct cursor *all, json_t *object,
                          struct cursor *ret_raw)
{
    static const char magic[4] = {'k', '8', 's', '\0'};
    struct cursor mark = read_bytes(all, sizeof magic);
    struct piece piece;
    b->failed = b->failed || mark.failed || memcmp(mark.at, magic, sizeof magic) != 0;
    while (!b->failed && next_piece(all, &piece)) {
        if (piece.number == 1) {
            read_message(b, &piece.bytes, type_fields, object);
        } else if (piece.number == 2) {
            *ret_raw = piece.bytes;
        }
    }
    b->failed = b->failed || all->failed;
}

int protobuf_read(const char *bytes, size_t count, json_t **ret, struct muster_err *err)
{
    struct cursor all = {(const unsigned char *)bytes, (const unsigned char *)bytes + count, false};
    struct cursor raw = {0};
    struct build b = {0};
    muster_auto(doc) json_t *object = build_value(&b, json_object());
    read_envelope(&b, &all, object, &raw);
    const struct protobuf_field *fields =
        protobuf_find_kind(doc_text(object, "apiVersion", ""), doc_text(object, "kind", ""));
    if (!b.failed && !fields) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "a %.60s in protobuf cannot be read: send it as JSON (with kubectl: "
                           "--dry-run=client -o yaml, then kubectl create -f)",
                           doc_text(object, "kind", "object"));
    }
    if (!b.failed) {
        read_message(&b, &raw, fields, object);
    }
    if (b.failed) {
        return muster_fail(err, MUSTER_EINVAL, "the body is not a Kubernetes protobuf message");
    }
    *ret = muster_take(object);
    return 0;
}
