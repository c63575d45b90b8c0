/* The coordinator of a crowd: the arbiter that ships, and a journal that loses its end in a crash.
 * See crowd.h. */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

static void append(struct crowd *c, const struct arbiter_effect *effect)
{
    if (c->journal_count == c->journal_room) {
        c->journal_room = 2 * c->journal_room + 64;
        c->journal = realloc(c->journal, c->journal_room * sizeof *c->journal);
        assert_non_null(c->journal);
    }
    struct record *record = &c->journal[c->journal_count++];
    *record = (struct record){effect->record, effect->count, malloc(effect->count + 1)};
    assert_non_null(record->bytes);
    memcpy(record->bytes, arbiter_effect_bytes(&c->effects, effect), effect->count);
}

static uint64_t digest_of(const struct wire_members *members, uint32_t micro_batches)
{
    uint64_t digest = 0x9e3779b97f4a7c15u;
    uint32_t computed = 0;
    for (uint32_t rank = 0; rank < members->count; rank++) {
        struct plan_share share = plan_share(micro_batches, rank, members->count);
        assert_int_equal(share.count > 0 ? share.first : computed, computed);
        computed += share.count;
        digest = (digest ^ members->list[rank].incarnation) * 0xff51afd7ed558ccdu;
    }
    assert_int_equal(computed, micro_batches);
    return digest;
}

/* OPEN is sent only when the generation is durable, so its members never change. */
static void note_generation(struct crowd *c, const struct wire_open *open)
{
    assert_true(open->generation < GENERATIONS_MAX);
    struct generation *g = &c->generations[open->generation];
    uint64_t digest = digest_of(&open->members, c->plan.micro_batches);
    assert_true(g->digest == 0 || g->digest == digest);
    if (g->digest == 0) {
        *g = (struct generation){.digest = digest, .members = open->members.count};
        for (uint32_t i = 0; i < open->members.count; i++) {
            uint64_t incarnation = open->members.list[i].incarnation;
            assert_true(incarnation > 0 && incarnation <= c->worker_count);
            assert_true(c->workers[incarnation - 1].ranked < open->generation);
            c->workers[incarnation - 1].ranked = open->generation;
            g->lost = c->workers[incarnation - 1].lives ? g->lost : incarnation;
        }
    }
}

static struct heard read_frame(struct crowd *c, const uint8_t *bytes, size_t count)
{
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(count)), WIRE_ROOM_BYTES(count), 0};
    struct wire_message m;
    assert_non_null(room.memory);
    assert_int_equal(wire_read(bytes, count, &room, &m, NULL), 0);
    struct heard h = {.kind = (uint8_t)m.kind, .term = m.term};
    switch ((int)m.kind) {
    case WIRE_OPEN:
        note_generation(c, &m.open);
        h.generation = m.open.generation;
        h.base = m.open.base;
        h.lineage = m.open.lineage;
        h.restore = m.open.restore;
        break;
    case WIRE_CLOSE:
        h.generation = m.close.generation;
        h.boundary = m.close.boundary;
        break;
    case WIRE_ACK: h.base = m.ack.version; break;
    case WIRE_EXPELLED:
        h.incarnation = m.expelled.incarnation;
        h.reason = (uint8_t)m.expelled.reason;
        break;
    case WIRE_DATASET: c->plan.dataset = m.dataset.number; break;
    default: break;
    }
    free(room.memory);
    return h;
}

/* A frame that is sent to several members is stored once, and read once. */
static void carry_out(struct crowd *c)
{
    struct heard last = {0};
    size_t last_offset = SIZE_MAX;
    for (size_t i = 0; i < c->effects.count; i++) {
        const struct arbiter_effect *effect = &c->effects.list[i];
        struct worker *w =
            effect->to > 0 && effect->to <= c->worker_count ? &c->workers[effect->to - 1] : NULL;
        switch ((int)effect->kind) {
        case ARBITER_APPEND: append(c, effect); break;
        case ARBITER_SYNC: c->sync_due = true; break;
        case ARBITER_SERVE: c->serving = true; break;
        case ARBITER_SEND:
            if (effect->offset != last_offset) {
                last = read_frame(c, arbiter_effect_bytes(&c->effects, effect), effect->count);
                last_offset = effect->offset;
            }
            if (w && w->lives && w->connected) {
                assert_true(w->heard_count < HEARD_MAX);
                w->heard[w->heard_count++] = last;
            }
            break;
        case ARBITER_END: c->over = true; break;
        case ARBITER_FAILED:
            fail_msg("%.*s", (int)effect->count,
                     (const char *)arbiter_effect_bytes(&c->effects, effect));
            break;
        default: break;
        }
    }
}

void crowd_feed(struct crowd *c, struct arbiter_event event)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (c->over) {
        return;
    }
    event.now_ms = c->now_ms;
    if (arbiter_step(c->arbiter, &event, &c->effects, &err) < 0) {
        fail_msg("%s", err.text);
    }
    carry_out(c);
}

void crowd_sync(struct crowd *c)
{
    c->sync_due = false;
    c->durable = c->journal_count;
    c->durable_version = arbiter_version(c->arbiter);
    crowd_feed(c, (struct arbiter_event){.kind = ARBITER_DURABLE});
}

void crowd_begin(struct crowd *c)
{
    struct muster_err err = MUSTER_ERR_INIT;
    const uint32_t peers = c->members + c->members / 4 + 64;
    const struct arbiter_options options = {.sizes = {1, peers, c->members, 1ull << 32},
                                            .peers = peers,
                                            .lease_ms = SHARD_LEASE_MS,
                                            .first_ms = SHARD_LEASE_MS};
    assert_int_equal(arbiter_new(&options, &c->arbiter, &err), 0);
    arbiter_effects_init(&c->effects);
    for (size_t i = 0; i < c->journal_count; i++) {
        crowd_feed(c, (struct arbiter_event){.kind = ARBITER_REPLAY,
                                             .record = c->journal[i].kind,
                                             .bytes = c->journal[i].bytes,
                                             .count = c->journal[i].count});
    }
    crowd_feed(c, (struct arbiter_event){.kind = ARBITER_START});
    for (size_t i = 0; i < c->worker_count; i++) {
        struct worker *w = &c->workers[i];
        w->known = !w->buried && arbiter_knows(c->arbiter, i + 1);
        if (w->known && !w->lives) {
            w->buried = true;
            crowd_feed(c, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = i + 1});
        }
    }
}

void crowd_end_term(struct crowd *c)
{
    arbiter_free(c->arbiter);
    arbiter_effects_done(&c->effects);
    c->serving = c->sync_due = false;
}

static void cut_journal(struct crowd *c, size_t kept)
{
    while (c->journal_count > kept) {
        free(c->journal[--c->journal_count].bytes);
    }
}

void crowd_restart(struct crowd *c, size_t kept)
{
    crowd_end_term(c);
    cut_journal(c, kept);
    c->durable = kept;
    for (size_t i = 0; i < c->worker_count; i++) {
        struct worker *w = &c->workers[i];
        w->heard_count = 0;
        if (w->lives && w->connected) {
            w->connected = false;
            crowd_tell(c, w, (struct commit_event){.kind = COMMIT_DISCONNECTED});
        }
    }
    c->restarts++;
    crowd_begin(c);
}

void crowd_done(struct crowd *c)
{
    crowd_end_term(c);
    cut_journal(c, 0);
    free(c->journal);
    free(c->workers);
    free(c);
}
