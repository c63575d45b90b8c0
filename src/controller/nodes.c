/* See nodes.h. */
#include "controller/nodes.h"

#include "base/doc.h"
#include "control/projection/node.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct nodes_item {
    UT_hash_handle hh;
    unsigned listing;
    bool out_of_service, silent;
    int64_t seen_ms; /* when it was first seen silent with this `since` */
    char *since;
    char name[];
};

static struct nodes_item *find(const struct nodes *nodes, const char *name)
{
    struct nodes_item *item = NULL;
    HASH_FIND_STR(nodes->items, name, item);
    return item;
}

static void drop(struct nodes *nodes, struct nodes_item *item)
{
    HASH_DEL(nodes->items, item);
    free(item->since);
    free(item);
}

static struct nodes_item *add(struct nodes *nodes, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct nodes_item *item = calloc(1, sizeof *item + bytes);
    if (item) {
        memcpy(item->name, name, bytes);
        HASH_ADD_STR(nodes->items, name, item);
    }
    return item;
}

void nodes_begin(struct nodes *nodes)
{
    nodes->listing++;
}

bool nodes_synced(struct nodes *nodes)
{
    bool changed = false;
    struct nodes_item *item, *next;
    HASH_ITER (hh, nodes->items, item, next) {
        if (item->listing != nodes->listing) {
            drop(nodes, item);
            changed = true;
        }
    }
    return changed;
}

bool nodes_remove(struct nodes *nodes, const json_t *node)
{
    struct nodes_item *item = find(nodes, doc_text(node, "metadata.name", ""));
    if (item) {
        drop(nodes, item);
    }
    return item != NULL;
}

/* Returns 1 if the node is silent from another time, or its state of service has changed. */
static int take(struct nodes_item *item, const struct control_node_state *state, int64_t now_ms)
{
    bool same_time = item->since && strcmp(item->since, state->since) == 0;
    bool same_silence = same_time && item->silent == state->silent;
    if (same_silence && item->out_of_service == state->out_of_service) {
        return 0;
    }
    char *since = strdup(state->since);
    if (!since) {
        return MUSTER_ENOMEM;
    }
    free(item->since);
    item->since = since;
    item->seen_ms = same_silence ? item->seen_ms : now_ms;
    item->silent = state->silent;
    item->out_of_service = state->out_of_service;
    return 1;
}

bool nodes_put(struct nodes *nodes, const json_t *node, int64_t now_ms)
{
    struct control_node_state state = control_node_read(node);
    const char *name = doc_text(node, "metadata.name", "");
    if (!state.silent && !state.out_of_service) {
        return nodes_remove(nodes, node);
    }
    struct nodes_item *item = find(nodes, name);
    item = item ? item : add(nodes, name);
    if (!item) {
        return false;
    }
    int r = take(item, &state, now_ms);
    item->listing = nodes->listing;
    if (r < 0) {
        drop(nodes, item);
    }
    return r != 0;
}

void nodes_done(struct nodes *nodes)
{
    struct nodes_item *item, *next;
    HASH_ITER (hh, nodes->items, item, next) {
        drop(nodes, item);
    }
}

struct control_node *nodes_view(const struct nodes *nodes, int64_t now_ms, size_t *ret_count)
{
    size_t count = HASH_COUNT(nodes->items);
    struct control_node *list = count ? calloc(count, sizeof *list) : NULL;
    *ret_count = 0;
    for (const struct nodes_item *item = nodes->items; item && list; item = item->hh.next) {
        list[(*ret_count)++] =
            (struct control_node){.name = item->name,
                                  .out_of_service = item->out_of_service,
                                  .silent_ms = item->silent ? now_ms - item->seen_ms : -1,
                                  .since = item->since};
    }
    return list;
}
