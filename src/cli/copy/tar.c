/* See tar.h. */
#include "cli/copy/tar.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

enum { RECORDS_BYTES_MAX = 64 << 10, PERMISSIONS = 0777 };

/* The header of an entry, as it lies in the archive (POSIX.1-2001, pax, "ustar Interchange
 * Format").
 */
struct header {
    char name[100], mode[8], owner[8], group[8], size[12], changed[12], checksum[8], type;
    char target[100], magic[6], version[2], owner_name[32], group_name[32], major[8], minor[8];
    char prefix[155], unused[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a header is a block");

static int torn(struct muster_err *err, const char *what)
{
    return muster_fail(err, MUSTER_EPROTO, "the data is not a tar archive: %s", what);
}

void tar_init(struct tar_reader *reader, const struct tar_events *events)
{
    *reader = (struct tar_reader){.events = *events};
    buf_init(&reader->records, RECORDS_BYTES_MAX);
}

void tar_done(struct tar_reader *reader)
{
    buf_done(&reader->records);
}

bool tar_is_over(const struct tar_reader *reader)
{
    return reader->state == TAR_OVER;
}

/* ---- numbers and names of a header ---- */

/* Reads octal digits between blanks; false if there is anything else. */
static bool read_octal(const char *field, size_t size, uint64_t *ret)
{
    size_t at = 0;
    *ret = 0;
    while (at < size && field[at] == ' ') {
        at++;
    }
    for (; at < size && field[at] >= '0' && field[at] <= '7'; at++) {
        *ret = *ret * 8 + (uint64_t)(field[at] - '0');
    }
    return at == size || field[at] == ' ' || field[at] == '\0';
}

static bool checksum_is_right(const unsigned char *block)
{
    const struct header *h = (const struct header *)block;
    size_t begin = offsetof(struct header, checksum);
    uint64_t said, sum = 0;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        sum += i >= begin && i < begin + sizeof h->checksum ? ' ' : block[i];
    }
    return read_octal(h->checksum, sizeof h->checksum, &said) && said == sum;
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        if (block[i]) {
            return false;
        }
    }
    return true;
}

/* Joins the two parts of a name. A field that is full has no NUL. */
static void join_name(const struct header *h, char ret[TAR_NAME_BYTES])
{
    int prefix = (int)strnlen(h->prefix, sizeof h->prefix);
    int name = (int)strnlen(h->name, sizeof h->name);
    snprintf(ret, TAR_NAME_BYTES, "%.*s%s%.*s", prefix, h->prefix, prefix ? "/" : "", name,
             h->name);
}

/* Removes slashes at the end, as a folder's name may have. */
static void cut_slashes(char *name)
{
    for (size_t n = strlen(name); n > 0 && name[n - 1] == '/'; n--) {
        name[n - 1] = '\0';
    }
}

/* ---- pax headers: records "LENGTH KEY=VALUE\n", the length of the whole record ---- */

static int copy_value(char to[TAR_NAME_BYTES], const char *value, size_t length,
                      struct muster_err *err)
{
    if (length >= TAR_NAME_BYTES || memchr(value, '\0', length)) {
        return torn(err, "a name in it is too long or has a NUL");
    }
    memcpy(to, value, length);
    to[length] = '\0';
    return 0;
}

static bool is_key(const char *key, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(key, word, length) == 0;
}

static int take_size(struct tar_extension *next, const char *value, size_t length,
                     struct muster_err *err)
{
    enum { DIGITS_MAX = 18 };
    if (length == 0 || length > DIGITS_MAX) {
        return torn(err, "a size in it is no number");
    }
    next->bytes = 0;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return torn(err, "a size in it is no number");
        }
        next->bytes = next->bytes * 10 + (uint64_t)(value[i] - '0');
    }
    next->has_bytes = true;
    return 0;
}

static int take_record(struct tar_extension *next, const char *key, size_t length,
                       struct muster_err *err)
{
    const char *equals = memchr(key, '=', length);
    if (!equals) {
        return torn(err, "a record without '='");
    }
    size_t key_length = (size_t)(equals - key), left = length - key_length - 1;
    if (is_key(key, key_length, "path")) {
        return copy_value(next->name, equals + 1, left, err);
    }
    if (is_key(key, key_length, "linkpath")) {
        return copy_value(next->target, equals + 1, left, err);
    }
    if (is_key(key, key_length, "size")) {
        return take_size(next, equals + 1, left, err);
    }
    return is_key(key, key_length, "MUSTER.error")
               ? muster_fail(err, MUSTER_ENOENT, "%.*s", (int)left, equals + 1)
               : 0;
}

static int take_records(struct tar_reader *reader, struct muster_err *err)
{
    const char *at = buf_str(&reader->records), *end = at + reader->records.used;
    while (at < end) {
        const char *digit = at;
        size_t length = 0;
        for (; digit < end && *digit >= '0' && *digit <= '9' && length <= RECORDS_BYTES_MAX;
             digit++) {
            length = length * 10 + (size_t)(*digit - '0');
        }
        size_t head = (size_t)(digit - at) + 1;
        if (digit == end || *digit != ' ' || length <= head || length > (size_t)(end - at) ||
            at[length - 1] != '\n') {
            return torn(err, "a record of a wrong length");
        }
        int r = take_record(&reader->next, at + head, length - head - 1, err);
        if (r < 0) {
            return r;
        }
        at += length;
    }
    buf_clear(&reader->records);
    return 0;
}

/* ---- blocks ---- */

static void skip(struct tar_reader *reader, uint64_t bytes)
{
    reader->state = TAR_SKIPPED;
    reader->left = bytes;
}

static int begin_entry(struct tar_reader *reader, const struct header *h, uint64_t bytes,
                       struct muster_err *err)
{
    char name[TAR_NAME_BYTES], target[TAR_NAME_BYTES];
    uint64_t mode = 0, changed = 0;
    bool fine = read_octal(h->mode, sizeof h->mode, &mode) &&
                read_octal(h->changed, sizeof h->changed, &changed);
    join_name(h, name);
    snprintf(target, sizeof target, "%.*s", (int)strnlen(h->target, sizeof h->target), h->target);
    const struct tar_entry entry = {
        .kind = h->type == '5'   ? TAR_FOLDER
                : h->type == '2' ? TAR_LINK
                                 : TAR_FILE,
        .name = *reader->next.name ? reader->next.name : name,
        .target = *reader->next.target ? reader->next.target : target,
        .bytes = bytes,
        .mode = (unsigned)mode & PERMISSIONS,
        .changed_unix_s = (int64_t)changed,
    };
    if (!fine) {
        return torn(err, "a header with a field that is no number");
    }
    if (entry.kind == TAR_FOLDER) {
        cut_slashes(*reader->next.name ? reader->next.name : name);
    }
    int r = reader->events.entry(reader->events.context, &entry, err);
    reader->state = entry.kind == TAR_FILE ? TAR_CONTENT : TAR_SKIPPED;
    reader->left = bytes;
    reader->next = (struct tar_extension){0};
    return r;
}

static int take_header(struct tar_reader *reader, struct muster_err *err)
{
    const struct header *h = (const struct header *)reader->block;
    uint64_t bytes;
    if (is_zero(reader->block)) {
        reader->state = reader->saw_zero ? TAR_OVER : TAR_HEADER;
        reader->saw_zero = true;
        return 0;
    }
    if (reader->saw_zero || !checksum_is_right(reader->block) ||
        !read_octal(h->size, sizeof h->size, &bytes)) {
        return torn(err, "a header with a wrong checksum");
    }
    if (h->type == 'x') {
        reader->state = TAR_EXTENSION;
        reader->left = bytes;
        reader->padding_left = (size_t)(-bytes % TAR_BLOCK_BYTES);
        return bytes > RECORDS_BYTES_MAX ? torn(err, "a header of more than 64 KiB") : 0;
    }
    bytes = reader->next.has_bytes ? reader->next.bytes : bytes;
    reader->padding_left = (size_t)(-bytes % TAR_BLOCK_BYTES);
    if (h->type == '0' || h->type == '\0' || h->type == '2' || h->type == '5') {
        return begin_entry(reader, h, bytes, err);
    }
    reader->next = (struct tar_extension){0};
    skip(reader, bytes);
    return 0;
}

/* Ends the extension, the content or the skipped part, which is complete now. */
static int finish_part(struct tar_reader *reader, struct muster_err *err)
{
    enum tar_state was = reader->state;
    reader->state = reader->padding_left ? TAR_PADDING : TAR_HEADER;
    if (was == TAR_EXTENSION) {
        return buf_failed(&reader->records) ? err_no_memory(err) : take_records(reader, err);
    }
    return was == TAR_CONTENT ? reader->events.end(reader->events.context, err) : 0;
}

static size_t take_block(struct tar_reader *reader, const char *bytes, size_t count, int *ret,
                         struct muster_err *err)
{
    size_t part = TAR_BLOCK_BYTES - reader->block_used;
    part = part < count ? part : count;
    memcpy(reader->block + reader->block_used, bytes, part);
    reader->block_used += part;
    if (reader->block_used == TAR_BLOCK_BYTES) {
        reader->block_used = 0;
        *ret = take_header(reader, err);
    }
    return part;
}

static size_t take_part(struct tar_reader *reader, const char *bytes, size_t count, int *ret,
                        struct muster_err *err)
{
    size_t part = reader->left < count ? (size_t)reader->left : count;
    if (reader->state == TAR_EXTENSION) {
        buf_add(&reader->records, bytes, part);
    } else if (reader->state == TAR_CONTENT && part > 0) {
        *ret = reader->events.data(reader->events.context, bytes, part, err);
    }
    reader->left -= part;
    return part;
}

static size_t take_padding(struct tar_reader *reader, size_t count)
{
    size_t part = reader->padding_left < count ? reader->padding_left : count;
    reader->padding_left -= part;
    reader->state = reader->padding_left ? TAR_PADDING : TAR_HEADER;
    return part;
}

static bool is_in_part(const struct tar_reader *reader)
{
    return reader->state == TAR_EXTENSION || reader->state == TAR_CONTENT ||
           reader->state == TAR_SKIPPED;
}

int tar_feed(struct tar_reader *reader, const char *bytes, size_t count, struct muster_err *err)
{
    int r = 0;
    size_t used = 0;
    while (r == 0 && used < count && reader->state != TAR_OVER) {
        if (is_in_part(reader)) {
            used += take_part(reader, bytes + used, count - used, &r, err);
        } else if (reader->state == TAR_PADDING) {
            used += take_padding(reader, count - used);
        } else {
            used += take_block(reader, bytes + used, count - used, &r, err);
        }
        if (r == 0 && is_in_part(reader) && reader->left == 0) {
            r = finish_part(reader, err);
        }
    }
    return r;
}
