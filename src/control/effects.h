/* Builds the list of effects during a step. Not for use outside src/control.
 *
 * Layer: pure. Ownership: values are taken, texts are copied. An effect over CONTROL_EFFECTS_MAX is
 * dropped and `full` set: the next step, asked for at once, finds it still to be done.
 */
#pragma once

#include "control/control.h"

void control_add_create(struct control_effects *fx, enum control_resource resource, json_t *object);
/* Adds an UPDATE that sets the fields in `patch` (taken). Name and uid are from the object. */
void control_add_update(struct control_effects *fx, enum control_resource resource,
                        const json_t *object, json_t *patch);
/* Adds a DELETE; takes name and uid from the object to delete. */
void control_add_delete(struct control_effects *fx, enum control_resource resource,
                        const json_t *object);
/* Adds a DELETE by force, because the pod's node is lost, and the event that reports it. */
void control_add_delete_lost(struct control_effects *fx, const json_t *pod,
                             const struct control_node *node);
void control_add_event(struct control_effects *fx, bool warning, const char *reason,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds a Normal event which reports that the effect added last was carried out. */
void control_add_success(struct control_effects *fx, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void control_add_status(struct control_effects *fx, json_t *status);
void control_add_delete_job(struct control_effects *fx);
/* Adds a copy of an effect of another list; the object is shared. */
void control_add_copy(struct control_effects *fx, const struct control_effect *effect);
/* Moves the effects of `from` to the end; `from` is empty afterwards. */
void control_add_all(struct control_effects *fx, struct control_effects *from);
/* Adds WAKE_AT, which always fits; the step calls this last, and once. */
void control_add_wake(struct control_effects *fx, int64_t at_unix_ms);
