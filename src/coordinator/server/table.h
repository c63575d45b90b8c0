/* A hash table of things by incarnation, with open addressing.
 *
 * Layer: program (coordinator). Memory: init with zeroes, done; what is in it is the caller's.
 * Thread: one.
 */
#pragma once

#include <muster/err.h>

#include <stddef.h>
#include <stdint.h>

struct server_table {
    struct server_slot {
        uint64_t key; /* 0: free */
        void *value;
    } * slots;
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* Returns NULL if the table does not have the key. */
void *server_table_find(const struct server_table *table, uint64_t key);
/* Adds a key that the table does not have yet, not 0. MUSTER_ENOMEM. */
int server_table_add(struct server_table *table, uint64_t key, void *value);
/* Removes a key that the table has. */
void server_table_remove(struct server_table *table, uint64_t key);
/* Returns the values one after the other, from *at = 0; NULL: there are no more. Nothing may be
 * added or removed meanwhile. */
void *server_table_each(const struct server_table *table, size_t *at);
void server_table_done(struct server_table *table);
