/* Messages of an API server about a field. The field is `below` the place where the check is
 * (NULL: it is that place). For the files of this folder.
 *
 * Layer: services, pure.
 */
#pragma once

#include "job/check/context.h"

/* `why`: what there must be, or NULL. */
void say_required(struct check *c, const char *below, const char *why);
void say_duplicate(struct check *c, const char *below, const char *text);
void say_forbidden(struct check *c, const char *below, const char *why);
/* `must` is a sentence about the value. */
void say_invalid(struct check *c, const char *below, const json_t *value, const char *must);
void say_invalid_text(struct check *c, const char *below, const char *text, const char *must);

/* The text at object[key], if there is one, must be one of the words (separated by blanks), or have
 * the form. */
void say_unless_one_of(struct check *c, const json_t *object, const char *key, const char *words);
void say_unless_formed(struct check *c, const json_t *object, const char *key,
                       enum schema_form form);

/* The number at object[key], 0 if there is none. */
void say_unless_port(struct check *c, const json_t *object, const char *key);
/* A number or the name of a port, which is there. */
void say_unless_number_or_name_of_port(struct check *c, const char *below, const json_t *port);
/* A selector, whose values are labels. */
void say_unless_labels(struct check *c, const char *below, const json_t *labels);
/* An IPv4 or IPv6 address. */
void say_unless_address(struct check *c, const char *below, const char *text);
