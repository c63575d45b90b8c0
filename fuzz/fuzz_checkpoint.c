/* The head of a checkpoint from a disk: a head that can be read is written again as the same bytes.
 * The first bytes say by how much the file is said to be larger than the input. */
#include "client/checkpoint/format.h"
#include "comm/region/region.h"
#include "invariant.h"

enum { SIZE_BYTES = 2 };

static void check(size_t count, const struct checkpoint_head *head, uint64_t file_bytes)
{
    uint64_t sum = 0;
    invariant(head->head_bytes <= count, "a head lies in the file", "");
    invariant(head->head_bytes + head->state_bytes == file_bytes, "the file is head and state", "");
    invariant(head->head_bytes == checkpoint_head_bytes(head->num_pieces, head->state_bytes),
              "a head is as long as its tables", "");
    for (uint32_t i = 0; i < head->num_pieces; i++) {
        sum += checkpoint_piece_bytes(head, i);
    }
    invariant(sum == head->state_bytes, "the pieces are the state", "");
    for (uint64_t i = 0; i < checkpoint_blocks(head); i++) {
        (void)checkpoint_block_sum(head, i);
    }
}

/* Writes a head again for the state that follows it: the tables before the checksums are the same.
 */
static void write_again(const uint8_t *bytes, const struct checkpoint_head *head, const char *state)
{
    uint64_t *sizes = calloc(head->num_pieces + 1u, sizeof *sizes);
    uint8_t *again = malloc(head->head_bytes);
    invariant(sizes && again, "there is memory", "");
    for (uint32_t i = 0; i < head->num_pieces; i++) {
        sizes[i] = checkpoint_piece_bytes(head, i);
    }
    checkpoint_write_head(head, sizes, state, again);
    size_t tables = CHECKPOINT_FIXED_BYTES + 8 * (size_t)head->num_pieces;
    invariant(memcmp(again, bytes, tables) == 0, "a head is written as it was read", "");
    free(sizes);
    free(again);
}

static void read(const uint8_t *bytes, size_t count, uint64_t more)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct checkpoint_head head;
    int r = checkpoint_read_head(bytes, count, count + more, &head, &err);
    invariant(r == 0 || (r < 0 && err.text[0]), "what is refused has a reason", "");
    if (r == 0) {
        check(count, &head, count + more);
    }
    if (r == 0 && more == 0) {
        write_again(bytes, &head, (const char *)bytes + head.head_bytes);
    }
}

/* Corrects the checksum of the head, so that the code after its check is reached. */
static void read_repaired(const uint8_t *bytes, size_t count, uint64_t more)
{
    uint8_t *copy = malloc(count);
    int64_t head_bytes = checkpoint_measure(bytes, count, count + more, NULL);
    if (copy && head_bytes > 0 && (size_t)head_bytes <= count) {
        size_t summed = (size_t)head_bytes - sizeof(uint64_t);
        memcpy(copy, bytes, count);
        uint64_t sum = region_checksum((const char *)copy, summed);
        memcpy(copy + summed, &sum, sizeof sum);
        read(copy, count, more);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > SIZE_BYTES) {
        uint64_t more = (uint64_t)data[0] | (uint64_t)data[1] << 8;
        read(data + SIZE_BYTES, size - SIZE_BYTES, more);
        read_repaired(data + SIZE_BYTES, size - SIZE_BYTES, more);
    }
    return 0;
}
