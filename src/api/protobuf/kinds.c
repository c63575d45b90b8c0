/* See kinds.h: the tables of fields.def. */
#include "api/protobuf/kinds.h"

#include <stddef.h>
#include <string.h>

#define BEGIN(message) static const struct protobuf_field message##_fields[] = {
#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }                                                                                              \
    }                                                                                              \
    ;
#define KEPT true
#define LEFT_OUT false
#define TEXT(number, name, zero) {number, PROTOBUF_TEXT, zero, #name, NULL},
#define BOOL(number, name, zero) {number, PROTOBUF_BOOL, zero, #name, NULL},
#define NUMBER(number, name, zero) {number, PROTOBUF_NUMBER, zero, #name, NULL},
#define BYTES(number, name) {number, PROTOBUF_BYTES, false, #name, NULL},
#define TIME(number, name) {number, PROTOBUF_TIME, false, #name, NULL},
#define MICRO_TIME(number, name) {number, PROTOBUF_MICRO_TIME, false, #name, NULL},
#define QUANTITY(number, name) {number, PROTOBUF_QUANTITY, false, #name, NULL},
#define INT_OR_TEXT(number, name) {number, PROTOBUF_INT_OR_TEXT, false, #name, NULL},
#define RAW(number, name) {number, PROTOBUF_RAW, false, #name, NULL},
#define MESSAGE(number, name, of) {number, PROTOBUF_MESSAGE, false, #name, of##_fields},
#define INLINE(number, of) {number, PROTOBUF_INLINE, false, "", of##_fields},
#define LIST(number, name, of) {number, PROTOBUF_LIST, false, #name, of##_fields},
#define TEXT_LIST(number, name) {number, PROTOBUF_TEXT_LIST, false, #name, NULL},
#define NUMBER_LIST(number, name) {number, PROTOBUF_NUMBER_LIST, false, #name, NULL},
#define TEXT_MAP(number, name) {number, PROTOBUF_TEXT_MAP, false, #name, NULL},
#define BYTES_MAP(number, name) {number, PROTOBUF_BYTES_MAP, false, #name, NULL},
#define QUANTITY_MAP(number, name) {number, PROTOBUF_QUANTITY_MAP, false, #name, NULL},
#include "api/protobuf/fields.def"

static const struct {
    const char *api_version; /* NULL: any */
    const char *kind;
    const struct protobuf_field *fields;
} kinds[] = {
    {"v1", "ConfigMap", ConfigMap_fields},
    {"v1", "Event", Event_fields},
    {"v1", "Namespace", Namespace_fields},
    {"v1", "Node", Node_fields},
    {"v1", "PersistentVolumeClaim", PersistentVolumeClaim_fields},
    {"v1", "Pod", Pod_fields},
    {"v1", "Secret", Secret_fields},
    {"v1", "Service", Service_fields},
    {"events.k8s.io/v1", "Event", EventsEvent_fields},
    {NULL, "DeleteOptions", DeleteOptions_fields},
    {"policy/v1", "Eviction", Eviction_fields},
};

const struct protobuf_field *protobuf_find_kind(const char *api_version, const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) == 0 &&
            (!kinds[i].api_version || strcmp(kinds[i].api_version, api_version) == 0)) {
            return kinds[i].fields;
        }
    }
    return NULL;
}
