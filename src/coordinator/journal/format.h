/* Writes and reads the journal as bytes: a header, then records one after the other.
 *
 *     header   magic (8), version (4), CRC of both (4)
 *     record   length of the payload (4), kind (4), CRC of offset, length and kind (4),
 *              CRC of the payload (4), the payload, an end mark (1)
 *
 * Numbers are little-endian, CRCs are CRC32C. The head has a CRC of its own, so that a length can
 * be trusted before the payload is read: a journal that ends within a record was torn when its
 * writer died, and a record that is complete and wrong was damaged. Data that a host had not yet
 * written when it died reads as zeros up to the end of the file; therefore the end mark is not
 * zero.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's.
 */
#pragma once

#include <muster/err.h>

#include <stddef.h>
#include <stdint.h>

enum {
    JOURNAL_VERSION = 1,
    JOURNAL_HEADER_BYTES = 16,
    JOURNAL_HEAD_BYTES = 16,
    JOURNAL_AROUND_BYTES = JOURNAL_HEAD_BYTES + 1, /* of a record, in addition to its payload */
    JOURNAL_RECORD_MAX = 64 << 20,
};

struct journal_record {
    uint32_t kind;
    const uint8_t *bytes;
    uint32_t count;
};

uint32_t journal_crc(uint32_t crc, const void *bytes, size_t count);

void journal_write_header(uint8_t ret[JOURNAL_HEADER_BYTES]);
/* Writes the head and the end mark of the record that begins at that offset. */
void journal_write_head(const struct journal_record *record, uint64_t offset,
                        uint8_t ret[JOURNAL_HEAD_BYTES]);
extern const uint8_t journal_end_mark;

/* Returns 1 if the header is whole, 0 if the file ends within it. MUSTER_EDATA: it is not a
 * journal; MUSTER_EUNSUPPORTED: it is of a newer version. */
int journal_read_header(const uint8_t *bytes, size_t count, struct muster_err *err);

/* Reads the record at *offset, and moves *offset to the next one. Returns 0 if the journal ends
 * there, whether torn or not. MUSTER_EDATA: it is damaged, at the offset that the error text
 * names. */
int journal_read_record(const uint8_t *bytes, size_t count, size_t *offset,
                        struct journal_record *ret, struct muster_err *err);
