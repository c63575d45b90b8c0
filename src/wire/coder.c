/* See coder.h. */
#include "wire/coder.h"

#include <stdalign.h>
#include <string.h>

void coder_fail(struct coder *c, const char *wrong)
{
    if (!c->wrong) {
        c->wrong = wrong;
    }
}

static bool has(struct coder *c, size_t count)
{
    if (!c->wrong && c->room - c->at < count) {
        c->wrong = "it ends too early";
    }
    return !c->wrong;
}

void coder_bytes(struct coder *c, uint8_t *bytes, size_t count)
{
    if (c->writes) {
        if (c->at <= c->room && c->room - c->at >= count && count > 0) {
            memcpy(c->out + c->at, bytes, count);
        }
        c->at += count;
    } else if (has(c, count)) {
        memcpy(bytes, c->in + c->at, count);
        c->at += count;
    }
}

static uint64_t number(struct coder *c, uint64_t value, size_t count)
{
    uint8_t bytes[8] = {0};
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    coder_bytes(c, bytes, count);
    uint64_t result = 0;
    for (size_t i = 0; i < count; i++) {
        result |= (uint64_t)bytes[i] << (8 * i);
    }
    return c->wrong ? 0 : result;
}

void coder_u8(struct coder *c, uint8_t *value)
{
    uint64_t result = number(c, *value, 1);
    if (!c->writes) {
        *value = (uint8_t)result;
    }
}

void coder_u32(struct coder *c, uint32_t *value)
{
    uint64_t result = number(c, *value, 4);
    if (!c->writes) {
        *value = (uint32_t)result;
    }
}

void coder_u64(struct coder *c, uint64_t *value)
{
    uint64_t result = number(c, *value, 8);
    if (!c->writes) {
        *value = result;
    }
}

void coder_bool(struct coder *c, bool *value)
{
    uint8_t byte = c->writes && *value ? 1 : 0;
    coder_u8(c, &byte);
    if (byte > 1) {
        coder_fail(c, "a flag is neither 0 nor 1");
    }
    if (!c->writes) {
        *value = byte == 1;
    }
}

void coder_text(struct coder *c, struct wire_text *text)
{
    coder_u32(c, &text->count);
    if (text->count > WIRE_TEXT_MAX) {
        coder_fail(c, "a text is too long");
    } else if (c->writes) {
        coder_bytes(c, (uint8_t *)text->bytes, text->count);
        return;
    }
    if (!has(c, text->count)) {
        text->count = 0;
        return;
    }
    text->bytes = (const char *)c->in + c->at;
    c->at += text->count;
    if (memchr(text->bytes, '\0', text->count)) {
        coder_fail(c, "a text has a NUL");
    }
}

static void *take(struct coder *c, size_t bytes)
{
    struct wire_room *room = c->arrays;
    size_t unit = alignof(max_align_t);
    size_t whole = (bytes + unit - 1) / unit * unit;
    if (room->size_bytes - room->used_bytes < whole) {
        c->too_big = true;
        coder_fail(c, "its arrays need more room");
        return NULL;
    }
    void *memory = (char *)room->memory + room->used_bytes;
    room->used_bytes += whole;
    memset(memory, 0, whole);
    return memory;
}

void coder_array(struct coder *c, uint32_t *count, size_t element_bytes, size_t size_bytes,
                 void **list)
{
    coder_u32(c, count);
    if (c->writes) {
        return;
    }
    *list = NULL;
    if (c->wrong || *count > (c->room - c->at) / element_bytes) {
        coder_fail(c, "an array is longer than the frame");
        *count = 0;
    } else if (*count > 0) {
        *list = take(c, *count * size_bytes);
    }
    if (!*list) {
        *count = 0;
    }
}
