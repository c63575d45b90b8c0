/* The gradients of a step that this worker has computed so far, one slot for each micro-batch, each
 * scaled by the micro-batch's share of the step's records. They are kept out of place, so that a
 * step can be tried again by other workers than it began with: what was computed is not computed
 * again.
 *
 * Layer: worker (part of libmuster). Memory: the caller's struct; passes_done. Thread: the user's.
 */
#pragma once

#include "client/plan/plan.h"

#include <muster/comm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct passes {
    enum muster_type type;   /* as the user has it */
    enum muster_type summed; /* MUSTER_F32 for bf16 */
    size_t count;
    size_t extra_bytes;
    uint64_t version; /* the step's */
    struct plan_share span;
    char *slots; /* of the span's micro-batches, one after the other */
    char *extras;
    uint32_t *has; /* of each, how many of its positions its slot has, from the front */
    bool *whole;
    size_t room; /* of slots and extras, in micro-batches */
};

void passes_init(struct passes *passes, size_t extra_bytes);
void passes_done(struct passes *passes);

/* Gradients have this shape from now on. MUSTER_EMISMATCH: those that are kept have another. */
int passes_shape(struct passes *passes, size_t count, enum muster_type type,
                 struct muster_err *err);
/* This worker's share of this step; what it has of them stays. Where the step is another, all are
 * dropped. MUSTER_ENOMEM. */
int passes_move(struct passes *passes, uint64_t version, struct plan_share share,
                struct muster_err *err);
void passes_clear(struct passes *passes);

/* `count` elements, each times the share; of bf16 the result is f32. */
void passes_scale(enum muster_type type, const void *from, void *to, size_t count, double share);
/* A gradient of the next records of a micro-batch, and what the step's weight of it is. */
struct passes_part {
    uint32_t micro_batch;
    uint32_t positions;
    bool last; /* the micro-batch has no more */
    const void *gradient;
    double share;
    const void *extra; /* NULL: zeros. Of several parts the last one's is kept */
};
/* Keeps it, added to what there is. What lies outside of the span is not kept. */
void passes_put(struct passes *passes, const struct passes_part *part);
/* A micro-batch of the span of which nothing is computed: zeros. */
void passes_put_none(struct passes *passes, uint32_t micro_batch);
/* Whether it has that pass of that step, */
bool passes_has(const struct passes *passes, uint64_t version, uint32_t micro_batch);
/* and how many of its positions. */
uint32_t passes_positions(const struct passes *passes, uint64_t version, uint32_t micro_batch);

/* The sum as the user has it, of values as they are summed. `to` may be `from`. */
void passes_narrow(const struct passes *passes, const void *from, void *to);
