/* A step of the member's core as bytes: the event, the effects, and the member after it, field by
 * field, so that equal steps have equal bytes.
 *
 * Layer: pure (part of libmuster). Memory: the caller's. Thread: any.
 */
#pragma once

#include "commit/member.h"

enum {
    COMMIT_CODE_EVENT_BYTES = 9 * 8,
    COMMIT_CODE_MEMBER_BYTES = 15 * 8,
    COMMIT_CODE_EFFECT_BYTES = 6 * 8,
    COMMIT_CODE_BYTES_MAX = COMMIT_CODE_EVENT_BYTES + COMMIT_CODE_MEMBER_BYTES +
                            COMMIT_EFFECTS_MAX * COMMIT_CODE_EFFECT_BYTES,
};

/* Writes the step to ret, which has room for COMMIT_CODE_BYTES_MAX: the event, the member, and each
 * effect. Returns the number of bytes. */
size_t commit_code(const struct commit_event *event, const struct commit_effects *effects,
                   const struct commit_member *after, uint8_t *ret);
/* Reads the event of a step that commit_code has written. Returns false if the bytes are not such a
 * step. */
bool commit_code_read(const uint8_t *bytes, size_t count, struct commit_event *ret);
