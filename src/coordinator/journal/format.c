/* See format.h. */
#include "coordinator/journal/format.h"

#include <stdbool.h>
#include <string.h>

static const char magic[] = "mustrjrn";
enum { MAGIC_BYTES = 8 };
const uint8_t journal_end_mark = 0xa5;

/* ---- CRC32C, eight bytes at a time (Kounavis and Berry, "A Systematic Approach to Building High
 * Performance Software-Based CRC Generators", 2005) ---- */

enum { SLICES = 8 };
static uint32_t table[SLICES][256];

__attribute__((constructor)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
        }
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int slice = 1; slice < SLICES; slice++) {
            uint32_t crc = table[slice - 1][i];
            table[slice][i] = crc >> 8 ^ table[0][crc & 0xff];
        }
    }
}

uint32_t journal_crc(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; count >= SLICES; count -= SLICES, at += SLICES) {
        uint32_t sum = 0;
        for (int i = 0; i < SLICES; i++) {
            uint8_t byte = (uint8_t)(at[i] ^ (i < 4 ? crc >> (8 * i) : 0));
            sum ^= table[SLICES - 1 - i][byte];
        }
        crc = sum;
    }
    for (; count > 0; count--, at++) {
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}

/* ---- Numbers ---- */

static void put(uint8_t *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> (8 * i));
    }
}

static uint32_t get(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- The header ---- */

void journal_write_header(uint8_t ret[JOURNAL_HEADER_BYTES])
{
    memcpy(ret, magic, MAGIC_BYTES);
    put(ret + 8, JOURNAL_VERSION, 4);
    put(ret + 12, journal_crc(0, ret, 12), 4);
}

int journal_read_header(const uint8_t *bytes, size_t count, struct muster_err *err)
{
    uint8_t ours[JOURNAL_HEADER_BYTES];
    journal_write_header(ours);
    if (count < JOURNAL_HEADER_BYTES && memcmp(bytes, ours, count) == 0) {
        return 0;
    }
    if (count < JOURNAL_HEADER_BYTES || memcmp(bytes, magic, MAGIC_BYTES) != 0 ||
        get(bytes + 12) != journal_crc(0, bytes, 12)) {
        return muster_fail(err, MUSTER_EDATA, "damaged at byte 0: this is no header of a journal");
    }
    if (get(bytes + 8) != JOURNAL_VERSION) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "it has version %u, and this muster knows version %d only: use the "
                           "muster that wrote it",
                           get(bytes + 8), JOURNAL_VERSION);
    }
    return 1;
}

/* ---- Records ---- */

static bool is_zero(const uint8_t *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && bytes[i] == 0) {
        i++;
    }
    return i == count;
}

static uint32_t head_crc(uint64_t offset, const uint8_t *head)
{
    uint8_t place[8];
    put(place, offset, 8);
    return journal_crc(journal_crc(0, place, sizeof place), head, 8);
}

void journal_write_head(const struct journal_record *record, uint64_t offset,
                        uint8_t ret[JOURNAL_HEAD_BYTES])
{
    put(ret, record->count, 4);
    put(ret + 4, record->kind, 4);
    put(ret + 8, head_crc(offset, ret), 4);
    put(ret + 12, journal_crc(0, record->bytes, record->count), 4);
}

static int damaged(struct muster_err *err, size_t offset, const char *what)
{
    return muster_fail(err, MUSTER_EDATA,
                       "damaged at byte %zu: %s (the journal was changed after it was written; "
                       "restore it from a copy)",
                       offset, what);
}

int journal_read_record(const uint8_t *bytes, size_t count, size_t *offset,
                        struct journal_record *ret, struct muster_err *err)
{
    const uint8_t *head = bytes + *offset;
    size_t left = count - *offset;
    if (left < JOURNAL_HEAD_BYTES) {
        return 0;
    }
    if (get(head + 8) != head_crc(*offset, head)) {
        bool unwritten = is_zero(head + JOURNAL_HEAD_BYTES - 1, left - (JOURNAL_HEAD_BYTES - 1));
        return unwritten ? 0 : damaged(err, *offset, "the head of a record is wrong");
    }
    uint32_t length = get(head);
    if (length > JOURNAL_RECORD_MAX) {
        return damaged(err, *offset, "a record is too large");
    }
    if (left < JOURNAL_AROUND_BYTES + (size_t)length) {
        return 0;
    }
    const uint8_t *payload = head + JOURNAL_HEAD_BYTES;
    const uint8_t *end = payload + length;
    if (*end != journal_end_mark || get(head + 12) != journal_crc(0, payload, length)) {
        bool unwritten = is_zero(end, (size_t)(bytes + count - end));
        return unwritten ? 0 : damaged(err, *offset, "the bytes of a record are wrong");
    }
    *ret = (struct journal_record){get(head + 4), payload, length};
    *offset += JOURNAL_AROUND_BYTES + length;
    return 1;
}
