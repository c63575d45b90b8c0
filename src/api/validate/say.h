/* Messages of an API server about a field. The field is `below` the place where the check is
 * (NULL: it is that place). For the files of this folder.
 *
 * Layer: services, pure.
 */
#pragma once

#include "job/check/context.h"

/* `why` says what is required, or is NULL. */
void say_required(struct check *c, const char *below, const char *why);
void say_duplicate(struct check *c, const char *below, const char *text);
void say_forbidden(struct check *c, const char *below, const char *why);
/* `must` is a sentence about what the value must be. */
void say_invalid(struct check *c, const char *below, const json_t *value, const char *must);
void say_invalid_text(struct check *c, const char *below, const char *text, const char *must);

/* The text at object[key], if present, must be one of the words (separated by blanks), or must have
 * the form. */
void say_unless_one_of(struct check *c, const json_t *object, const char *key, const char *words);
void say_unless_formed(struct check *c, const json_t *object, const char *key,
                       enum schema_form form);

/* The number at object[key], or 0 if absent, must be a port. */
void say_unless_port(struct check *c, const json_t *object, const char *key);
/* `port`, which is present, must be a number or the name of a port. */
void say_unless_number_or_name_of_port(struct check *c, const char *below, const json_t *port);
/* `labels` is a selector, whose values must be labels. */
void say_unless_labels(struct check *c, const char *below, const json_t *labels);
/* `text` must be an IPv4 or IPv6 address. */
void say_unless_address(struct check *c, const char *below, const char *text);
