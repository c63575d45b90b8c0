/* See order.h. */
#include "shard/order.h"

#include <assert.h>

enum { SMALL = 1024, ROUNDS_OF_LARGE = 8 };

/* The finaliser of splitmix64: every bit of the number changes every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns the smallest whole number that is not below the square root. */
static uint64_t root_of(uint64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1) {
        root += (root + bit) * (root + bit) <= x ? bit : 0;
    }
    return root * root < x ? root + 1 : root;
}

void shard_order_init(struct shard_order *order, uint64_t size, uint32_t block, uint64_t seed,
                      uint32_t dataset, uint32_t epoch)
{
    *order = (struct shard_order){.size = size, .block = block};
    order->units = block ? size / block : 0;
    order->columns = root_of(order->units);
    order->rows = order->units ? (order->units - 1) / order->columns + 1 : 0;
    order->rounds = order->units < SMALL ? SHARD_ORDER_ROUNDS : ROUNDS_OF_LARGE;
    uint64_t key =
        mix(mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)dataset << 32 | epoch));
    for (int round = 0; round < SHARD_ORDER_ROUNDS; round++) {
        key += UINT64_C(0x9e3779b97f4a7c15);
        order->keys[round] = mix(key);
    }
}

/* Returns a number below `limit` (at most 2^32) for a row or a column. A round's function need not
 * be a bijection, only well mixed. */
static uint64_t scramble(uint64_t x, uint64_t key, uint64_t limit)
{
    x = (x ^ key) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (x >> 32) * limit >> 32;
}

static uint64_t add_below(uint64_t a, uint64_t b, uint64_t limit)
{
    return a + b < limit ? a + b : a + b - limit;
}

static uint64_t subtract_below(uint64_t a, uint64_t b, uint64_t limit)
{
    return a >= b ? a - b : a + limit - b;
}

static uint64_t permute(const struct shard_order *order, uint64_t unit)
{
    uint64_t columns = order->columns, rows = order->rows;
    uint64_t column = unit % columns, row = unit / columns;
    for (int round = 0; round < order->rounds; round += 2) {
        column = add_below(column, scramble(row, order->keys[round], columns), columns);
        row = add_below(row, scramble(column, order->keys[round + 1], rows), rows);
    }
    return row * columns + column;
}

/* Reverses permute(): applies its rounds from the last to the first. */
static uint64_t permute_back(const struct shard_order *order, uint64_t unit)
{
    uint64_t columns = order->columns, rows = order->rows;
    uint64_t column = unit % columns, row = unit / columns;
    for (int round = order->rounds - 2; round >= 0; round -= 2) {
        row = subtract_below(row, scramble(column, order->keys[round + 1], rows), rows);
        column = subtract_below(column, scramble(row, order->keys[round], columns), columns);
    }
    return row * columns + column;
}

uint64_t shard_order_record(const struct shard_order *order, uint64_t position)
{
    assert(position < order->size);
    uint64_t unit = order->block > 1 ? position / order->block : position;
    if (unit >= order->units) {
        return position;
    }
    uint64_t to = unit;
    do {
        to = permute(order, to);
    } while (to >= order->units);
    return order->block > 1 ? to * order->block + position % order->block : to;
}

uint64_t shard_order_position(const struct shard_order *order, uint64_t record)
{
    assert(record < order->size);
    uint64_t unit = order->block > 1 ? record / order->block : record;
    if (unit >= order->units) {
        return record;
    }
    uint64_t from = unit;
    do {
        from = permute_back(order, from);
    } while (from >= order->units);
    return order->block > 1 ? from * order->block + record % order->block : from;
}
