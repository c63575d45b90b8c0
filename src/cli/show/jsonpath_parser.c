/* What reading a template and its subscripts have in common. See jsonpath_parser.h. */
#include "cli/show/jsonpath_parser.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 4096, NODES_MAX = 4096 };

int jsonpath_fault(const struct jsonpath_parser *p, const char *at, const char *what)
{
    return muster_fail(p->err, MUSTER_EINVAL, "jsonpath: at character %zu: %s",
                       (size_t)(at - p->start) + 1, what);
}

struct jsonpath_node *jsonpath_append(struct jsonpath_parser *p, struct jsonpath_node *list,
                                      enum jsonpath_kind kind)
{
    struct jsonpath_node *nodes =
        p->nodes < NODES_MAX ? realloc(list->nodes, (list->count + 1) * sizeof *nodes) : NULL;
    if (!nodes) {
        muster_fail(p->err, MUSTER_ETOOBIG, "jsonpath: more than %d parts", NODES_MAX);
        return NULL;
    }
    p->nodes++;
    list->nodes = nodes;
    nodes[list->count] = (struct jsonpath_node){.kind = kind};
    return &nodes[list->count++];
}

int jsonpath_append_text(struct jsonpath_parser *p, struct jsonpath_node *list,
                         enum jsonpath_kind kind, const char *text, size_t length)
{
    struct jsonpath_node *node = jsonpath_append(p, list, kind);
    if (!node) {
        return MUSTER_ETOOBIG;
    }
    node->text = strndup(text, length);
    return node->text ? 0 : err_no_memory(p->err);
}

bool jsonpath_at_end(const struct jsonpath_parser *p)
{
    return p->at >= p->end || *p->at == '\n' || *p->at == '\r';
}

bool jsonpath_ends_word(char c)
{
    return c == '\0' || strchr(".,[]$@{} \t\r\n", c) != NULL;
}

/* Reads up to the next terminator that has no backslash before it. */
int jsonpath_parse_name(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    char name[NAME_BYTES_MAX];
    size_t used = 0;
    const char *from = p->at;
    while (p->at < p->end && !jsonpath_ends_word(*p->at)) {
        p->at += *p->at == '\\' && p->at + 1 < p->end;
        if (used == sizeof name - 1) {
            return jsonpath_fault(p, from, "the name is too long");
        }
        name[used++] = *p->at++;
    }
    bool all = p->at - from == 1 && *from == '*';
    if (all) {
        return jsonpath_append(p, list, JSONPATH_WILDCARD) ? 0 : MUSTER_ETOOBIG;
    }
    return jsonpath_append_text(p, list, JSONPATH_FIELD, name, used);
}
