/* The state of the parser of templates, and what jsonpath_parse.c and jsonpath_array.c both need.
 */
#pragma once

#include "cli/show/jsonpath_nodes.h"

#include <stddef.h>

struct jsonpath_parser {
    const char *start; /* of the whole template: positions count from here */
    const char *at;
    const char *end;
    int depth;
    size_t nodes;
    struct muster_err *err;
};

/* Fails with MUSTER_EINVAL and "jsonpath: at character N: WHAT". */
int jsonpath_fault(const struct jsonpath_parser *p, const char *at, const char *what);

/* Appends a node to `list`, which moves the others; NULL with an error if there are too many. */
struct jsonpath_node *jsonpath_append(struct jsonpath_parser *p, struct jsonpath_node *list,
                                      enum jsonpath_kind kind);

/* The same for a kind that has text. Returns 0, or the error. */
int jsonpath_append_text(struct jsonpath_parser *p, struct jsonpath_node *list,
                         enum jsonpath_kind kind, const char *text, size_t length);

/* Whether the parser is at the end of the text or of its line. */
bool jsonpath_at_end(const struct jsonpath_parser *p);

/* Whether this character ends a name, a number or a word of the language. */
bool jsonpath_ends_word(char c);

/* Parses a name behind its dot. */
int jsonpath_parse_name(struct jsonpath_parser *p, struct jsonpath_node *list);

/* Parses what is in [ ]: an index, a slice, a key, or several of them (jsonpath_array.c). */
int jsonpath_parse_array(struct jsonpath_parser *p, struct jsonpath_node *list);
