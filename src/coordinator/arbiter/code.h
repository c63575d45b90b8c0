/* A step of the arbiter as bytes: the event and the answer, so that equal steps have equal bytes.
 * The answer has the result, the effects with their bytes, and the arbiter after them (what can be
 * seen from outside, and a hash of its snapshot if it can make one).
 *
 * Layer: program (coordinator). Pure. Memory: the caller's. Thread: any.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"

/* Codes the options that are recorded; data sets are not recorded. */
void arbiter_code_options(const struct arbiter_options *options, struct buf *ret);
bool arbiter_code_read_options(const uint8_t *bytes, size_t count, struct arbiter_options *ret);

void arbiter_code_event(const struct arbiter_event *event, struct buf *ret);
/* Codes what arbiter_step has returned for the event. */
void arbiter_code_answer(struct arbiter *after, const struct arbiter_event *event, int result,
                         const struct arbiter_effects *effects, struct buf *ret);

/* Reads an event; *ret_count: its size, after which the answer follows. The event's pointers point
 * into `bytes`, *message and the room. Returns false if the bytes are not valid. */
bool arbiter_code_read_event(const uint8_t *bytes, size_t count, struct wire_room *room,
                             struct wire_message *message, struct arbiter_event *ret,
                             size_t *ret_count);
