/* See jsonpath.h: the values of a template's expressions, as client-go's FindResults has them. */
#include "cli/show/jsonpath_nodes.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A range in a range in a range, or .. over a large document, may otherwise take for ever. */
enum { STEPS_MAX = 20 << 20 };

/* Intermediate values; each holds one reference. */
struct values {
    json_t **list;
    size_t count;
    size_t room;
};

struct evaluation {
    jsonpath_sink *sink;
    void *context;
    const struct jsonpath_node *nodes; /* of the template */
    size_t count;
    int begins; /* ranges that this expression opens */
    int inside; /* ranges that are open */
    int ends;   /* {end}s that have not closed one yet */
    size_t last_end;
    size_t steps;
    struct muster_err *err;
};

typedef int eval_fn(struct evaluation *e, const struct values *in, const struct jsonpath_node *node,
                    struct values *out);

static int eval_list(struct evaluation *e, const struct values *in,
                     const struct jsonpath_node *node, struct values *out);

static int add(struct evaluation *e, struct values *v, json_t *value)
{
    if (++e->steps > STEPS_MAX) {
        return muster_fail(e->err, MUSTER_ETOOBIG, "jsonpath: the template finds too many values");
    }
    if (v->count == v->room) {
        size_t room = v->room ? 2 * v->room : 8;
        json_t **list = realloc(v->list, room * sizeof *list);
        if (!list) {
            return err_no_memory(e->err);
        }
        v->list = list;
        v->room = room;
    }
    v->list[v->count++] = json_incref(value);
    return 0;
}

static void done(struct values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        json_decref(v->list[i]);
    }
    free(v->list);
    *v = (struct values){0};
}

static int eval_text(struct evaluation *e, const struct values *in,
                     const struct jsonpath_node *node, struct values *out)
{
    (void)in;
    json_t *text = json_string_nocheck(node->text);
    int r = text ? add(e, out, text) : err_no_memory(e->err);
    json_decref(text);
    return r;
}

static int eval_value(struct evaluation *e, const struct values *in,
                      const struct jsonpath_node *node, struct values *out)
{
    int r = 0;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        r = add(e, out, node->value);
    }
    return r;
}

static int eval_field(struct evaluation *e, const struct values *in,
                      const struct jsonpath_node *node, struct values *out)
{
    int r = 0;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        json_t *value = json_object_get(in->list[i], node->text);
        r = value ? add(e, out, value) : 0;
    }
    return r;
}

static int add_children(struct evaluation *e, const json_t *value, struct values *out)
{
    int r = 0;
    size_t i;
    const char *key;
    json_t *child;
    json_object_foreach ((json_t *)(uintptr_t)value, key, child) {
        r = r < 0 ? r : add(e, out, child);
    }
    json_array_foreach (value, i, child) {
        r = r < 0 ? r : add(e, out, child);
    }
    return r;
}

static int eval_wildcard(struct evaluation *e, const struct values *in,
                         const struct jsonpath_node *node, struct values *out)
{
    (void)node;
    int r = 0;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        r = add_children(e, in->list[i], out);
    }
    return r;
}

/* Adds a value that has children, then what is below it. The document's depth is bounded. */
static int descend(struct evaluation *e, json_t *value, struct values *out)
{
    size_t i;
    const char *key;
    json_t *child;
    if (json_object_size(value) + json_array_size(value) == 0) {
        return 0;
    }
    int r = add(e, out, value);
    json_object_foreach (value, key, child) {
        r = r < 0 ? r : descend(e, child, out);
    }
    json_array_foreach (value, i, child) {
        r = r < 0 ? r : descend(e, child, out);
    }
    return r;
}

static int eval_recursive(struct evaluation *e, const struct values *in,
                          const struct jsonpath_node *node, struct values *out)
{
    (void)node;
    int r = 0;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        r = descend(e, in->list[i], out);
    }
    return r;
}

/* --- [from:to:step] --- */

/* An empty slice of one list ends the evaluation of all lists, as in client-go. */
static int eval_array(struct evaluation *e, const struct values *in,
                      const struct jsonpath_node *node, struct values *out)
{
    for (size_t i = 0; i < in->count; i++) {
        const json_t *list = in->list[i];
        if (json_is_null(list)) {
            continue;
        }
        if (!json_is_array(list)) {
            return muster_fail(e->err, MUSTER_EINVAL, "jsonpath: [ ] is for lists; this is %s",
                               jsonpath_kind_of(list));
        }
        int64_t length = (int64_t)json_array_size(list);
        struct jsonpath_slice s = jsonpath_slice_of(node->bound, length);
        if (s.from == s.to) {
            return 0;
        }
        int r = jsonpath_slice_check(&s, length, e->err);
        for (int64_t at = s.from; r == 0 && at < s.to; at += s.step) {
            r = add(e, out, json_array_get(list, (size_t)at));
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int eval_union(struct evaluation *e, const struct values *in,
                      const struct jsonpath_node *node, struct values *out)
{
    int r = 0;
    for (size_t i = 0; i < node->count && r == 0; i++) {
        struct values part = {0};
        r = eval_list(e, in, &node->nodes[i], &part);
        for (size_t k = 0; k < part.count && r == 0; k++) {
            r = add(e, out, part.list[k]);
        }
        done(&part);
    }
    return r;
}

/* --- filters --- */

static int compare_sides(struct evaluation *e, const struct values *item,
                         const struct jsonpath_node *node, const struct values *left, bool *ret)
{
    struct values right = {0};
    int r = eval_list(e, item, &node->nodes[1], &right);
    if (r == 0 && (left->count > 1 || right.count > 1)) {
        r = muster_fail(e->err, MUSTER_EINVAL,
                        "jsonpath: a filter can only compare one element at a time");
    }
    if (r == 0 && right.count == 1) {
        r = jsonpath_compare(node->text, left->list[0], right.list[0], ret, e->err);
    }
    done(&right);
    return r;
}

static int passes(struct evaluation *e, json_t *element, const struct jsonpath_node *node,
                  bool *ret)
{
    const struct values item = {&element, 1, 1};
    struct values left = {0};
    struct muster_err unused = MUSTER_ERR_INIT;
    struct evaluation quiet = *e;
    *ret = false;
    assert(node->count >= 1);
    if (!node->text) { /* tests whether it exists; an error means that it does not */
        quiet.err = &unused;
        int r = eval_list(&quiet, &item, &node->nodes[0], &left);
        e->steps = quiet.steps;
        *ret = r == 0 && left.count > 0;
        done(&left);
        return 0;
    }
    int r = eval_list(e, &item, &node->nodes[0], &left);
    if (r == 0 && left.count > 0) {
        r = compare_sides(e, &item, node, &left, ret);
    }
    done(&left);
    return r;
}

static int eval_filter(struct evaluation *e, const struct values *in,
                       const struct jsonpath_node *node, struct values *out)
{
    for (size_t i = 0; i < in->count; i++) {
        if (!json_is_array(in->list[i])) {
            return muster_fail(e->err, MUSTER_EINVAL, "jsonpath: [?( )] filters lists; this is %s",
                               jsonpath_kind_of(in->list[i]));
        }
        size_t k;
        json_t *element;
        json_array_foreach (in->list[i], k, element) {
            bool pass = false;
            int r = passes(e, element, node, &pass);
            r = r == 0 && pass ? add(e, out, element) : r;
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

/* --- ranges --- */

static int eval_range(struct evaluation *e, const struct values *in,
                      const struct jsonpath_node *node, struct values *out)
{
    (void)node;
    int r = 0;
    e->begins++;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        r = add(e, out, in->list[i]);
    }
    return r;
}

static int eval_end(struct evaluation *e, const struct values *in, const struct jsonpath_node *node,
                    struct values *out)
{
    (void)in;
    (void)node;
    (void)out;
    if (e->inside == 0) {
        return muster_fail(e->err, MUSTER_EINVAL, "jsonpath: {end} without {range}");
    }
    e->ends++;
    return 0;
}

static int eval_node(struct evaluation *e, const struct values *in,
                     const struct jsonpath_node *node, struct values *out)
{
    static eval_fn *const functions[] = {
        [JSONPATH_LIST] = eval_list,
        [JSONPATH_TEXT] = eval_text,
        [JSONPATH_FIELD] = eval_field,
        [JSONPATH_WILDCARD] = eval_wildcard,
        [JSONPATH_RECURSIVE] = eval_recursive,
        [JSONPATH_ARRAY] = eval_array,
        [JSONPATH_FILTER] = eval_filter,
        [JSONPATH_UNION] = eval_union,
        [JSONPATH_VALUE] = eval_value,
        [JSONPATH_RANGE] = eval_range,
        [JSONPATH_END] = eval_end,
    };
    return functions[node->kind](e, in, node, out);
}

static int eval_list(struct evaluation *e, const struct values *in,
                     const struct jsonpath_node *node, struct values *out)
{
    struct values now = {0};
    int r = 0;
    for (size_t i = 0; i < in->count && r == 0; i++) {
        r = add(e, &now, in->list[i]);
    }
    for (size_t i = 0; i < node->count && r == 0; i++) {
        struct values next = {0};
        r = eval_node(e, &now, &node->nodes[i], &next);
        done(&now);
        now = next;
    }
    if (r < 0) {
        done(&now);
        return r;
    }
    *out = now;
    return 0;
}

static int find(struct evaluation *e, size_t from, json_t *value, bool silent);

/* Runs the nodes behind {range} once for each value; if there is no value, once without output, to
 * find its {end}. */
static int run_range(struct evaluation *e, size_t body, const struct values *over, bool silent)
{
    int r = 0;
    e->begins--;
    e->inside++;
    for (size_t i = 0; i < over->count && r == 0; i++) {
        r = find(e, body, over->list[i], silent);
    }
    if (over->count == 0) {
        r = find(e, body, NULL, true);
    }
    e->inside--;
    return r;
}

static int find(struct evaluation *e, size_t from, json_t *value, bool silent)
{
    const struct values in = {&value, value ? 1 : 0, 1};
    for (size_t i = from; i < e->count; i++) {
        struct values found = {0};
        int r = ++e->steps > STEPS_MAX
                    ? muster_fail(e->err, MUSTER_ETOOBIG, "jsonpath: the evaluation takes too long")
                    : eval_node(e, &in, &e->nodes[i], &found);
        bool closed = r == 0 && e->ends > 0 && e->ends <= e->inside;
        if (closed) {
            e->ends--;
            e->last_end = i;
        } else if (r == 0 && e->begins > 0) {
            r = run_range(e, i + 1, &found, silent);
            i = e->last_end > i ? e->last_end : i;
        } else if (r == 0 && !silent) {
            r = e->sink(e->context, found.list, found.count);
        }
        done(&found);
        if (r < 0 || closed) {
            return r;
        }
    }
    return 0;
}

int jsonpath_find(const struct jsonpath *path, const json_t *doc, jsonpath_sink *sink,
                  void *context, struct muster_err *err)
{
    struct evaluation e = {.sink = sink,
                           .context = context,
                           .nodes = path->root.nodes,
                           .count = path->root.count,
                           .err = err};
    return find(&e, 0, (json_t *)(uintptr_t)doc, false);
}
