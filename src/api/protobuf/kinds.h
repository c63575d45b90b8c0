/* Which fields Kubernetes' protobuf messages have (fields.def). Static data; for
 * protobuf.c.
 *
 * Layer: services, pure.
 */
#pragma once

#include <stdbool.h>

enum protobuf_type {
    PROTOBUF_TEXT,
    PROTOBUF_BOOL,
    PROTOBUF_NUMBER,
    PROTOBUF_BYTES,       /* base64 in JSON */
    PROTOBUF_TIME,        /* {1: seconds, 2: nanoseconds} */
    PROTOBUF_MICRO_TIME,  /* the same, shown with microseconds */
    PROTOBUF_QUANTITY,    /* {1: text} */
    PROTOBUF_INT_OR_TEXT, /* {1: 0 a number, 1 a text; 2: the number; 3: the text} */
    PROTOBUF_RAW,         /* {1: JSON} */
    PROTOBUF_MESSAGE,
    PROTOBUF_INLINE, /* a message whose fields belong to the object around it */
    PROTOBUF_LIST,   /* of messages */
    PROTOBUF_TEXT_LIST,
    PROTOBUF_NUMBER_LIST,
    PROTOBUF_TEXT_MAP,
    PROTOBUF_BYTES_MAP,
    PROTOBUF_QUANTITY_MAP,
};

struct protobuf_field {
    unsigned number; /* 0 ends a table */
    enum protobuf_type type;
    bool keeps_zero;
    const char *name;                     /* in JSON */
    const struct protobuf_field *message; /* of MESSAGE, INLINE, LIST */
};

/* Returns the fields of a kind, or NULL if it cannot be read. `api_version` is "v1",
 * "events.k8s.io/v1" and so on. */
const struct protobuf_field *protobuf_find_kind(const char *api_version, const char *kind);
