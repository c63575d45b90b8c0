/* See jsonpath_parser.h: [0], [1:3], ['key'] and [a,b]. */
#include "cli/show/jsonpath_parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads "-3", ":-3" or ":", and moves *at behind it. */
static bool read_bound(const char **at, const char *end, bool colon, struct jsonpath_bound *ret)
{
    const char *from = *at;
    *ret = (struct jsonpath_bound){0};
    if (colon && (from == end || *from != ':')) {
        return true;
    }
    from += colon;
    const char *to = from + (from < end && *from == '-');
    while (to < end && isdigit((unsigned char)*to)) {
        to++;
    }
    *at = to;
    if (to == from) {
        return true;
    }
    char *after;
    errno = 0;
    ret->value = strtoll(from, &after, 10);
    ret->known = true;
    return after == to && !errno && llabs(ret->value) < INT32_MAX;
}

static int parse_slice(struct jsonpath_parser *p, const char *from, const char *to,
                       struct jsonpath_node *list)
{
    struct jsonpath_bound bound[3];
    const char *at = from;
    if (to - from == 1 && *from == '*') {
        bound[0] = bound[1] = bound[2] = (struct jsonpath_bound){0};
        at = to;
    } else {
        bool good = read_bound(&at, to, false, &bound[0]);
        bool has_to = at < to;
        good = good && read_bound(&at, to, true, &bound[1]) && read_bound(&at, to, true, &bound[2]);
        if (!good || at != to) {
            return jsonpath_fault(p, from, "this is no index; [0], [-1], [1:3], [*], ['key'] are");
        }
        if (!has_to) {
            bound[1] = (struct jsonpath_bound){true, true, bound[0].value + 1};
        }
    }
    struct jsonpath_node *node = jsonpath_append(p, list, JSONPATH_ARRAY);
    if (node) {
        memcpy(node->bound, bound, sizeof bound);
    }
    return node ? 0 : MUSTER_ETOOBIG;
}

/* Parses ['key'], which means .key with its backslashes. */
static int parse_key(struct jsonpath_parser *p, const char *from, const char *to,
                     struct jsonpath_node *list)
{
    struct jsonpath_parser part = *p;
    part.at = from;
    part.end = to;
    int r = jsonpath_parse_name(&part, list);
    p->nodes = part.nodes;
    while (r == 0 && part.at < part.end) {
        if (*part.at != '.') {
            return jsonpath_fault(&part, part.at, "write this sign with a backslash");
        }
        part.at++;
        r = jsonpath_parse_name(&part, list);
        p->nodes = part.nodes;
    }
    return r;
}

static int parse_subscript(struct jsonpath_parser *p, const char *from, const char *to,
                           struct jsonpath_node *list)
{
    size_t length = (size_t)(to - from);
    bool quoted =
        length >= 2 && *from == '\'' && to[-1] == '\'' && !memchr(from + 1, '\'', length - 2);
    return quoted ? parse_key(p, from + 1, to - 1, list) : parse_slice(p, from, to, list);
}

static int parse_union(struct jsonpath_parser *p, const char *from, const char *to,
                       struct jsonpath_node *list)
{
    struct jsonpath_node *all = jsonpath_append(p, list, JSONPATH_UNION);
    if (!all) {
        return MUSTER_ETOOBIG;
    }
    struct jsonpath_node made = {.kind = JSONPATH_UNION}; /* apart, because `list` may move */
    int r = 0;
    while (r == 0 && from <= to) {
        const char *comma = memchr(from, ',', (size_t)(to - from));
        const char *stop = comma ? comma : to;
        const char *last = stop;
        while (from < last && *from == ' ') {
            from++;
        }
        while (last > from && last[-1] == ' ') {
            last--;
        }
        struct jsonpath_node *part = jsonpath_append(p, &made, JSONPATH_LIST);
        r = part ? parse_subscript(p, from, last, part) : MUSTER_ETOOBIG;
        from = stop + 1;
    }
    list->nodes[list->count - 1] = made;
    return r;
}

int jsonpath_parse_array(struct jsonpath_parser *p, struct jsonpath_node *list)
{
    const char *from = ++p->at;
    while (!jsonpath_at_end(p) && *p->at != ']') {
        p->at++;
    }
    if (jsonpath_at_end(p)) {
        return jsonpath_fault(p, from - 1, "the bracket is not closed");
    }
    const char *to = p->at++;
    bool several = memchr(from, ',', (size_t)(to - from)) != NULL;
    return several ? parse_union(p, from, to, list) : parse_subscript(p, from, to, list);
}
