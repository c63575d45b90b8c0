/* Events in the order of time, and as a table. Layer: cli; pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>

/* The items of a list of events sorted by their last time; new array. */
json_t *event_list_sort(const json_t *items);

/* Prints Type, Reason, Age, From and Message, as kubectl describe does. */
void event_list_describe(const json_t *events, int64_t now_unix_ms, struct buf *out);

/* When the event was last seen, as the API writes it; "" when it does not say. Borrowed. */
const char *event_list_time(const json_t *event);
