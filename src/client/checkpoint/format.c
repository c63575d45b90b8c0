/* See format.h. */
#include "client/checkpoint/format.h"

#include "comm/region/region.h"

#include <assert.h>
#include <string.h>

static const char magic[] = "mstrckpt";
enum { MAGIC_BYTES = 8, NUMBER_BYTES = 8, HEAD_MAX = 64 << 20 };

/* The offsets of the fixed part. */
enum { AT_FORMAT = 8, AT_HEAD_BYTES = 12, AT_NUMBERS = 16, AT_PIECES = 64, AT_BLOCK = 68 };

/* ---- Numbers ---- */

static void put(uint8_t *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> (8 * i));
    }
}

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++) {
        number |= (uint64_t)at[i] << (8 * i);
    }
    return number;
}

static uint64_t count_blocks(uint64_t state_bytes)
{
    return state_bytes / CHECKPOINT_BLOCK_BYTES + (state_bytes % CHECKPOINT_BLOCK_BYTES > 0);
}

uint64_t checkpoint_blocks(const struct checkpoint_head *head)
{
    return count_blocks(head->state_bytes);
}

size_t checkpoint_head_bytes(uint32_t num_pieces, uint64_t state_bytes)
{
    return CHECKPOINT_FIXED_BYTES +
           NUMBER_BYTES * (num_pieces + (size_t)count_blocks(state_bytes) + 1);
}

uint64_t checkpoint_piece_bytes(const struct checkpoint_head *head, uint32_t piece)
{
    assert(piece < head->num_pieces);
    return get(head->pieces + (size_t)piece * NUMBER_BYTES, NUMBER_BYTES);
}

uint64_t checkpoint_block_sum(const struct checkpoint_head *head, uint64_t block)
{
    assert(block < checkpoint_blocks(head));
    return get(head->sums + block * NUMBER_BYTES, NUMBER_BYTES);
}

/* ---- Writing ---- */

static void write_fixed(const struct checkpoint_head *head, size_t head_bytes, uint8_t *ret)
{
    const uint64_t numbers[] = {head->lineage,  head->version, head->epoch,
                                head->position, head->plan,    head->state_bytes};
    memcpy(ret, magic, MAGIC_BYTES);
    put(ret + AT_FORMAT, CHECKPOINT_FORMAT, 4);
    put(ret + AT_HEAD_BYTES, head_bytes, 4);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(ret + AT_NUMBERS + i * NUMBER_BYTES, numbers[i], NUMBER_BYTES);
    }
    put(ret + AT_PIECES, head->num_pieces, 4);
    put(ret + AT_BLOCK, CHECKPOINT_BLOCK_BYTES, 4);
}

void checkpoint_write_head(const struct checkpoint_head *head, const uint64_t *sizes,
                           const char *state, uint8_t *ret)
{
    size_t head_bytes = checkpoint_head_bytes(head->num_pieces, head->state_bytes);
    uint8_t *at = ret + CHECKPOINT_FIXED_BYTES;
    uint64_t blocks = checkpoint_blocks(head);
    assert(head->num_pieces <= CHECKPOINT_PIECES_MAX && head->state_bytes <= CHECKPOINT_STATE_MAX);
    write_fixed(head, head_bytes, ret);
    for (uint32_t i = 0; i < head->num_pieces; i++, at += NUMBER_BYTES) {
        put(at, sizes[i], NUMBER_BYTES);
    }
    for (uint64_t i = 0; i < blocks; i++, at += NUMBER_BYTES) {
        uint64_t first = i * CHECKPOINT_BLOCK_BYTES, left = head->state_bytes - first;
        size_t count = left < CHECKPOINT_BLOCK_BYTES ? (size_t)left : CHECKPOINT_BLOCK_BYTES;
        put(at, region_checksum(state + first, count), NUMBER_BYTES);
    }
    put(at, region_checksum((const char *)ret, (size_t)(at - ret)), NUMBER_BYTES);
    assert(at + NUMBER_BYTES == ret + head_bytes);
}

void checkpoint_digest(const uint8_t *head, size_t count, uint8_t ret[CHECKPOINT_DIGEST_BYTES])
{
    assert(count >= CHECKPOINT_FIXED_BYTES + NUMBER_BYTES);
    memcpy(ret, head + count - NUMBER_BYTES, NUMBER_BYTES);
    memcpy(ret + NUMBER_BYTES, head + AT_NUMBERS, 2 * (size_t)NUMBER_BYTES); /* lineage, version */
    put(ret + 3 * (size_t)NUMBER_BYTES, count + get(head + AT_PIECES - NUMBER_BYTES, NUMBER_BYTES),
        NUMBER_BYTES); /* the bytes of the file */
}

/* ---- Reading ---- */

static int damaged(struct muster_err *err, const char *what)
{
    return muster_fail(err, MUSTER_EDATA, "%s", what);
}

static int check_fixed(const uint8_t *bytes, uint64_t file_bytes, struct muster_err *err)
{
    uint64_t pieces = get(bytes + AT_PIECES, 4), head_bytes = get(bytes + AT_HEAD_BYTES, 4);
    uint64_t state_bytes = get(bytes + AT_PIECES - NUMBER_BYTES, NUMBER_BYTES);
    if (pieces > CHECKPOINT_PIECES_MAX || state_bytes > CHECKPOINT_STATE_MAX ||
        get(bytes + AT_BLOCK, 4) != CHECKPOINT_BLOCK_BYTES ||
        head_bytes != checkpoint_head_bytes((uint32_t)pieces, state_bytes)) {
        return damaged(err, "its head is damaged");
    }
    if (file_bytes != head_bytes + state_bytes) {
        return muster_fail(err, MUSTER_EDATA, "it has %llu bytes, and should have %llu",
                           (unsigned long long)file_bytes,
                           (unsigned long long)(head_bytes + state_bytes));
    }
    return 0;
}

int64_t checkpoint_measure(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                           struct muster_err *err)
{
    if (count < CHECKPOINT_FIXED_BYTES || memcmp(bytes, magic, MAGIC_BYTES) != 0) {
        return damaged(err, "it is no checkpoint, or torn in its first bytes");
    }
    uint64_t head_bytes = get(bytes + AT_HEAD_BYTES, 4);
    if (head_bytes < CHECKPOINT_FIXED_BYTES + NUMBER_BYTES || head_bytes > HEAD_MAX ||
        head_bytes > file_bytes) {
        return damaged(err, "its head is damaged, or torn");
    }
    int r =
        get(bytes + AT_FORMAT, 4) == CHECKPOINT_FORMAT ? check_fixed(bytes, file_bytes, err) : 0;
    return r < 0 ? r : (int64_t)head_bytes;
}

static bool pieces_fill_the_state(const struct checkpoint_head *head)
{
    uint64_t left = head->state_bytes;
    for (uint32_t i = 0; i < head->num_pieces; i++) {
        uint64_t bytes = checkpoint_piece_bytes(head, i);
        if (bytes > left) {
            return false;
        }
        left -= bytes;
    }
    return left == 0;
}

int checkpoint_read_head(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                         struct checkpoint_head *ret, struct muster_err *err)
{
    int64_t head_bytes = checkpoint_measure(bytes, count, file_bytes, err);
    if (head_bytes < 0) {
        return (int)head_bytes;
    }
    size_t summed = (size_t)head_bytes - NUMBER_BYTES;
    if (count < (size_t)head_bytes ||
        get(bytes + summed, NUMBER_BYTES) != region_checksum((const char *)bytes, summed)) {
        return damaged(err, "its head is damaged");
    }
    if (get(bytes + AT_FORMAT, 4) != CHECKPOINT_FORMAT) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "it has version %u of the format, and this muster knows version %d only",
                           (unsigned)get(bytes + AT_FORMAT, 4), CHECKPOINT_FORMAT);
    }
    const uint8_t *at = bytes + AT_NUMBERS;
    struct checkpoint_head head = {.lineage = get(at, NUMBER_BYTES),
                                   .version = get(at + 8, NUMBER_BYTES),
                                   .epoch = get(at + 16, NUMBER_BYTES),
                                   .position = get(at + 24, NUMBER_BYTES),
                                   .plan = get(at + 32, NUMBER_BYTES),
                                   .state_bytes = get(at + 40, NUMBER_BYTES),
                                   .num_pieces = (uint32_t)get(bytes + AT_PIECES, 4),
                                   .head_bytes = (uint32_t)head_bytes,
                                   .pieces = bytes + CHECKPOINT_FIXED_BYTES};
    head.sums = head.pieces + (size_t)head.num_pieces * NUMBER_BYTES;
    if (!pieces_fill_the_state(&head)) {
        return damaged(err, "its pieces are not its state");
    }
    *ret = head;
    return 0;
}
