/* Writes the effects of one control step to the store: all that can be, in order, in one
 * transaction.
 *
 * Layer: program (daemon). One thread.
 */
#pragma once

#include "control/control.h"
#include "store/store.h"

/* Stops at the first effect that the store refuses (what came before is kept, and an event tells of
 * it). *ret_wake_unix_ms is the step's WAKE_AT, untouched without one. MUSTER_ECONFLICT: the job
 * changed since the view. */
int effects_apply(struct store *store, const struct control_view *view,
                  const struct control_effects *effects, int64_t *ret_wake_unix_ms,
                  struct muster_err *err);
