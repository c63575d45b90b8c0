/* Waits for a condition of an object: for wait, delete, and run when it replaces a job.
 *
 * Layer: cli. Runs the loop until the condition holds.
 */
#pragma once

#include "cli/command/cli.h"

/* Whether the condition holds; object is NULL if no object has that name (any more). */
typedef bool waiter_condition(void *context, const json_t *object);

/* Waits for the condition. Returns 0 when it holds; MUSTER_ETIMEDOUT at until_ms (monotonic;
 * INT64_MAX: never). */
int waiter_run(struct cli *cli, const struct kube_ref *ref, waiter_condition *condition,
               void *context, int64_t until_ms);

/* A condition: the object with the uid in `context` (const char *; "": any) is gone. */
bool waiter_gone(void *context, const json_t *object);
