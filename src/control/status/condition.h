/* Sets and replaces the conditions of a job (training-operator v1.9.4, pkg/util/status.go).
 *
 * Layer: pure. Ownership: the status belongs to the caller.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct control_condition {
    const char *type;
    bool value;
    const char *reason;
    const char *message;
};

bool control_has(const json_t *status, const char *type);

/* Sets a condition. Does nothing if Failed is True, or if the type already has that status and
 * reason. Restarting replaces Running and vice versa; Failed and Succeeded set both to False. The
 * new condition is the last one, which kubectl prints as STATE. Returns 1: changed; 0: not;
 * negative: MUSTER_ENOMEM. */
int control_set(json_t *status, const struct control_condition *condition, int64_t now_unix_ms);

/* Removes the condition, as if it had never existed. */
void control_unset(json_t *status, const char *type);
