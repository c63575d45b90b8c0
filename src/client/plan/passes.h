/* The gradients of a step that this worker has computed so far, one slot for each micro-batch, each
 * scaled by the micro-batch's share of the step's records. They are kept in separate memory, so
 * that a step can be tried again by other workers than it began with, and no micro-batch is
 * computed again.
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
    enum muster_type type;   /* the type that the user gives */
    enum muster_type summed; /* MUSTER_F32 for bf16 */
    size_t count;
    size_t extra_bytes;
    uint64_t version; /* of the step */
    struct plan_share span;
    char *slots; /* the slots of the span's micro-batches, one after the other */
    char *extras;
    uint32_t *has; /* how many of its positions each slot has, from the front */
    bool *whole;
    size_t room; /* number of micro-batches that slots and extras have memory for */
};

void passes_init(struct passes *passes, size_t extra_bytes);
void passes_done(struct passes *passes);

/* Sets the shape of all gradients from now on. MUSTER_EMISMATCH: kept gradients have another
 * one. */
int passes_shape(struct passes *passes, size_t count, enum muster_type type,
                 struct muster_err *err);
/* Sets this worker's share of a step; gradients that it has of the share are kept. For another step
 * all are dropped. MUSTER_ENOMEM. */
int passes_move(struct passes *passes, uint64_t version, struct plan_share share,
                struct muster_err *err);
void passes_clear(struct passes *passes);

/* Multiplies `count` elements by the share; for bf16 the result is f32. */
void passes_scale(enum muster_type type, const void *from, void *to, size_t count, double share);
/* A gradient of the next records of a micro-batch, and its weight in the step. */
struct passes_part {
    uint32_t micro_batch;
    uint32_t positions;
    bool last; /* this part completes the micro-batch */
    const void *gradient;
    double share;
    const void *extra; /* NULL: zeros. Of several parts, the extra of the last one is kept */
};
/* Adds the gradient to the slot of its micro-batch. A part outside of the span is ignored. */
void passes_put(struct passes *passes, const struct passes_part *part);
/* Puts zeros for a micro-batch of the span of which nothing is computed. */
void passes_put_none(struct passes *passes, uint32_t micro_batch);
/* Whether the whole pass of that step is kept. */
bool passes_has(const struct passes *passes, uint64_t version, uint32_t micro_batch);
/* Returns how many positions of that pass are kept. */
uint32_t passes_positions(const struct passes *passes, uint64_t version, uint32_t micro_batch);

/* Converts sums to the type of the user. `to` may be `from`. */
void passes_narrow(const struct passes *passes, const void *from, void *to);
