/* See code.h. */
#include "commit/code.h"

#include "core/recording.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static size_t code_event(const struct commit_event *e, uint8_t *ret)
{
    const uint64_t fields[] = {e->kind,        e->term,    e->generation, e->version, e->lineage,
                               e->incarnation, e->restore, e->boundary,   e->ended};
    recording_code_numbers(fields, LENGTH(fields), ret);
    _Static_assert(sizeof fields == COMMIT_CODE_EVENT_BYTES, "each field");
    return sizeof fields;
}

static size_t code_member(const struct commit_member *m, uint8_t *ret)
{
    const uint64_t fields[] = {m->incarnation, m->term,   m->generation, m->lineage, m->version,
                               m->acked,       m->stage,  m->connected,  m->entered, m->reduced,
                               m->prepared,    m->loaded, m->boundary,   m->leaving, m->complete};
    recording_code_numbers(fields, LENGTH(fields), ret);
    _Static_assert(sizeof fields == COMMIT_CODE_MEMBER_BYTES, "each field");
    return sizeof fields;
}

static size_t code_effect(const struct commit_effect *e, uint8_t *ret)
{
    const uint64_t fields[] = {e->kind,        e->generation, e->version,
                               e->incarnation, e->finished,   e->ended};
    recording_code_numbers(fields, LENGTH(fields), ret);
    _Static_assert(sizeof fields == COMMIT_CODE_EFFECT_BYTES, "each field");
    return sizeof fields;
}

size_t commit_code(const struct commit_event *event, const struct commit_effects *effects,
                   const struct commit_member *after, uint8_t *ret)
{
    size_t count = code_event(event, ret);
    count += code_member(after, ret + count);
    for (size_t i = 0; i < effects->count; i++) {
        count += code_effect(&effects->list[i], ret + count);
    }
    return count;
}

bool commit_code_read(const uint8_t *bytes, size_t count, struct commit_event *ret)
{
    uint64_t fields[COMMIT_CODE_EVENT_BYTES / 8];
    for (size_t i = 0; i < LENGTH(fields) && count >= COMMIT_CODE_EVENT_BYTES; i++) {
        fields[i] = recording_number(bytes + 8 * i);
    }
    if (count < COMMIT_CODE_EVENT_BYTES || fields[0] >= COMMIT_EVENT_KINDS) {
        return false;
    }
    *ret = (struct commit_event){.kind = (enum commit_event_kind)fields[0],
                                 .term = fields[1],
                                 .generation = fields[2],
                                 .version = fields[3],
                                 .lineage = fields[4],
                                 .incarnation = fields[5],
                                 .restore = fields[6] != 0,
                                 .boundary = fields[7] != 0,
                                 .ended = fields[8] != 0};
    return true;
}
