/* See choice.h. */
#include "rendezvous/choice.h"

/* Rounds without a step after which the younger of two members that cannot reach each other is left
 * out. */
enum { PATIENCE = 3 };

static bool has_reported(const struct rendezvous_peer *peer)
{
    return peer->standing == RENDEZVOUS_MEMBER && peer->reported && !peer->gone;
}

uint32_t choice_take_stayers(struct rendezvous *s, bool ending)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        peer->next = has_reported(peer) && (!peer->leaving || ending);
        count += peer->next;
    }
    return count;
}

void choice_forget(struct rendezvous *s)
{
    for (uint32_t i = 0; i < s->room; i++) {
        s->peers[i].next = false;
    }
}

uint32_t choice_keep_holders(struct rendezvous *s, uint32_t count)
{
    bool holder = false;
    for (uint32_t i = 0; i < s->room; i++) {
        holder = holder || (s->peers[i].next && s->peers[i].loaded);
    }
    for (uint32_t i = 0; i < s->room && !holder; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (has_reported(peer) && peer->loaded) {
            peer->next = true;
            count++;
        }
    }
    return count;
}

void choice_release_leavers(struct turn *t)
{
    for (uint32_t i = 0; i < t->s->room; i++) {
        struct rendezvous_peer *peer = &t->s->peers[i];
        if (has_reported(peer) && peer->leaving) {
            turn_expel(t, peer->incarnation, RENDEZVOUS_LEFT);
            peer->gone = true;
            peer->connected = false;
        }
    }
}

static bool may_join(const struct rendezvous_peer *peer)
{
    return peer->standing == RENDEZVOUS_JOINING && peer->connected;
}

static uint32_t count_joiners(const struct rendezvous *s, uint64_t age)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->room; i++) {
        count += may_join(&s->peers[i]) && s->peers[i].age <= age;
    }
    return count;
}

/* Returns an age up to which there are at most `most` joiners. No two joiners have the same age. */
static uint64_t find_age(const struct rendezvous *s, uint32_t most)
{
    uint64_t least = 0, age = s->last_age;
    if (count_joiners(s, age) <= most) {
        return age;
    }
    while (age - least > 1) { /* too many joiners up to `age`, not too many up to `least` */
        uint64_t middle = least + (age - least) / 2;
        *(count_joiners(s, middle) <= most ? &least : &age) = middle;
    }
    return least;
}

uint32_t choice_take_joiners(struct rendezvous *s, uint32_t count, bool ending)
{
    if (ending || count >= s->config.max_size) {
        return count;
    }
    uint64_t age = find_age(s, s->config.max_size - count);
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (may_join(peer) && peer->age <= age) {
            peer->next = true;
            count++;
        }
    }
    return count;
}

void choice_suspect(struct rendezvous *state, uint64_t by, uint64_t lost)
{
    if (state->suspecting == 0 && lost != 0) {
        state->suspecting = by;
        state->suspected = lost;
    }
}

static bool is_only_holder(const struct rendezvous *s, const struct rendezvous_peer *one)
{
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        if (peer != one && peer->next && peer->loaded) {
            return false;
        }
    }
    return one->loaded;
}

void choice_part_the_cut(struct rendezvous *s, uint64_t base)
{
    struct rendezvous_peer *a = turn_find(s, s->suspecting);
    struct rendezvous_peer *b = turn_find(s, s->suspected);
    bool cut = s->suspecting != 0 && a && b && a->next && b->next;
    s->stalled = !cut ? 0 : base > s->base ? 1 : s->stalled + 1;
    if (s->stalled >= PATIENCE) {
        struct rendezvous_peer *younger = a->age > b->age ? a : b;
        if (is_only_holder(s, younger)) {
            younger = younger == a ? b : a;
        }
        younger->next = false;
        s->stalled = 0;
    }
}
