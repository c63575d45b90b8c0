/* See passes.h. */
#include "client/plan/passes.h"

#include "comm/reduce/half.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void passes_init(struct passes *p, size_t extra_bytes)
{
    *p = (struct passes){.extra_bytes = extra_bytes};
}

void passes_done(struct passes *p)
{
    free(p->slots);
    free(p->extras);
    free(p->has);
    free(p->whole);
    *p = (struct passes){0};
}

void passes_clear(struct passes *p)
{
    for (uint32_t i = 0; i < p->span.count; i++) {
        p->has[i] = 0;
        p->whole[i] = false;
    }
    p->version = 0;
    p->span.count = 0;
}

static bool has_any(const struct passes *p)
{
    for (uint32_t i = 0; i < p->span.count; i++) {
        if (p->has[i]) {
            return true;
        }
    }
    return false;
}

static size_t slot_bytes(const struct passes *p)
{
    return p->count * muster_type_bytes(p->summed);
}

int passes_shape(struct passes *p, size_t count, enum muster_type type, struct muster_err *err)
{
    if (type != MUSTER_F32 && type != MUSTER_F64 && type != MUSTER_BF16) {
        return muster_fail(err, MUSTER_EINVAL, "a gradient is of type f32, f64 or bf16");
    }
    if (p->count == count && p->type == type) {
        return 0;
    }
    if (has_any(p)) {
        return muster_fail(err, MUSTER_EMISMATCH,
                           "a pass brings %zu %s, the passes of the step before it %zu %s", count,
                           muster_type_name(type), p->count, muster_type_name(p->type));
    }
    if (count > (size_t)PTRDIFF_MAX / 8 / (p->room + 1)) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for gradients of %zu elements", count);
    }
    struct passes fresh = {.type = type,
                           .summed = type == MUSTER_BF16 ? MUSTER_F32 : type,
                           .count = count,
                           .extra_bytes = p->extra_bytes};
    passes_done(p);
    *p = fresh;
    return 0;
}

/* Copies the slots that both spans have. */
static void carry_over(const struct passes *from, struct passes *to)
{
    size_t bytes = slot_bytes(from);
    for (uint32_t i = 0; i < to->span.count; i++) {
        uint32_t old = to->span.first + i - from->span.first;
        if (to->span.first + i >= from->span.first && old < from->span.count && from->has[old]) {
            memcpy(to->slots + i * bytes, from->slots + old * bytes, bytes);
            memcpy(to->extras + i * to->extra_bytes, from->extras + old * to->extra_bytes,
                   to->extra_bytes);
            to->has[i] = from->has[old];
            to->whole[i] = from->whole[old];
        }
    }
}

static int allocate(struct passes *p, struct muster_err *err)
{
    p->room = p->span.count;
    p->slots = malloc((p->room + 1) * slot_bytes(p) + 1);
    p->extras = malloc(p->room * p->extra_bytes + 1);
    p->has = calloc(p->room + 1, sizeof *p->has);
    p->whole = calloc(p->room + 1, sizeof *p->whole);
    if (!p->slots || !p->extras || !p->has || !p->whole) {
        passes_done(p);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for the gradients of %u passes",
                           p->span.count);
    }
    return 0;
}

int passes_move(struct passes *p, uint64_t version, struct plan_share share, struct muster_err *err)
{
    bool same = p->version == version && p->span.first == share.first;
    if (same && p->span.count == share.count && p->has) {
        return 0;
    }
    bool keeps = p->version == version && has_any(p);
    if (!keeps && p->has && share.count <= p->room) {
        memset(p->has, 0, share.count * sizeof *p->has);
        memset(p->whole, 0, share.count * sizeof *p->whole);
        p->version = version;
        p->span = share;
        return 0;
    }
    struct passes next = *p;
    next.version = version;
    next.span = share;
    int r = allocate(&next, err);
    if (r < 0) {
        return r;
    }
    if (keeps) {
        carry_over(p, &next);
    }
    passes_done(p);
    *p = next;
    return 0;
}

static void scale_f32(const float *from, float *to, size_t count, double share)
{
    float by = (float)share;
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i] * by;
    }
}

static void scale_f64(const double *from, double *to, size_t count, double share)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i] * share;
    }
}

static void scale_bf16(const uint16_t *from, float *to, size_t count, double share)
{
    float by = (float)share;
    for (size_t i = 0; i < count; i++) {
        to[i] = bfloat_to_float(from[i]) * by;
    }
}

void passes_scale(enum muster_type type, const void *from, void *to, size_t count, double share)
{
    if (type == MUSTER_F32) {
        scale_f32(from, to, count, share);
    } else if (type == MUSTER_F64) {
        scale_f64(from, to, count, share);
    } else {
        scale_bf16(from, to, count, share);
    }
}

static void add(const struct passes *p, char *slot, const void *more)
{
    for (size_t i = 0; p->summed == MUSTER_F32 && i < p->count; i++) {
        ((float *)(void *)slot)[i] += ((const float *)more)[i];
    }
    for (size_t i = 0; p->summed == MUSTER_F64 && i < p->count; i++) {
        ((double *)(void *)slot)[i] += ((const double *)more)[i];
    }
}

/* Scales the first part in place, and the others in the last slot of the room, which is reserved
 * for them. */
void passes_put(struct passes *p, const struct passes_part *part)
{
    uint32_t at = part->micro_batch - p->span.first;
    if (part->micro_batch < p->span.first || at >= p->span.count) {
        return;
    }
    char *slot = p->slots + at * slot_bytes(p), *beside = p->slots + p->room * slot_bytes(p);
    passes_scale(p->type, part->gradient, p->has[at] == 0 ? slot : beside, p->count, part->share);
    if (p->has[at] > 0) {
        add(p, slot, beside);
    }
    char *place = p->extras + at * p->extra_bytes;
    if (part->extra) {
        memcpy(place, part->extra, p->extra_bytes);
    } else {
        memset(place, 0, p->extra_bytes);
    }
    p->has[at] += part->positions;
    p->whole[at] = part->last;
}

void passes_put_none(struct passes *p, uint32_t micro_batch)
{
    uint32_t at = micro_batch - p->span.first;
    memset(p->slots + at * slot_bytes(p), 0, slot_bytes(p));
    memset(p->extras + at * p->extra_bytes, 0, p->extra_bytes);
    p->whole[at] = true;
}

uint32_t passes_positions(const struct passes *p, uint64_t version, uint32_t micro_batch)
{
    uint32_t at = micro_batch - p->span.first;
    bool known = p->version == version && micro_batch >= p->span.first && at < p->span.count;
    return known && p->has ? p->has[at] : 0;
}

bool passes_has(const struct passes *p, uint64_t version, uint32_t micro_batch)
{
    return passes_positions(p, version, micro_batch) > 0 && p->whole[micro_batch - p->span.first];
}

void passes_narrow(const struct passes *p, const void *from, void *to)
{
    const float *wide = from;
    uint16_t *half = to;
    if (p->type == MUSTER_BF16) {
        for (size_t i = 0; i < p->count; i++) {
            half[i] = bfloat_from_float(wide[i]);
        }
    } else if (from != to) {
        memcpy(to, from, slot_bytes(p));
    }
}
