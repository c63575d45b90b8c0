/* One binary tree over numbered parts: the left child of a node of n > 1 parts is the largest
 * power of two below n. Sums along this tree have the same bits, however the parts are spread over
 * ranks.
 *
 * Layer: pure. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stddef.h>

struct tree_span {
    size_t first;
    size_t count;
};

enum { TREE_MAX_COVER = 128 }; /* twice the bits of a size */

/* Returns how many of the parts the left child has; count > 1. */
size_t tree_left(size_t count);

/* Fills ret with the largest nodes of the tree over `total` parts that lie inside the span, from
 * left to right. Returns their number, at most TREE_MAX_COVER. */
size_t tree_cover(size_t total, struct tree_span span, struct tree_span *ret);
