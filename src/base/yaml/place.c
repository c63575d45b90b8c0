/* See place.h. A tree in one array: each node knows its parent, first child and next sibling.
 */
#include "base/yaml/place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct yaml_place place;
    char *key; /* NULL: an element of a list */
    int index; /* index among its siblings */
    int parent;
    int first_child;
    int last_child;
    int next;
};

struct yaml_places {
    struct node *nodes;
    int count;
    int room;
};

struct yaml_places *yaml_places_new(void)
{
    struct yaml_places *places = calloc(1, sizeof *places);
    struct node *nodes = calloc(16, sizeof *nodes);
    if (!places || !nodes) {
        free(places);
        free(nodes);
        return NULL;
    }
    *places = (struct yaml_places){.nodes = nodes, .count = 1, .room = 16};
    nodes[0] = (struct node){{1, 1}, NULL, 0, -1, -1, -1, -1};
    return places;
}

struct yaml_places *yaml_places_free(struct yaml_places *places)
{
    if (places) {
        for (int i = 0; i < places->count; i++) {
            free(places->nodes[i].key);
        }
        free(places->nodes);
        free(places);
    }
    return NULL;
}

static bool make_room(struct yaml_places *places)
{
    if (places->count < places->room) {
        return true;
    }
    struct node *nodes = reallocarray(places->nodes, (size_t)places->room * 2, sizeof *nodes);
    if (!nodes) {
        return false;
    }
    places->nodes = nodes;
    places->room *= 2;
    return true;
}

int yaml_places_add(struct yaml_places *places, int parent, const char *key,
                    struct yaml_place place)
{
    if (parent == YAML_NO_PLACE || !make_room(places)) {
        return YAML_NO_PLACE;
    }
    int id = places->count;
    struct node *up = &places->nodes[parent];
    int index = up->last_child < 0 ? 0 : places->nodes[up->last_child].index + 1;
    places->nodes[id] = (struct node){place, NULL, index, parent, -1, -1, -1};
    if (key && !(places->nodes[id].key = strdup(key))) {
        return YAML_NO_PLACE;
    }
    if (up->last_child < 0) {
        up->first_child = id;
    } else {
        places->nodes[up->last_child].next = id;
    }
    up->last_child = id;
    places->count++;
    return id;
}

int yaml_places_find(const struct yaml_places *places, int parent, const char *key)
{
    int id = parent == YAML_NO_PLACE ? YAML_NO_PLACE : places->nodes[parent].first_child;
    while (id >= 0 && (!places->nodes[id].key || strcmp(places->nodes[id].key, key) != 0)) {
        id = places->nodes[id].next;
    }
    return id >= 0 ? id : YAML_NO_PLACE;
}

void yaml_places_set_root(struct yaml_places *places, struct yaml_place place)
{
    places->nodes[YAML_ROOT_PLACE].place = place;
}

struct yaml_place yaml_places_get(const struct yaml_places *places, int id)
{
    return id == YAML_NO_PLACE ? (struct yaml_place){0, 0} : places->nodes[id].place;
}

static bool plain_word(const char *key)
{
    return *key && key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_-")] == '\0';
}

void yaml_path_key(struct buf *path, const char *key)
{
    if (plain_word(key)) {
        buf_format(path, "%s%s", path->used ? "." : "", key);
    } else {
        buf_format(path, "[%s]", key);
    }
}

void yaml_path_index(struct buf *path, size_t index)
{
    buf_format(path, "[%zu]", index);
}

void yaml_places_path(const struct yaml_places *places, int id, struct buf *out)
{
    if (id <= YAML_ROOT_PLACE) {
        return;
    }
    const struct node *node = &places->nodes[id];
    yaml_places_path(places, node->parent, out);
    if (node->key) {
        yaml_path_key(out, node->key);
    } else {
        yaml_path_index(out, (size_t)node->index);
    }
}

/* Returns what follows this node's step at the start of `path`, or NULL if path does not start with
 * it. */
static const char *after_step(const struct node *node, const char *path)
{
    char index[16];
    const char *step = node->key;
    if (!step) {
        snprintf(index, sizeof index, "%d", node->index);
        step = index;
    }
    bool bracket = *path == '[';
    if (node->key && plain_word(node->key) == bracket) {
        return NULL;
    }
    path += bracket || *path == '.';
    size_t length = strlen(step);
    if (strncmp(path, step, length) != 0) {
        return NULL;
    }
    path += length;
    if (bracket) {
        return *path == ']' ? path + 1 : NULL;
    }
    return *path == '\0' || *path == '.' || *path == '[' ? path : NULL;
}

/* Returns the node at the path, or its nearest ancestor. */
static int find(const struct yaml_document *document, const char *path)
{
    const struct node *nodes = document->places->nodes;
    int at = document->root;
    assert(at >= YAML_ROOT_PLACE && at < document->places->count);
    for (int child = nodes[at].first_child; child >= 0 && *path;) {
        const char *rest = after_step(&nodes[child], path);
        if (rest) {
            path = rest;
            at = child;
            child = nodes[at].first_child;
        } else {
            child = nodes[child].next;
        }
    }
    return at;
}

struct yaml_place yaml_place_of(const struct yaml_document *document, const char *path)
{
    if (!document || !document->places) {
        return (struct yaml_place){0, 0};
    }
    return document->places->nodes[find(document, path)].place;
}

struct yaml_document yaml_part(const struct yaml_document *document, json_t *part, const char *path)
{
    return (struct yaml_document){part, document->places,
                                  document->places ? find(document, path) : YAML_ROOT_PLACE};
}
