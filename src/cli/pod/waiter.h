/* Waits for a condition of an object: for wait, delete, and run when it replaces a job.
 *
 * Layer: cli. Runs the loop until the condition holds.
 */
#pragma once

#include "cli/command/cli.h"

/* object is NULL when there is none of that name (any more). */
typedef bool waiter_condition(void *context, const json_t *object);

/* 0 when the condition held; MUSTER_ETIMEDOUT at until_ms (monotonic; INT64_MAX: never). */
int waiter_run(struct cli *cli, const struct kube_ref *ref, waiter_condition *condition,
               void *context, int64_t until_ms);

/* A condition: the object of the uid in `context` (const char *; "" any) is gone. */
bool waiter_gone(void *context, const json_t *object);
