/* A journal from a disk: a record that can be read is written again as the same bytes, and a record
 * that is appended is read, too. */
#include "coordinator/journal/format.h"
#include "invariant.h"

enum { MOST = 1 << 16 };

/* Writes a record again: the bytes are the same. */
static void check_record(const uint8_t *data, size_t start, const struct journal_record *record)
{
    uint8_t head[JOURNAL_HEAD_BYTES];
    journal_write_head(record, start, head);
    invariant(memcmp(head, data + start, sizeof head) == 0, "a head is written as it was read", "");
    invariant(record->bytes == data + start + JOURNAL_HEAD_BYTES, "its bytes follow its head", "");
    invariant(record->bytes[record->count] == journal_end_mark, "and its end mark them", "");
}

/* Appends a record where the journal ends, torn or not. */
static void append(const uint8_t *data, size_t end)
{
    static uint8_t longer[MOST + JOURNAL_AROUND_BYTES];
    const struct journal_record record = {.kind = 7};
    struct journal_record read;
    size_t offset = end;
    memcpy(longer, data, end);
    journal_write_head(&record, end, longer + end);
    longer[end + JOURNAL_HEAD_BYTES] = journal_end_mark;
    int r = journal_read_record(longer, end + JOURNAL_AROUND_BYTES, &offset, &read, NULL);
    invariant(r == 1 && read.kind == 7 && offset == end + JOURNAL_AROUND_BYTES,
              "what is appended is read", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct journal_record record;
    if (size > MOST || journal_read_header(data, size, &err) <= 0) {
        return 0;
    }
    size_t offset = JOURNAL_HEADER_BYTES, start = offset;
    int r;
    while ((r = journal_read_record(data, size, &offset, &record, &err)) > 0) {
        invariant(offset > start && offset <= size, "a record lies in the file", "");
        check_record(data, start, &record);
        start = offset;
    }
    invariant(offset == start, "the end is where the last record ends", "");
    invariant(r == 0 || strstr(err.text, "damaged at byte "), "damage is named", err.text);
    if (r == 0) {
        append(data, offset);
    }
    return 0;
}
