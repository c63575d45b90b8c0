/* Lays pieces of memory out as one row of bytes. Layer: comm; pure. See region.h. */
#include "comm/region/region.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int region_layout_init(struct region_layout *layout, const struct muster_elastic_piece *pieces,
                       size_t num_pieces, struct muster_err *err)
{
    struct region_layout made = {.spans = calloc(num_pieces + 1, sizeof *made.spans)};
    if (!made.spans) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for %zu pieces of a region", num_pieces);
    }
    for (size_t i = 0; i < num_pieces; i++) {
        if (pieces[i].size_bytes > 0) {
            made.spans[made.count++] =
                (struct region_span){pieces[i].memory, made.bytes, pieces[i].size_bytes};
            made.bytes += pieces[i].size_bytes;
        }
    }
    *layout = made;
    return 0;
}

void region_layout_done(struct region_layout *layout)
{
    free(layout->spans);
    *layout = (struct region_layout){0};
}

/* Finds the span that holds the byte at `offset`. */
static const struct region_span *span_of(const struct region_layout *layout, size_t offset)
{
    size_t low = 0, high = layout->count;
    assert(offset < layout->bytes);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (layout->spans[middle].first <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &layout->spans[low];
}

char *region_layout_find(const struct region_layout *layout, size_t offset, size_t bytes)
{
    if (bytes == 0) {
        return NULL;
    }
    const struct region_span *span = span_of(layout, offset);
    size_t inside = offset - span->first;
    return bytes <= span->bytes - inside ? span->memory + inside : NULL;
}

static void copy(const struct region_layout *layout, size_t offset, size_t bytes, char *to,
                 const char *from)
{
    for (size_t done = 0; done < bytes;) {
        const struct region_span *span = span_of(layout, offset + done);
        size_t inside = offset + done - span->first, left = span->bytes - inside;
        size_t count = bytes - done < left ? bytes - done : left;
        if (to) {
            memcpy(to + done, span->memory + inside, count);
        } else {
            memcpy(span->memory + inside, from + done, count);
        }
        done += count;
    }
}

void region_layout_gather(const struct region_layout *layout, size_t offset, size_t bytes, char *to)
{
    copy(layout, offset, bytes, to, NULL);
}

void region_layout_scatter(const struct region_layout *layout, size_t offset, size_t bytes,
                           const char *from)
{
    copy(layout, offset, bytes, NULL, from);
}
