/* The tree of logical parts. Layer: pure. */
#include "schedule/tree.h"

#include <assert.h>

size_t tree_left(size_t count)
{
    assert(count > 1);
    size_t left = 1;
    while (left < count - left) {
        left *= 2;
    }
    return left;
}

static size_t cover(struct tree_span node, struct tree_span span, struct tree_span *ret, size_t num)
{
    size_t end = node.first + node.count, span_end = span.first + span.count;
    if (node.count == 0 || end <= span.first || node.first >= span_end) {
        return num;
    }
    if (node.first >= span.first && end <= span_end) {
        assert(num < TREE_MAX_COVER);
        ret[num] = node;
        return num + 1;
    }
    size_t left = tree_left(node.count);
    num = cover((struct tree_span){node.first, left}, span, ret, num);
    return cover((struct tree_span){node.first + left, node.count - left}, span, ret, num);
}

size_t tree_cover(size_t total, struct tree_span span, struct tree_span *ret)
{
    return cover((struct tree_span){0, total}, span, ret, 0);
}
