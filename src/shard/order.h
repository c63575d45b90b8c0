/* The order in which an epoch visits a data set: which record lies at a position.
 *
 * A shuffled order is a keyed bijection of [0, size), so that no permutation is kept in memory and
 * every process computes the same one: a Feistel network over a rectangle of rows and columns that
 * has hardly more cells than there are records, applied again where it leads out of them (cycle
 * walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). It is a shuffle, not
 * a cipher.
 *
 * Layer: pure. Memory: the caller's struct. Thread: any, nothing is changed by a look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SHARD_ORDER_ROUNDS = 16 };

struct shard_order {
    uint64_t size;  /* records */
    uint64_t units; /* the shuffled items: records, or whole blocks of them; 0: no shuffle */
    uint32_t block; /* records of a unit, whose order within the unit is kept */
    int rounds;     /* the rounds that are used: with few units more are needed until all orders are
                       equally likely */
    uint64_t rows;
    uint64_t columns;
    uint64_t keys[SHARD_ORDER_ROUNDS];
};

/* block: 0 keeps the order of the data set; 1 shuffles records; more than 1 shuffles blocks of this
 * size, for data that is slow to read record by record. Records that do not fill a block come last.
 * Orders of different seeds, data sets or epochs are independent of each other. */
void shard_order_init(struct shard_order *order, uint64_t size, uint32_t block, uint64_t seed,
                      uint32_t dataset, uint32_t epoch);

/* Returns the record at a position; position < size. */
uint64_t shard_order_record(const struct shard_order *order, uint64_t position);
/* The reverse function: returns the position of a record; record < size. */
uint64_t shard_order_position(const struct shard_order *order, uint64_t record);
