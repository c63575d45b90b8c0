/* See table.h. */
#include "coordinator/server/table.h"

#include <assert.h>
#include <stdlib.h>

enum { ROOM_FIRST = 64 };

/* Returns the slot of a key. Incarnations are mostly random, but may also be small numbers. */
static size_t place(const struct server_table *table, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (table->room - 1);
}

static struct server_slot *slot_of(const struct server_table *table, uint64_t key)
{
    size_t at = place(table, key);
    while (table->slots[at].key != 0 && table->slots[at].key != key) {
        at = (at + 1) & (table->room - 1);
    }
    return &table->slots[at];
}

void *server_table_find(const struct server_table *table, uint64_t key)
{
    return table->room > 0 && key != 0 ? slot_of(table, key)->value : NULL;
}

static int grow(struct server_table *table)
{
    struct server_table larger = {.room = table->room ? 2 * table->room : ROOM_FIRST};
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (!larger.slots) {
        return MUSTER_ENOMEM;
    }
    for (size_t i = 0; i < table->room; i++) {
        if (table->slots[i].key != 0) {
            *slot_of(&larger, table->slots[i].key) = table->slots[i];
        }
    }
    larger.count = table->count;
    free(table->slots);
    *table = larger;
    return 0;
}

int server_table_add(struct server_table *table, uint64_t key, void *value)
{
    assert(key != 0 && value);
    int r = 2 * (table->count + 1) > table->room ? grow(table) : 0;
    if (r == 0) {
        struct server_slot *slot = slot_of(table, key);
        assert(slot->key == 0);
        *slot = (struct server_slot){key, value};
        table->count++;
    }
    return r;
}

/* Removes a key, and moves up the entries after it that it had displaced. */
void server_table_remove(struct server_table *table, uint64_t key)
{
    struct server_slot *slot = slot_of(table, key);
    assert(slot->key == key);
    size_t hole = (size_t)(slot - table->slots), mask = table->room - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at].key != 0; at = (at + 1) & mask) {
        size_t home = place(table, table->slots[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = (struct server_slot){0};
    table->count--;
}

void *server_table_each(const struct server_table *table, size_t *at)
{
    while (*at < table->room) {
        const struct server_slot *slot = &table->slots[(*at)++];
        if (slot->key != 0) {
            return slot->value;
        }
    }
    return NULL;
}

void server_table_done(struct server_table *table)
{
    free(table->slots);
    *table = (struct server_table){0};
}
