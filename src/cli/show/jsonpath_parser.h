/* The state of the parser of templates, for jsonpath_parse.c and jsonpath_array.c. */
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

/* MUSTER_EINVAL: "jsonpath: at character N: WHAT". */
int jsonpath_fault(const struct jsonpath_parser *p, const char *at, const char *what);

/* A new last node of `list`, which moves the others; NULL with an error when there are too many. */
struct jsonpath_node *jsonpath_append(struct jsonpath_parser *p, struct jsonpath_node *list,
                                      enum jsonpath_kind kind);

/* At the end of the text or of its line. */
bool jsonpath_at_end(const struct jsonpath_parser *p);

/* A name behind its point. */
int jsonpath_parse_name(struct jsonpath_parser *p, struct jsonpath_node *list);

/* What stands in [ ]: an index, a slice, a key, or several of them. */
int jsonpath_parse_array(struct jsonpath_parser *p, struct jsonpath_node *list);
