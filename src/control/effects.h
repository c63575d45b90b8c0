/* Builds the list of effects during a step. Not for use outside src/control.
 *
 * Layer: pure. Ownership: values are taken, texts are copied. An effect over CONTROL_EFFECTS_MAX is
 * dropped and `full` set: the next step, asked for at once, finds it still to be done.
 */
#pragma once

#include "control/control.h"

void control_add_create(struct control_effects *fx, enum control_resource resource, json_t *object);
/* Its fields in `patch` (taken) are to be as they are there. Name and uid are from the object. */
void control_add_update(struct control_effects *fx, enum control_resource resource,
                        const json_t *object, json_t *patch);
/* Takes name and uid from the object that is to go. */
void control_add_delete(struct control_effects *fx, enum control_resource resource,
                        const json_t *object);
/* Deletes by force, as the pod's node is lost, with the event that says so. */
void control_add_delete_lost(struct control_effects *fx, const json_t *pod,
                             const struct control_node *node);
void control_add_event(struct control_effects *fx, bool warning, const char *reason,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A Normal event which tells that the effect added last was carried out. */
void control_add_success(struct control_effects *fx, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void control_add_status(struct control_effects *fx, json_t *status);
void control_add_delete_job(struct control_effects *fx);
/* One of another list, object and all. */
void control_add_copy(struct control_effects *fx, const struct control_effect *effect);
/* Moves the effects of `from` to the end; it is empty afterwards. */
void control_add_all(struct control_effects *fx, struct control_effects *from);
/* Always fits; the step calls it last, and once. */
void control_add_wake(struct control_effects *fx, int64_t at_unix_ms);
