/* What is captured at submit: the part of the submitter's environment that a rank may see.
 *
 * An allow-list: what makes programs be found and speak the user's language, never a stray RANK,
 * MASTER_ADDR or secret.
 *
 * Layer: pure (the environment comes in as data).
 */
#pragma once

#include <jansson.h>

/* {"NAME":"value"…} of the allowed ones of a NULL-terminated "NAME=value" list; new reference. */
json_t *submit_capture(char *const *environment);
