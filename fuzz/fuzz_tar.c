/* An archive as it comes from a pod of somebody's image (cli/copy/tar.h).
 *
 * The first byte says in how large pieces the rest comes: it must not matter. */
#include "cli/copy/tar.h"
#include "invariant.h"

enum { MOST = 1 << 16 };

struct heard {
    uint64_t sum; /* of all that was told, in its order */
    uint64_t left;
    bool in_file;
};

static void add(struct heard *heard, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        heard->sum = (heard->sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    }
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

static struct heard read_archive(const uint8_t *data, size_t size, size_t step, int *ret,
                                 bool *ret_over)
{
    struct heard heard = {.sum = 0xcbf29ce484222325u};
    const struct tar_events events = {on_entry, on_data, on_end, &heard};
    struct tar_reader reader;
    *ret = 0;
    tar_init(&reader, &events);
    for (size_t at = 0; at < size && *ret == 0; at += step) {
        *ret =
            tar_feed(&reader, (const char *)data + at, size - at < step ? size - at : step, NULL);
    }
    *ret_over = tar_is_over(&reader);
    tar_done(&reader);
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST) {
        return 0;
    }
    size_t step = data[0] ? data[0] : 1;
    data++;
    size--;
    int whole_result, result;
    bool whole_over, over;
    struct heard whole = read_archive(data, size, size ? size : 1, &whole_result, &whole_over);
    struct heard pieces = read_archive(data, size, step, &result, &over);
    invariant(whole.sum == pieces.sum && whole_result == result && whole_over == over,
              "an archive in pieces is the archive", "");
    return 0;
}
