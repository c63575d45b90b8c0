/* What can happen in the world, and what must always hold. See world.h. */
#include "world.h"

#include "wire/wire.h"

#include <string.h>

struct rendezvous *world_rendezvous(const struct world *world)
{
    return (struct rendezvous *)world->coordinator.core;
}

uint8_t world_all(const struct world *world)
{
    return (uint8_t)((1u << world->config.records) - 1);
}

void world_break(struct world *world, const char *invariant)
{
    if (!world->broken) {
        world->broken = invariant;
    }
}

struct process *world_process(struct world *world, uint64_t incarnation)
{
    struct process *p = &world->processes[(incarnation - 1) % PROCESSES_MAX];
    bool there = p->life == LIFE_RUNNING || p->life == LIFE_STOPPED;
    return there && p->incarnation == incarnation ? p : NULL;
}

void queue_put(struct world *world, struct queue *queue, const struct message *message)
{
    if (queue->count == QUEUE_MAX) {
        world_break(world, "messages under way are bounded");
        return;
    }
    queue->list[queue->count++] = *message;
    if (world->config.codec) {
        codec_pass(world, &queue->list[queue->count - 1]);
    }
}

struct message queue_take(struct queue *queue)
{
    struct message first = queue->list[0];
    queue->count--;
    memmove(queue->list, queue->list + 1, queue->count * sizeof first);
    memset(&queue->list[queue->count], 0, sizeof first);
    return first;
}

/* Takes an action that leads to a formed generation. It grants no records, so that no member has
 * entered a step yet. */
static bool form_further(struct world *world)
{
    static const bool forms[ACT_FAULTS] = {
        [ACT_CONNECT] = true, [ACT_HEAR] = true,    [ACT_TELL] = true,
        [ACT_SYNC] = true,    [ACT_RESTORE] = true,
    };
    struct action actions[ACTIONS_MAX];
    size_t count = world_actions(world, actions);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind < ACT_FAULTS && forms[actions[i].kind]) {
            world_act(world, actions[i]);
            return true;
        }
    }
    return false;
}

void world_init(struct world *world, const struct world_config *config)
{
    memset(world, 0, sizeof *world);
    world->config = *config;
    for (uint8_t i = 0; i + config->joiners < config->processes; i++) {
        process_begin(world, i, (uint8_t)(i + 1));
    }
    coordinator_begin(world);
    coordinator_sync(world);
    while (config->formed && form_further(world)) {
    }
}

const void *world_state(const struct world *world, size_t *ret_count)
{
    const unsigned char *from = (const unsigned char *)&world->faults;
    const void *end = &world->processes[world->config.processes];
    *ret_count = (size_t)((const unsigned char *)end - from);
    return from;
}

void world_copy(struct world *to, const struct world *from)
{
    const void *end = &from->processes[from->config.processes];
    memcpy(to, from, (size_t)((const char *)end - (const char *)from));
}

/* ---- Which actions are possible ---- */

struct list {
    const struct world *world;
    struct action *actions;
    size_t count;
};

static void add(struct list *list, enum action_kind kind, size_t who, size_t what)
{
    if (list->count < ACTIONS_MAX) {
        list->actions[list->count++] = (struct action){(uint8_t)kind, (uint8_t)who, (uint8_t)what};
    }
}

/* Whether the peers of a member find it gone by themselves. */
static bool is_lost(const struct world *world, const struct process *p, uint8_t incarnation)
{
    const struct process *peer = world_process((struct world *)world, incarnation);
    if (!peer || peer->life != LIFE_RUNNING || peer->core.generation > p->core.generation) {
        return true;
    }
    return peer->core.generation == p->core.generation &&
           (peer->core.stage == COMMIT_CLOSED || peer->core.stage == COMMIT_OVER);
}

static bool has_fault(const struct world *world, enum fault kind)
{
    return (world->config.kinds & kind) && world->faults < world->config.faults;
}

static void add_members(struct list *list, const struct process *p, size_t i)
{
    for (uint8_t j = 0; j < MEMBERS_MAX; j++) {
        if (process_may_lose(p, j) && is_lost(list->world, p, p->members[j])) {
            add(list, ACT_LOSE, i, j);
        }
        if (process_may_load(list->world, p, j)) {
            add(list, ACT_LOAD, i, j);
        }
    }
}

static void add_process(struct list *list, size_t i)
{
    static const enum action_kind own[] = {ACT_CONNECT, ACT_HEAR, ACT_ENTER,  ACT_REDUCE,
                                           ACT_PASS,    ACT_SAVE, ACT_RESTORE};
    const struct world *world = list->world;
    const struct process *p = &world->processes[i];
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        if (process_may(world, p, own[k])) {
            add(list, own[k], i, 0);
        }
    }
    add_members(list, p, i);
    if (p->up.count > 0 && world->coordinator.runs) {
        add(list, ACT_TELL, i, 0);
    }
    if (p->life == LIFE_STOPPED) {
        add(list, ACT_RESUME, i, 0);
    }
    bool joins = p->life == LIFE_NONE || (p->life == LIFE_KILLED && world->config.relaunch);
    if (joins && !world->coordinator.over) {
        add(list, ACT_START, i, 0);
    }
    if (coordinator_may_grant(world, p)) {
        add(list, ACT_GRANT, i, 0);
    }
}

static uint32_t running(const struct world *world)
{
    uint32_t count = 0;
    for (size_t i = 0; i < world->config.processes; i++) {
        count += world->processes[i].life == LIFE_RUNNING;
    }
    return count;
}

/* Whether all members that the coordinator waits for are gone. */
static bool all_late_are_gone(const struct world *world)
{
    const struct rendezvous *s = world_rendezvous(world);
    if (s->generation == 0 && running(world) >= s->config.first_size) {
        return false;
    }
    for (size_t i = 0; i < PEERS; i++) {
        const struct rendezvous_peer *peer = &world_rendezvous(world)->peers[i];
        if (peer->standing == RENDEZVOUS_MEMBER && !peer->reported && !peer->gone) {
            const struct process *p = world_process((struct world *)world, peer->incarnation);
            if (p && p->life == LIFE_RUNNING) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the parent sees how the process ends. It sees this also when the coordinator does not
 * know the process any more. */
static bool may_see_exit(const struct world *world, uint8_t i)
{
    const struct process *p = &world->processes[i];
    const struct rendezvous *s = world_rendezvous(world);
    const struct rendezvous_peer *peer = rendezvous_find(s, p->incarnation);
    return p->life == LIFE_FINISHED && s->complete && (!s->finished || (peer && !peer->gone));
}

static void add_coordinator(struct list *list)
{
    const struct world *world = list->world;
    const struct coordinator *c = &world->coordinator;
    if (!c->runs) {
        add(list, ACT_BEGIN, 0, 0);
        return;
    }
    if (c->syncing_count > 0) {
        add(list, ACT_SYNC, 0, 0);
    }
    if (c->deadline > 0 && all_late_are_gone(world)) {
        add(list, ACT_DEADLINE, 0, 0);
    }
    bool exits = false; /* exits are reported first, as rendezvous.h requires */
    for (uint8_t i = 0; i < world->config.processes; i++) {
        if (may_see_exit(world, i)) {
            add(list, ACT_EXIT, i, 0);
            exits = true;
        }
    }
    for (uint8_t i = 0; i < PEERS && !exits; i++) {
        if (coordinator_may_find(world, i)) {
            add(list, ACT_EVIDENCE, i, 0);
        }
    }
}

static void add_faults_of(struct list *list, size_t i)
{
    const struct world *world = list->world;
    const struct process *p = &world->processes[i];
    bool living = p->life == LIFE_RUNNING || p->life == LIFE_STOPPED;
    if (living && has_fault(world, FAULT_KILL)) {
        add(list, ACT_KILL, i, 0);
    }
    if (p->life == LIFE_RUNNING && has_fault(world, FAULT_STOP)) {
        add(list, ACT_STOP, i, 0);
    }
    if (living && p->core.connected && has_fault(world, FAULT_DROP)) {
        add(list, ACT_DROP, i, 0);
    }
    if (p->life == LIFE_RUNNING && !p->core.leaving && has_fault(world, FAULT_LEAVE)) {
        add(list, ACT_LEAVE, i, 0);
    }
    for (uint8_t j = 0; j < MEMBERS_MAX && has_fault(world, FAULT_SUSPECT); j++) {
        if (process_may_lose(p, j) && !is_lost(world, p, p->members[j])) {
            add(list, ACT_SUSPECT, i, j);
        }
    }
}

static void add_faults(struct list *list)
{
    const struct world *world = list->world;
    const struct coordinator *c = &world->coordinator;
    for (size_t i = 0; i < world->config.processes; i++) {
        add_faults_of(list, i);
    }
    if (c->runs && c->deadline > 0 && !all_late_are_gone(world) && has_fault(world, FAULT_HASTE)) {
        add(list, ACT_HASTE, 0, 0);
    }
    for (uint8_t kept = 0; c->runs && kept <= c->pending_count && has_fault(world, FAULT_CRASH);
         kept++) {
        add(list, ACT_CRASH, 0, kept);
    }
}

size_t world_actions(const struct world *world, struct action ret[ACTIONS_MAX])
{
    struct list list = {world, ret, 0};
    for (size_t i = 0; i < world->config.processes; i++) {
        add_process(&list, i);
    }
    if (!world->coordinator.over) {
        add_coordinator(&list);
        add_faults(&list);
    }
    return list.count;
}

/* ---- Carrying out an action ---- */

static void of_generation(struct world *world, struct process *p, enum commit_event_kind kind,
                          uint64_t version)
{
    process_tell(
        world, p,
        &(struct commit_event){.kind = kind, .generation = p->core.generation, .version = version},
        NULL);
}

static void lose(struct world *world, struct process *p, uint8_t member, bool suspects)
{
    const struct process *peer = world_process(world, p->members[member]);
    bool closed = peer && peer->life == LIFE_RUNNING && !suspects;
    process_tell(world, p,
                 &(struct commit_event){.kind = COMMIT_LOST,
                                        .generation = p->core.generation,
                                        .incarnation = closed ? 0 : p->members[member]},
                 NULL);
}

static void kill_process(struct process *p)
{
    struct queue up = p->up;
    uint8_t incarnation = p->incarnation;
    memset(p, 0, sizeof *p);
    p->up = up;
    p->incarnation = incarnation;
    p->life = LIFE_KILLED;
}

static void start(struct world *world, uint8_t i)
{
    uint8_t before = world->processes[i].incarnation;
    process_begin(world, i, (uint8_t)(before ? before + PROCESSES_MAX : i + 1));
}

static void hang_up(struct world *world, struct process *p)
{
    process_tell(world, p, &(struct commit_event){.kind = COMMIT_DISCONNECTED}, NULL);
    memset(&p->up, 0, sizeof p->up);
}

/* Both ends notice; messages under way are lost. */
static void drop(struct world *world, struct process *p)
{
    hang_up(world, p);
    memset(&p->down, 0, sizeof p->down);
    coordinator_tell(
        world,
        &(struct rendezvous_event){.kind = RENDEZVOUS_DISCONNECTED, .incarnation = p->incarnation},
        NULL);
}

/* Messages that the coordinator sent before arrive later, with an old term. */
static void crash(struct world *world, uint8_t kept)
{
    coordinator_crash(world, kept);
    for (size_t i = 0; i < world->config.processes; i++) {
        struct process *p = &world->processes[i];
        if (p->life == LIFE_RUNNING || p->life == LIFE_STOPPED) {
            hang_up(world, p);
        } else {
            memset(&p->up, 0, sizeof p->up);
        }
    }
}

static void save(struct world *world, struct process *p)
{
    struct message m = {.kind = WIRE_CHECKPOINT,
                        .incarnation = p->incarnation,
                        .term = (uint8_t)p->core.term,
                        .generation = (uint8_t)p->core.generation,
                        .version = (uint8_t)p->core.version,
                        .records = p->model};
    world->checkpoints++;
    queue_put(world, &p->up, &m);
}

static void see_exit(struct world *world, const struct process *p)
{
    coordinator_tell(world,
                     &(struct rendezvous_event){
                         .kind = RENDEZVOUS_LEAVE, .incarnation = p->incarnation, .finished = true},
                     NULL);
}

static void pass_deadline(struct world *world)
{
    uint8_t deadline = world->coordinator.deadline;
    world->coordinator.deadline = 0;
    coordinator_tell(world,
                     &(struct rendezvous_event){.kind = RENDEZVOUS_DEADLINE,
                                                .generation = (uint64_t)(deadline - 1)},
                     NULL);
}

/* Checks rule 9, which is what leases are for. */
static void check_owners(struct world *world)
{
    const struct rendezvous *s = world_rendezvous(world);
    uint8_t held = 0;
    for (size_t i = 0; i < world->config.processes && world->coordinator.runs; i++) {
        const struct process *p = &world->processes[i];
        const struct rendezvous_peer *peer = rendezvous_find(s, p->incarnation);
        bool current = peer && peer->standing == RENDEZVOUS_MEMBER && !peer->gone &&
                       (p->life == LIFE_RUNNING || p->life == LIFE_STOPPED) &&
                       p->core.lineage == s->lineage;
        if (current && (held & p->held)) {
            world_break(world, "a record has one owner among current members");
        }
        held |= current ? p->held : 0;
    }
}

static void happen(struct world *world, struct action action)
{
    struct process *p = &world->processes[action.who];
    struct commit_event connected = {.kind = COMMIT_CONNECTED,
                                     .term = world_rendezvous(world)->term};
    switch ((enum action_kind)action.kind) {
    case ACT_CONNECT: process_tell(world, p, &connected, NULL); break;
    case ACT_HEAR: process_hear(world, p); break;
    case ACT_TELL: coordinator_hear(world, p); break;
    case ACT_ENTER: of_generation(world, p, COMMIT_READY, 0); break;
    case ACT_REDUCE: of_generation(world, p, COMMIT_REDUCED, p->core.version + 1); break;
    case ACT_PASS: of_generation(world, p, COMMIT_PASSED, p->core.version + 1); break;
    case ACT_LOSE: lose(world, p, action.what, false); break;
    case ACT_LOAD: process_load(world, p, action.what); break;
    case ACT_RESTORE:
        p->restoring = 0;
        of_generation(world, p, COMMIT_LOADED, p->core.version);
        break;
    case ACT_RESUME: p->life = LIFE_RUNNING; break;
    case ACT_START: start(world, action.who); break;
    case ACT_GRANT: coordinator_grant(world, p); break;
    case ACT_SYNC: coordinator_sync(world); break;
    case ACT_DEADLINE:
    case ACT_HASTE: pass_deadline(world); break;
    case ACT_EVIDENCE: coordinator_find(world, action.who); break;
    case ACT_EXIT: see_exit(world, p); break;
    case ACT_BEGIN: coordinator_begin(world); break;
    case ACT_SAVE: save(world, p); break;
    case ACT_KILL: kill_process(p); break;
    case ACT_STOP: p->life = LIFE_STOPPED; break;
    case ACT_DROP: drop(world, p); break;
    case ACT_SUSPECT: lose(world, p, action.what, true); break;
    case ACT_LEAVE:
        process_tell(world, p, &(struct commit_event){.kind = COMMIT_LEAVE}, NULL);
        break;
    case ACT_CRASH: crash(world, action.what); break;
    }
}

static void tell_promptly(struct world *world)
{
    for (size_t i = 0; i < world->config.processes; i++) {
        while (world->processes[i].up.count > 0 && world->coordinator.runs && !world->broken) {
            coordinator_hear(world, &world->processes[i]);
        }
    }
    for (size_t i = 0; i < world->config.processes; i++) {
        if (coordinator_may_grant(world, &world->processes[i]) && !world->broken) {
            coordinator_grant(world, &world->processes[i]);
        }
    }
}

void world_act(struct world *world, struct action action)
{
    world->faults = (uint8_t)(world->faults + (action.kind >= ACT_FAULTS));
    happen(world, action);
    if (world->config.prompt) {
        tell_promptly(world);
    }
    check_owners(world);
}

/* ---- The end ---- */

static bool any_process_waits(const struct world *world)
{
    for (size_t i = 0; i < world->config.processes; i++) {
        uint8_t life = world->processes[i].life;
        if (life == LIFE_RUNNING || life == LIFE_STOPPED) {
            return true;
        }
    }
    return false;
}

const char *world_end(const struct world *world)
{
    const struct coordinator *c = &world->coordinator;
    if (any_process_waits(world)) {
        return "nobody waits for ever";
    }
    for (size_t i = 0; i < world->config.processes && !c->over; i++) {
        if (world->processes[i].life == LIFE_FINISHED) {
            return "the coordinator ends when its members have";
        }
    }
    return NULL;
}

const char *world_action_name(struct action action)
{
    static const char *const names[] = {
        [ACT_CONNECT] = "connects",
        [ACT_HEAR] = "hears",
        [ACT_TELL] = "is heard",
        [ACT_ENTER] = "enters",
        [ACT_REDUCE] = "reduces",
        [ACT_PASS] = "passes",
        [ACT_LOSE] = "loses",
        [ACT_LOAD] = "loads from",
        [ACT_RESTORE] = "restores",
        [ACT_RESUME] = "resumes",
        [ACT_START] = "starts",
        [ACT_GRANT] = "is granted a record",
        [ACT_SYNC] = "(journal) syncs",
        [ACT_DEADLINE] = "(deadline) passes",
        [ACT_EVIDENCE] = "(peer) is found gone",
        [ACT_EXIT] = "is seen to have finished",
        [ACT_BEGIN] = "(coordinator) begins",
        [ACT_SAVE] = "saves",
        [ACT_KILL] = "is killed",
        [ACT_STOP] = "is stopped",
        [ACT_DROP] = "is cut off",
        [ACT_SUSPECT] = "suspects",
        [ACT_HASTE] = "(deadline) passes too early",
        [ACT_LEAVE] = "is told to leave",
        [ACT_CRASH] = "(coordinator) crashes, keeping",
    };
    return names[action.kind];
}
