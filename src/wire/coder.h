/* Fields of a frame, read or written: one description of a message (in messages.c, leases.c) serves
 * both, so that reader and writer cannot differ.
 *
 * Internal to src/wire. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "wire/wire.h"

struct coder {
    bool writes;
    uint8_t *out; /* writes: may be shorter than the message, whose bytes are then only counted */
    const uint8_t *in; /* reads */
    size_t room;       /* the size of out, or of in */
    size_t at;
    const char *wrong; /* the first mistake; nothing is read after it */
    bool too_big;
    struct wire_room *arrays;
};

void coder_fail(struct coder *c, const char *wrong);

void coder_u8(struct coder *c, uint8_t *value);
void coder_u32(struct coder *c, uint32_t *value);
void coder_u64(struct coder *c, uint64_t *value);
void coder_bool(struct coder *c, bool *value);
void coder_bytes(struct coder *c, uint8_t *bytes, size_t count);
void coder_text(struct coder *c, struct wire_text *text);

/* Reads or writes the number of elements of an array, each of which has `element_bytes` or more in
 * the frame. A reader gets memory for them in *list (NULL for none), of size_bytes each. */
void coder_array(struct coder *c, uint32_t *count, size_t element_bytes, size_t size_bytes,
                 void **list);
