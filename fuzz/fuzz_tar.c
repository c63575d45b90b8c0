/* An archive as a pod of any image may send it (cli/copy/tar.h), in pieces of any size. */
#include "cli/copy/tar.h"
#include "core/hash.h"
#include "invariant.h"
#include "pieces.h"

struct heard {
    uint64_t sum; /* of all entries and bytes, in their order */
    uint64_t left;
    bool in_file;
};

static void add(struct heard *heard, const void *bytes, size_t count)
{
    heard->sum = hash_bytes(heard->sum, bytes, count);
}

static int on_entry(void *context, const struct tar_entry *entry, struct muster_err *err)
{
    struct heard *heard = context;
    (void)err;
    invariant(!heard->in_file, "a file ends before the next entry", "");
    add(heard, entry->name, strlen(entry->name) + 1);
    add(heard, entry->target, strlen(entry->target) + 1);
    heard->in_file = entry->kind == TAR_FILE;
    heard->left = entry->bytes;
    return 0;
}

static int on_data(void *context, const char *bytes, size_t count, struct muster_err *err)
{
    struct heard *heard = context;
    (void)err;
    invariant(heard->in_file && count > 0 && count <= heard->left, "a file has its size", "");
    heard->left -= count;
    add(heard, bytes, count);
    return 0;
}

static int on_end(void *context, struct muster_err *err)
{
    struct heard *heard = context;
    (void)err;
    invariant(heard->in_file && heard->left == 0, "a file is whole at its end", "");
    heard->in_file = false;
    add(heard, "e", 1);
    return 0;
}

static struct heard read_archive(struct pieces p, int *ret, bool *ret_over)
{
    struct heard heard = {.sum = HASH_START};
    const struct tar_events events = {on_entry, on_data, on_end, &heard};
    struct tar_reader reader;
    *ret = 0;
    tar_init(&reader, &events);
    for (size_t at = 0, count; at < p.size && *ret == 0; at += count) {
        count = pieces_next(&p, at);
        *ret = tar_feed(&reader, p.bytes + at, count, NULL);
    }
    *ret_over = tar_is_over(&reader);
    tar_done(&reader);
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pieces whole, torn;
    if (!pieces_read(data, size, &whole, &torn)) {
        return 0;
    }
    int one_result, other_result;
    bool one_over, other_over;
    struct heard one = read_archive(whole, &one_result, &one_over);
    struct heard other = read_archive(torn, &other_result, &other_over);
    invariant(one.sum == other.sum && one_result == other_result && one_over == other_over,
              "an archive in pieces is the archive", "");
    return 0;
}
