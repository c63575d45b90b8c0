/* See explore.h. */
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame {
    struct world world;
    struct action actions[ACTIONS_MAX];
    size_t count;
    size_t next;
    bool moved; /* an action other than a fault has led to another world */
};

struct search {
    struct explored *found;
    uint64_t *seen; /* a hash table; 0: free */
    size_t room;
    struct frame *way;
    uint64_t hashes[WAY_MAX]; /* of the worlds on the way */
    size_t depth;
};

/* Most of a world is zeros: blocks of zeros are skipped, and the other blocks are hashed with their
 * offset. */
static uint64_t hash_of(const struct world *world)
{
    enum { WORDS = 8 };
    uint64_t words[WORDS] = {0}, hash = 0x9e3779b97f4a7c15u;
    size_t count;
    const unsigned char *bytes = world_state(world, &count);
    for (size_t at = 0; at < count; at += sizeof words) {
        size_t here = count - at < sizeof words ? count - at : sizeof words;
        uint64_t any = 0;
        memset(words, 0, sizeof words);
        memcpy(words, bytes + at, here);
        for (size_t i = 0; i < WORDS; i++) {
            any |= words[i];
        }
        hash = any ? (hash ^ at) * 0xc4ceb9fe1a85ec53u : hash;
        for (size_t i = 0; i < WORDS && any; i++) {
            hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
            hash ^= hash >> 32;
        }
    }
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* Returns true if the hash was not in the table. */
static bool add(struct search *s, uint64_t hash)
{
    size_t at = hash & (s->room - 1);
    while (s->seen[at] != 0) {
        if (s->seen[at] == hash) {
            return false;
        }
        at = (at + 1) & (s->room - 1);
    }
    s->seen[at] = hash;
    s->found->worlds++;
    return true;
}

static bool is_on_the_way(const struct search *s, uint64_t hash)
{
    for (size_t i = 0; i < s->depth; i++) {
        if (s->hashes[i] == hash) {
            return true;
        }
    }
    return false;
}

static void fail(struct search *s, const char *broken)
{
    s->found->broken = broken;
    s->found->way_count = s->depth;
    for (size_t i = 0; i < s->depth; i++) {
        const struct frame *frame = &s->way[i];
        s->found->way[i] = frame->actions[frame->next > 0 ? frame->next - 1 : 0];
    }
}

/* Adds the world of the next frame to the way; none of its actions was taken yet. */
static void enter(struct search *s, uint64_t hash)
{
    struct frame *frame = &s->way[s->depth];
    s->hashes[s->depth] = hash;
    frame->count = world_actions(&frame->world, frame->actions);
    frame->next = 0;
    frame->moved = false;
    s->depth++;
    s->found->deepest = s->depth > s->found->deepest ? s->depth : s->found->deepest;
}

static void try_next(struct search *s)
{
    struct frame *from = &s->way[s->depth - 1], *to = from + 1;
    struct action action = from->actions[from->next++];
    world_copy(&to->world, &from->world);
    world_act(&to->world, action);
    if (to->world.broken) {
        fail(s, to->world.broken);
        return;
    }
    uint64_t hash = hash_of(&to->world);
    if (hash == s->hashes[s->depth - 1]) {
        return; /* nothing has changed */
    }
    s->found->actions++;
    from->moved = from->moved || action.kind < ACT_FAULTS;
    if (add(s, hash)) {
        enter(s, hash);
    } else if (is_on_the_way(s, hash)) {
        fail(s, "nothing goes in a circle");
    }
}

static void leave(struct search *s)
{
    const struct frame *frame = &s->way[s->depth - 1];
    s->depth--;
    if (!frame->moved) {
        const char *broken = world_end(&frame->world);
        s->found->ends++;
        if (broken) {
            fail(s, broken);
        }
    }
}

void explore(const struct world_config *config, size_t most, struct explored *ret)
{
    struct search s = {.found = ret, .room = most};
    memset(ret, 0, sizeof *ret);
    s.seen = calloc(most, sizeof *s.seen);
    s.way = calloc(WAY_MAX, sizeof *s.way);
    if (!s.seen || !s.way) {
        abort();
    }
    world_init(&s.way[0].world, config);
    add(&s, hash_of(&s.way[0].world));
    enter(&s, hash_of(&s.way[0].world));
    while (s.depth > 0 && !ret->broken) {
        if (ret->worlds > most / 2 || s.depth + 1 >= WAY_MAX) {
            fail(&s, "the worlds can be counted");
        } else if (s.way[s.depth - 1].next < s.way[s.depth - 1].count) {
            try_next(&s);
        } else {
            leave(&s);
        }
    }
    free(s.seen);
    free(s.way);
}

void explore_print(const struct action *way, size_t count, const char *broken)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "%4zu  %u %s %u\n", i + 1, way[i].who + 1u, world_action_name(way[i]),
                way[i].what + 0u);
    }
    fprintf(stderr, "broken: %s\n", broken);
}
