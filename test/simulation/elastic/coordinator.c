/* The coordinator of the world: it does what src/rendezvous tells it, keeps a journal that loses
 * its end in a crash, and grants records. See world.h. */
#include "world.h"

#include "commit/planted.h"
#include "wire/wire.h"

#include <string.h>

static const struct rendezvous_peer *peer_at(const struct world *world, size_t i)
{
    return &world_rendezvous(world)->peers[i];
}

/* ---- The table of leases ---- */

static uint8_t owned_by(const struct coordinator *c, uint8_t owner)
{
    uint8_t records = 0;
    for (size_t bit = 0; bit < RECORDS_MAX; bit++) {
        if (c->owners[bit] == owner) {
            records = (uint8_t)(records | 1u << bit);
        }
    }
    return records;
}

static void give(struct coordinator *c, uint8_t records, uint8_t owner)
{
    for (size_t bit = 0; bit < RECORDS_MAX; bit++) {
        if (records & 1u << bit) {
            c->owners[bit] = owner;
        }
    }
}

static uint8_t free_records(const struct world *world)
{
    return owned_by(&world->coordinator, 0) & world_all(world);
}

/* Records that are committed, or that another owner has, stay as they are. */
static void take_leases(struct coordinator *c, uint8_t owner, uint8_t records)
{
    give(c, owned_by(c, owner) & (uint8_t)~records, 0);
    give(c, records & owned_by(c, 0), owner);
}

/* ---- The journal ---- */

static struct entry *append(struct world *world, const struct rendezvous_effect *effect)
{
    struct coordinator *c = &world->coordinator;
    if (c->pending_count == PENDING_MAX) {
        world_break(world, "what waits for the disk is bounded");
        c->pending_count--;
    }
    struct entry *entry = &c->pending[c->pending_count++];
    memset(entry, 0, sizeof *entry);
    entry->kind = (uint8_t)effect->kind;
    entry->term = (uint8_t)effect->term;
    entry->generation = (uint8_t)effect->generation;
    entry->version = (uint8_t)effect->version;
    entry->first = (uint8_t)effect->first;
    entry->lineage = (uint8_t)effect->lineage;
    entry->restore = effect->restore;
    entry->saved = c->saved;
    return entry;
}

static void log_step(struct world *world, struct entry *entry, size_t version, uint8_t records)
{
    struct coordinator *c = &world->coordinator;
    uint8_t before = 0;
    for (size_t v = 1; v < version; v++) {
        before |= c->steps[v];
    }
    if (records == 0 || (before & records)) {
        world_break(world, "each record is in the log once");
    }
    entry->steps[version] = records;
    c->steps[version] = records;
    give(c, records, COMMITTED);
}

static void append_steps(struct world *world, const struct rendezvous_effect *effect,
                         const struct message *message)
{
    struct entry *entry = append(world, effect);
    const struct rendezvous *s = world_rendezvous(world);
    for (uint64_t v = effect->first; v <= effect->version && v < STEPS_MAX; v++) {
        if (message->steps[v] != world->agreed[s->lineage][v]) {
            world_break(world, "the log has the records that were applied");
        }
        log_step(world, entry, v, message->steps[v]);
    }
}

static void append_generation(struct world *world, const struct rendezvous_effect *effect)
{
    struct entry *entry = append(world, effect);
    uint8_t count = 0;
    for (size_t i = 0; i < PEERS; i++) {
        const struct rendezvous_peer *peer = peer_at(world, i);
        bool member =
            PLANTED(OPEN_BEFORE_JOURNAL) ? peer->standing == RENDEZVOUS_MEMBER : peer->next;
        if (member && count < MEMBERS_MAX) {
            entry->members[count] = (uint8_t)peer->incarnation;
            entry->ages[count++] = (uint8_t)peer->age;
        }
    }
    if (effect->prepared) {
        log_step(world, entry, effect->version, world->coordinator.prepared);
    }
    if (effect->lineage >= LINEAGES_MAX || effect->generation >= GENERATIONS_MAX) {
        world_break(world, "generations come to an end");
    } else if (effect->lineage > world_rendezvous(world)->lineage) {
        memset(world->agreed[effect->lineage], 0, STEPS_MAX); /* a crash took it back */
        memcpy(world->agreed[effect->lineage], world->agreed[effect->lineage - 1],
               effect->version + 1);
    }
}

static void make_durable(struct journal *j, const struct entry *entry)
{
    switch (entry->kind) {
    case RENDEZVOUS_APPEND_TERM: j->term = entry->term; break;
    case RENDEZVOUS_APPEND_CHECKPOINT:
        j->checkpoint = entry->version;
        j->saved = entry->saved;
        break;
    case RENDEZVOUS_APPEND_GENERATION:
        j->generation = entry->generation;
        j->version = entry->version;
        j->lineage = entry->lineage;
        j->restore = entry->restore;
        memcpy(j->members, entry->members, sizeof j->members);
        memcpy(j->ages, entry->ages, sizeof j->ages);
        if (entry->restore && !PLANTED(RESTORE_KEEPS_LOG)) {
            memset(j->steps + entry->version + 1, 0, STEPS_MAX - 1u - entry->version);
            j->logged = entry->version;
        }
        break;
    default: break;
    }
    for (size_t v = 1; v < STEPS_MAX; v++) {
        if (entry->steps[v] != 0) {
            j->steps[v] = entry->steps[v];
            j->logged = (uint8_t)(v > j->logged ? v : j->logged);
        }
    }
}

static void shift_pending(struct coordinator *c, uint8_t count)
{
    for (size_t i = 0; i < count; i++) {
        make_durable(&c->durable, &c->pending[i]);
    }
    c->pending_count = (uint8_t)(c->pending_count - count);
    memmove(c->pending, c->pending + count, c->pending_count * sizeof *c->pending);
    memset(c->pending + c->pending_count, 0, (PENDING_MAX - c->pending_count) * sizeof *c->pending);
}

/* ---- Messages ---- */

static void send(struct world *world, uint64_t to, struct message *m)
{
    struct process *p = world_process(world, to);
    m->incarnation = (uint8_t)to;
    m->term = (uint8_t)world_rendezvous(world)->term;
    if (p) {
        queue_put(world, &p->down, m);
    }
}

static void send_open(struct world *world, const struct rendezvous_effect *effect)
{
    struct message m = {.kind = WIRE_OPEN,
                        .generation = (uint8_t)effect->generation,
                        .version = (uint8_t)effect->version,
                        .lineage = (uint8_t)effect->lineage,
                        .restore = effect->restore};
    uint8_t count = 0;
    for (size_t i = 0; i < PEERS; i++) {
        const struct rendezvous_peer *peer = peer_at(world, i);
        if (peer->standing == RENDEZVOUS_MEMBER && count < MEMBERS_MAX) {
            m.members[count++] = (uint8_t)peer->incarnation;
        }
    }
    if (effect->restore && effect->version > 0) {
        m.records = world->coordinator.saved;
    }
    send(world, effect->to, &m);
}

static void send_grant(struct world *world, uint64_t to, uint8_t records)
{
    struct message m = {.kind = WIRE_GRANT, .records = records};
    if (records != 0) {
        send(world, to, &m);
    }
}

static void expel(struct world *world, const struct rendezvous_effect *effect)
{
    if (effect->reason == RENDEZVOUS_BROKEN || effect->reason == RENDEZVOUS_AHEAD ||
        effect->reason == RENDEZVOUS_FULL) {
        world_break(world, "what members report fits the journal");
    }
    struct message m = {.kind = WIRE_EXPELLED, .reason = (uint8_t)effect->reason};
    send(world, effect->to, &m);
}

static void cut(struct world *world, uint64_t version)
{
    struct coordinator *c = &world->coordinator;
    memset(c->steps + version + 1, 0, STEPS_MAX - 1 - version);
    memset(c->owners, 0, sizeof c->owners);
    for (size_t v = 1; v <= version; v++) {
        give(c, c->steps[v], COMMITTED);
    }
}

static void end(struct world *world)
{
    uint8_t logged = 0;
    for (size_t v = 1; v < STEPS_MAX; v++) {
        logged |= world->coordinator.steps[v];
    }
    if (logged != world_all(world)) {
        world_break(world, "the job is done when all records are in the log");
    }
    world->coordinator.over = 1;
}

static void carry_out(struct world *world, const struct rendezvous_effect *effect,
                      const struct message *message)
{
    struct coordinator *c = &world->coordinator;
    uint8_t to = (uint8_t)effect->to;
    switch (effect->kind) {
    case RENDEZVOUS_APPEND_CHECKPOINT:
        c->saved = c->offered[effect->version];
        append(world, effect);
        break;
    case RENDEZVOUS_APPEND_TERM: append(world, effect); break;
    case RENDEZVOUS_APPEND_LOG: append_steps(world, effect, message); break;
    case RENDEZVOUS_APPEND_GENERATION: append_generation(world, effect); break;
    case RENDEZVOUS_SYNC: c->syncing_count = c->pending_count; break;
    case RENDEZVOUS_SERVE: break;
    case RENDEZVOUS_OPEN: send_open(world, effect); break;
    case RENDEZVOUS_CLOSE: {
        struct message m = {.kind = WIRE_CLOSE,
                            .generation = (uint8_t)effect->generation,
                            .boundary = effect->boundary};
        send(world, effect->to, &m);
        break;
    }
    case RENDEZVOUS_ACK: {
        struct message m = {.kind = WIRE_ACK, .version = (uint8_t)effect->version};
        send(world, effect->to, &m);
        break;
    }
    case RENDEZVOUS_EXPEL: expel(world, effect); break;
    case RENDEZVOUS_KEEP_PREPARED: c->prepared = message->prepared; break;
    case RENDEZVOUS_TAKE_LEASES: take_leases(c, to, message->records); break;
    case RENDEZVOUS_RESEND_GRANTS: send_grant(world, to, owned_by(c, to)); break;
    case RENDEZVOUS_RETURN_LEASES: give(c, owned_by(c, to), 0); break;
    case RENDEZVOUS_CUT: cut(world, effect->version); break;
    case RENDEZVOUS_AWAIT: c->deadline = (uint8_t)(effect->generation + 1); break;
    case RENDEZVOUS_END: end(world); break;
    case RENDEZVOUS_TELL_CHECKPOINTS: /* no core decides what becomes of a file */
    case RENDEZVOUS_LOST_STATE: break;
    }
}

static bool log_is_full(const struct world *world)
{
    return owned_by(&world->coordinator, COMMITTED) == world_all(world);
}

void coordinator_tell(struct world *world, const struct rendezvous_event *event,
                      const struct message *message)
{
    struct rendezvous *s = world_rendezvous(world);
    struct rendezvous_effect list[RENDEZVOUS_EFFECTS_MAX(PEERS)];
    struct rendezvous_effects effects = {.room = RENDEZVOUS_EFFECTS_MAX(PEERS), .list = list};
    rendezvous_step(s, event, &effects);
    for (size_t i = 0; i < effects.count && !world->broken; i++) {
        carry_out(world, &list[i], message);
    }
    const char *broken = rendezvous_check(s);
    if (broken) {
        world_break(world, broken);
    }
    if (s->phase != RENDEZVOUS_READING && !s->complete && log_is_full(world) && !world->broken) {
        coordinator_tell(world, &(struct rendezvous_event){.kind = RENDEZVOUS_COMPLETE}, NULL);
    }
    if (s->phase != RENDEZVOUS_CLOSING) {
        world->coordinator.deadline = 0;
    }
}

void coordinator_hear(struct world *world, struct process *p)
{
    struct message m = queue_take(&p->up);
    struct rendezvous_event event = {.incarnation = m.incarnation,
                                     .generation = m.generation,
                                     .version = m.version,
                                     .first = m.first,
                                     .lost = m.lost,
                                     .ended = m.lost != 0,
                                     .closed = m.closed,
                                     .loaded = m.loaded,
                                     .prepared = m.is_prepared,
                                     .finished = m.finished};
    switch (m.kind) {
    case WIRE_JOIN: event.kind = RENDEZVOUS_JOIN; break;
    case WIRE_LEAVE: event.kind = RENDEZVOUS_LEAVE; break;
    case WIRE_REPORT: event.kind = RENDEZVOUS_REPORT; break;
    case WIRE_COMMITS: event.kind = RENDEZVOUS_COMMITS; break;
    case WIRE_CHECKPOINT:
        event.kind = RENDEZVOUS_CHECKPOINT;
        world->coordinator.offered[m.version] = m.records;
        break;
    default: world_break(world, "the coordinator hears what is meant for it"); return;
    }
    coordinator_tell(world, &event, &m);
}

/* ---- A crash, and what the journal gives ---- */

static void replay(struct world *world)
{
    struct coordinator *c = &world->coordinator;
    const struct journal *j = &c->durable;
    struct rendezvous_event event = {.kind = RENDEZVOUS_REPLAY_TERM, .term = j->term};
    coordinator_tell(world, &event, NULL);
    if (j->generation > 0) {
        event = (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_GENERATION,
                                          .generation = j->generation,
                                          .version = j->version,
                                          .lineage = j->lineage,
                                          .restore = j->restore};
        coordinator_tell(world, &event, NULL);
    }
    for (size_t i = 0; i < MEMBERS_MAX && j->members[i] != 0; i++) {
        event = (struct rendezvous_event){
            .kind = RENDEZVOUS_REPLAY_MEMBER, .incarnation = j->members[i], .age = j->ages[i]};
        coordinator_tell(world, &event, NULL);
    }
    event = (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_LOG, .version = j->logged};
    coordinator_tell(world, &event, NULL);
    event =
        (struct rendezvous_event){.kind = RENDEZVOUS_REPLAY_CHECKPOINT, .version = j->checkpoint};
    coordinator_tell(world, &event, NULL);
}

void coordinator_begin(struct world *world)
{
    struct coordinator *c = &world->coordinator;
    const struct world_config *config = &world->config;
    struct rendezvous_config sizes = {
        .min_size = 1,
        .max_size = config->processes,
        .first_size = (uint32_t)(config->processes - config->joiners),
    };
    rendezvous_init(world_rendezvous(world), sizes, PEERS);
    c->runs = 1;
    c->saved = c->durable.saved;
    memcpy(c->steps, c->durable.steps, sizeof c->steps);
    for (size_t v = 1; v < STEPS_MAX; v++) {
        give(c, c->steps[v], COMMITTED);
    }
    replay(world);
    coordinator_tell(world, &(struct rendezvous_event){.kind = RENDEZVOUS_START}, NULL);
    c->deadline = c->durable.generation == 0; /* generation 0, plus 1 */
}

void coordinator_crash(struct world *world, uint8_t kept)
{
    struct coordinator *c = &world->coordinator;
    shift_pending(c, kept);
    struct journal durable = c->durable;
    memset(c, 0, sizeof *c);
    c->durable = durable;
}

void coordinator_sync(struct world *world)
{
    struct coordinator *c = &world->coordinator;
    shift_pending(c, c->syncing_count);
    c->syncing_count = 0;
    coordinator_tell(world, &(struct rendezvous_event){.kind = RENDEZVOUS_DURABLE}, NULL);
}

/* ---- Grants ---- */

static int count_of(uint8_t records)
{
    return __builtin_popcount(records);
}

bool coordinator_may_grant(const struct world *world, const struct process *p)
{
    const struct coordinator *c = &world->coordinator;
    return c->runs && p->life != LIFE_NONE && free_records(world) != 0 &&
           rendezvous_may_grant(world_rendezvous(world), p->incarnation) &&
           count_of(owned_by(c, p->incarnation)) < world->config.ahead;
}

void coordinator_grant(struct world *world, struct process *p)
{
    uint8_t free = free_records(world);
    uint8_t record = (uint8_t)(free & -free);
    give(&world->coordinator, record, p->incarnation);
    send_grant(world, p->incarnation, record);
}

/* ---- Evidence that a process is gone ---- */

bool coordinator_may_find(const struct world *world, uint8_t peer)
{
    const struct rendezvous_peer *one = peer_at(world, peer);
    const struct process *p = &world->processes[(one->incarnation - 1) % PROCESSES_MAX];
    bool finished = p->life == LIFE_FINISHED && p->incarnation == one->incarnation;
    return one->standing != RENDEZVOUS_FREE && !one->gone && !finished &&
           !world_process((struct world *)world, one->incarnation);
}

void coordinator_find(struct world *world, uint8_t peer)
{
    struct rendezvous_event event = {.kind = RENDEZVOUS_DEAD,
                                     .incarnation = peer_at(world, peer)->incarnation};
    coordinator_tell(world, &event, NULL);
}
