/* Kinds of objects that muster does not read, and what to use instead.
 *
 * Layer: pure. Static texts only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Writes what `object`, of a kind that muster does not read, is ("TrainJob (Kubeflow Trainer) is
 * not supported"), and a hint what to do. Both are always written. */
void kinds_explain(const json_t *object, char *ret_message, size_t message_bytes, char *ret_hint,
                   size_t hint_bytes);
