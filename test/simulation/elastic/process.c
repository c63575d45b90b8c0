/* A worker of the world: it does what src/commit tells it. See world.h. */
#include "world.h"

#include "commit/planted.h"
#include "wire/wire.h"

#include <string.h>

static uint8_t lowest(uint8_t records, uint8_t most)
{
    uint8_t taken = 0;
    for (uint8_t bit = 0; bit < RECORDS_MAX && most > 0; bit++) {
        if (records & 1u << bit) {
            taken = (uint8_t)(taken | 1u << bit);
            most--;
        }
    }
    return taken;
}

static uint8_t kept_records(const struct process *p)
{
    uint8_t records = 0;
    for (size_t v = 0; v < STEPS_MAX; v++) {
        records |= p->steps[v];
    }
    return records;
}

static size_t index_of(const struct process *p, uint8_t incarnation)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (p->members[i] == incarnation) {
            return i;
        }
    }
    return MEMBERS_MAX;
}

static bool is_there(const struct process *p)
{
    return p->life == LIFE_RUNNING || p->life == LIFE_STOPPED;
}

void process_begin(struct world *world, uint8_t place, uint8_t incarnation)
{
    struct process *p = &world->processes[place];
    struct queue up = p->up; /* what it sent before it died still arrives */
    memset(p, 0, sizeof *p);
    p->up = up;
    p->life = LIFE_RUNNING;
    p->incarnation = incarnation;
    commit_member_init(&p->core, incarnation);
}

/* ---- The data plane: what a member shows reaches all that are in its generation ---- */

static void show(struct world *world, const struct process *p)
{
    size_t mine = index_of(p, p->incarnation);
    for (size_t i = 0; i < world->config.processes; i++) {
        struct process *other = &world->processes[i];
        size_t at = index_of(other, p->incarnation);
        if (is_there(other) && other->core.generation == p->core.generation && at < MEMBERS_MAX) {
            other->entered[at] = p->entered[mine];
            other->shown[at] = p->shown[mine];
            other->barrier[at] = p->barrier[mine];
        }
    }
}

static void form(struct world *world, struct process *p, const struct message *open)
{
    memcpy(p->members, open->members, sizeof p->members);
    memset(p->entered, 0, sizeof p->entered);
    memset(p->shown, 0, sizeof p->shown);
    memset(p->barrier, 0, sizeof p->barrier);
    for (size_t i = 0; i < world->config.processes; i++) {
        const struct process *other = &world->processes[i];
        size_t at = index_of(p, other->incarnation), theirs = index_of(other, other->incarnation);
        if (is_there(other) && other != p && at < MEMBERS_MAX && theirs < MEMBERS_MAX &&
            other->core.generation == p->core.generation) {
            p->entered[at] = other->entered[theirs];
            p->shown[at] = other->shown[theirs];
            p->barrier[at] = other->barrier[theirs];
        }
    }
}

static bool all_have(const struct process *p, const uint8_t newest[MEMBERS_MAX])
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (p->members[i] != 0 && newest[i] <= p->core.version) {
            return false;
        }
    }
    return true;
}

static uint8_t manifest(const struct process *p)
{
    uint8_t records = 0;
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (p->members[i] != 0 && p->entered[i] == p->core.version + 1) {
            records |= p->shown[i];
        }
    }
    return records;
}

static bool sees_entry(const struct process *p)
{
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        if (p->members[i] != 0 && p->entered[i] > p->core.version) {
            return true;
        }
    }
    return false;
}

/* ---- Effects ---- */

static void enter(struct world *world, struct process *p, uint8_t version)
{
    size_t mine = index_of(p, p->incarnation);
    p->brought = lowest(p->held, world->config.batch);
    p->entered[mine] = version;
    p->shown[mine] = p->brought;
    show(world, p);
}

static void enter_barrier(struct world *world, struct process *p, uint8_t version)
{
    p->barrier[index_of(p, p->incarnation)] = version;
    show(world, p);
}

/* The most important checks: each record is in a model once, and each version has one meaning. */
static void apply(struct world *world, struct process *p, uint8_t version, uint8_t lineage)
{
    uint8_t *agreed = &world->agreed[lineage][version];
    if (!p->core.loaded || p->loading) {
        world_break(world, "a step is applied to a model only");
    }
    if (p->model & p->sum) {
        world_break(world, "a record is trained once");
    }
    if (p->sum == 0) {
        world_break(world, "a step has records");
    }
    if (*agreed != 0 && *agreed != p->sum) {
        world_break(world, "members that committed a step agree on its records");
    }
    *agreed = p->sum;
    p->model |= p->sum;
    p->steps[version] = p->sum;
    p->held &= (uint8_t)~p->sum;
    p->brought = 0;
    p->sum = 0;
}

static void trim(struct process *p, uint64_t version)
{
    for (size_t v = 0; v <= version && v < STEPS_MAX; v++) {
        p->steps[v] = 0;
    }
}

static void restore(struct process *p, const struct message *open)
{
    p->held = 0;
    p->brought = 0;
    memset(p->steps, 0, sizeof p->steps);
    p->model = open->records;
    p->restoring = 1;
}

static void fill_report(const struct process *p, struct message *m)
{
    m->generation = (uint8_t)p->core.generation;
    m->version = (uint8_t)p->core.version;
    m->first = (uint8_t)(p->core.acked + 1);
    m->closed = p->core.stage == COMMIT_CLOSED;
    m->loaded = p->core.loaded;
    m->is_prepared = p->core.prepared;
    m->prepared = p->core.prepared ? p->sum : 0;
    m->records = p->held;
    for (uint64_t v = p->core.acked + 1; v <= p->core.version && v < STEPS_MAX; v++) {
        m->steps[v] = p->steps[v];
    }
}

static void send(struct world *world, struct process *p, const struct commit_effect *effect)
{
    struct message m = {.incarnation = p->incarnation, .term = (uint8_t)p->core.term};
    if (effect->kind == COMMIT_DO_JOIN) {
        m.kind = WIRE_JOIN;
    } else if (effect->kind == COMMIT_DO_LEAVE) {
        m.kind = WIRE_LEAVE;
        m.finished = effect->finished;
    } else if (effect->kind == COMMIT_DO_COMMITS) {
        m.kind = WIRE_COMMITS;
        m.generation = (uint8_t)p->core.generation;
        m.first = m.version = (uint8_t)effect->version;
        m.steps[m.version] = p->steps[m.version];
    } else {
        m.kind = WIRE_REPORT;
        m.lost = (uint8_t)effect->incarnation;
        fill_report(p, &m);
    }
    if (p->core.connected) {
        queue_put(world, &p->up, &m);
    }
}

/* Rule 14: a process that ends may not leave behind what is in no journal. */
static void finish(struct world *world, struct process *p)
{
    uint8_t logged = 0;
    for (size_t v = 1; v <= world->coordinator.durable.logged && v < STEPS_MAX; v++) {
        logged |= world->coordinator.durable.steps[v];
    }
    if (p->model != world_all(world)) {
        world_break(world, "who ends well has trained all records");
    }
    if (logged != world_all(world)) {
        world_break(world, "who ends well leaves all steps in the journal");
    }
    p->life = LIFE_FINISHED;
    p->down.count = 0;
    memset(p->down.list, 0, sizeof p->down.list);
}

static void rejoin(struct world *world, struct process *p, const struct message *expelled)
{
    uint8_t place = (uint8_t)(p - world->processes);
    bool ends = expelled->reason == RENDEZVOUS_LEFT || expelled->reason == RENDEZVOUS_DONE;
    process_begin(world, place, (uint8_t)(p->incarnation + (ends ? 0 : PROCESSES_MAX)));
    if (ends) {
        p->life = LIFE_LEFT;
    }
}

static void carry_out(struct world *world, struct process *p, const struct commit_effect *effect,
                      uint8_t lineage, const struct message *message)
{
    uint8_t version = (uint8_t)effect->version;
    switch (effect->kind) {
    case COMMIT_DO_JOIN:
    case COMMIT_DO_LEAVE:
    case COMMIT_DO_COMMITS:
    case COMMIT_DO_REPORT: send(world, p, effect); break;
    case COMMIT_DO_ENTER: enter(world, p, version); break;
    case COMMIT_DO_BARRIER: enter_barrier(world, p, version); break;
    case COMMIT_DO_APPLY: apply(world, p, version, lineage); break;
    case COMMIT_DO_DISCARD: p->sum = 0; break;
    case COMMIT_DO_ABORT: p->loading = p->restoring = p->brought = 0; break;
    case COMMIT_DO_FORM: form(world, p, message); break;
    case COMMIT_DO_LOAD: p->loading = 1; break;
    case COMMIT_DO_RESTORE: restore(p, message); break;
    case COMMIT_DO_TRIM: trim(p, version); break;
    case COMMIT_DO_KEEP: p->held |= message->records & (uint8_t)~kept_records(p); break;
    case COMMIT_DO_REJOIN: rejoin(world, p, message); break;
    case COMMIT_DO_FINISH: finish(world, p); break;
    case COMMIT_DO_FAIL: world_break(world, "a member can follow the decision"); break;
    }
}

void process_tell(struct world *world, struct process *p, const struct commit_event *event,
                  const struct message *message)
{
    struct commit_effects effects;
    uint8_t lineage = (uint8_t)p->core.lineage; /* also of the step that OPEN commits */
    bool reduces = event->kind == COMMIT_REDUCED && p->core.entered;
    if (reduces) {
        p->sum = PLANTED(IDS_IN_BARRIER) ? p->brought : manifest(p);
    }
    if (event->kind == COMMIT_PASSED && PLANTED(IDS_IN_BARRIER)) {
        p->sum = manifest(p);
    }
    commit_member_step(&p->core, event, &effects);
    for (size_t i = 0; i < effects.count && !world->broken; i++) {
        carry_out(world, p, &effects.list[i], lineage, message);
    }
    if (p->core.stage == COMMIT_CLOSED && !p->core.prepared) {
        p->sum = 0;
    }
    const char *broken = p->life == LIFE_RUNNING ? commit_member_check(&p->core) : NULL;
    if (broken) {
        world_break(world, broken);
    }
    if (p->life == LIFE_RUNNING && p->core.generation > 0 && !p->core.complete && !p->loading &&
        !p->restoring && p->model == world_all(world) && !world->broken) {
        process_tell(world, p, &(struct commit_event){.kind = COMMIT_COMPLETE}, NULL);
    }
}

void process_hear(struct world *world, struct process *p)
{
    struct message m = queue_take(&p->down);
    struct commit_event event = {.term = m.term,
                                 .generation = m.generation,
                                 .version = m.version,
                                 .lineage = m.lineage,
                                 .incarnation = m.incarnation,
                                 .restore = m.restore,
                                 .boundary = m.boundary};
    switch (m.kind) {
    case WIRE_OPEN: event.kind = COMMIT_OPEN; break;
    case WIRE_CLOSE: event.kind = COMMIT_CLOSE; break;
    case WIRE_ACK: event.kind = COMMIT_ACK; break;
    case WIRE_GRANT: event.kind = COMMIT_GRANT; break;
    case WIRE_EXPELLED: event.kind = COMMIT_EXPELLED; break;
    default: world_break(world, "a member hears what is meant for members"); return;
    }
    if (m.incarnation == p->incarnation) {
        process_tell(world, p, &event, &m);
    }
}

/* ---- Which actions are possible ---- */

bool process_may(const struct world *world, const struct process *p, enum action_kind kind)
{
    const struct commit_member *core = &p->core;
    const struct coordinator *c = &world->coordinator;
    bool inside = core->stage == COMMIT_WORKING || core->stage == COMMIT_PREPARED;
    if (p->life != LIFE_RUNNING || core->stage == COMMIT_OVER) {
        return false;
    }
    switch ((int)kind) {
    case ACT_CONNECT: return !core->connected && c->runs && world_rendezvous(world)->serving;
    case ACT_HEAR: return p->down.count > 0;
    case ACT_ENTER:
        return core->stage == COMMIT_WORKING && !core->entered && !core->complete &&
               (p->held != 0 || sees_entry(p));
    case ACT_REDUCE:
        return core->stage == COMMIT_WORKING && core->entered && !core->reduced &&
               all_have(p, p->entered);
    case ACT_PASS: return core->prepared && all_have(p, p->barrier);
    case ACT_RESTORE: return p->restoring && inside;
    case ACT_SAVE:
        return world->checkpoints < world->config.checkpoints && inside && core->loaded &&
               core->connected && core->version > 0 && !p->restoring;
    default: return false;
    }
}

bool process_may_lose(const struct process *p, uint8_t member)
{
    uint8_t incarnation = p->members[member];
    bool inside = p->core.stage == COMMIT_WORKING || p->core.stage == COMMIT_PREPARED;
    return p->life == LIFE_RUNNING && inside && incarnation != 0 && incarnation != p->incarnation;
}

bool process_may_load(const struct world *world, const struct process *p, uint8_t member)
{
    if (!p->loading || p->life != LIFE_RUNNING || p->members[member] == 0) {
        return false;
    }
    const struct process *donor = world_process((struct world *)world, p->members[member]);
    return donor && donor != p && donor->life == LIFE_RUNNING && donor->core.loaded &&
           donor->core.generation == p->core.generation && donor->core.version == p->core.version &&
           donor->core.stage != COMMIT_OVER;
}

void process_load(struct world *world, struct process *p, uint8_t member)
{
    const struct process *donor = world_process(world, p->members[member]);
    uint8_t model = 0;
    p->model = donor->model;
    p->loading = 0;
    for (size_t v = 1; v <= p->core.version && v < STEPS_MAX; v++) {
        model |= world->agreed[p->core.lineage][v];
    }
    if (model != p->model) {
        world_break(world, "a joiner reads the model of its version");
    }
    process_tell(world, p,
                 &(struct commit_event){.kind = COMMIT_LOADED,
                                        .generation = p->core.generation,
                                        .version = p->core.version},
                 NULL);
}
