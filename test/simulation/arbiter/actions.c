/* What can happen next in the job. See job.h. */
#include "job.h"

struct list {
    const struct job *job;
    struct action *actions;
    size_t count;
};

static void add(struct list *list, enum action_kind kind, size_t who, size_t what)
{
    if (list->count < ACTIONS_MAX) {
        list->actions[list->count++] = (struct action){(uint8_t)kind, (uint8_t)who, (uint8_t)what};
    }
}

static bool has_fault(const struct job *job, enum fault kind)
{
    return (job->config.kinds & kind) && job->faults < job->config.faults;
}

/* Whether the peers of a member find it gone by themselves. */
static bool is_lost(const struct process *p, const struct process *other)
{
    const struct commit_member *core = &other->trainer.core;
    if (other->life != LIFE_RUNNING || core->generation > p->trainer.core.generation) {
        return true;
    }
    return core->generation == p->trainer.core.generation &&
           (core->stage == COMMIT_CLOSED || core->stage == COMMIT_OVER);
}

static void add_others(struct list *list, size_t i)
{
    const struct job *job = list->job;
    const struct process *p = &job->lives[i];
    for (size_t j = 0; j < job->life_count && !p->leases; j++) {
        const struct process *other = &job->lives[j];
        if (trainer_may_lose(p, other)) {
            bool lost = is_lost(p, other);
            if (lost || has_fault(job, FAULT_DOUBT)) {
                add(list, lost ? ACT_LOSE : ACT_DOUBT, i, j);
            }
        }
        if (!other->leases && trainer_may_load(p, other)) {
            add(list, ACT_LOAD, i, j);
        }
    }
}

static void add_running(struct list *list, size_t i)
{
    static const enum action_kind own[] = {ACT_COMPUTE, ACT_ENTER, ACT_REDUCE, ACT_PASS,
                                           ACT_RESTORE, ACT_SAVE,  ACT_WORK,   ACT_ASK};
    const struct job *job = list->job;
    const struct process *p = &job->lives[i];
    const struct coordinator *c = &job->coordinator;
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        if (p->leases ? leaser_may(p, own[k]) : trainer_may(job, p, own[k])) {
            add(list, own[k], i, 0);
        }
    }
    if (p->link.down_frames.count > 0 || (p->link.up && p->link.ending)) {
        add(list, ACT_HEAR, i, 0);
    } else if (!p->link.up && c->serving && !c->over) {
        add(list, ACT_CONNECT, i, 0);
    } else if (c->over || (p->leases && leaser_may(p, ACT_GO))) {
        add(list, ACT_GO, i, 0);
    }
    add_others(list, i);
}

static void add_process_faults(struct list *list, size_t i)
{
    static const struct {
        enum fault fault;
        enum action_kind action;
    } kinds[] = {{FAULT_KILL, ACT_KILL},
                 {FAULT_CRASH, ACT_CRASH},
                 {FAULT_STOP, ACT_STOP},
                 {FAULT_CUT, ACT_CUT},
                 {FAULT_LEAVE, ACT_LEAVE}};
    const struct process *p = &list->job->lives[i];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        bool can = kinds[k].action == ACT_CUT     ? p->link.up
                   : kinds[k].action == ACT_LEAVE ? !p->leases && !p->trainer.told_leave &&
                                                        p->trainer.core.stage != COMMIT_OVER
                                                  : true;
        if (p->life == LIFE_RUNNING && can && has_fault(list->job, kinds[k].fault)) {
            add(list, kinds[k].action, i, 0);
        }
    }
}

static bool is_replaced(const struct job *job, const struct process *p)
{
    for (size_t i = 0; i < job->life_count; i++) {
        if (job->lives[i].place == p->place && job->lives[i].incarnation > p->incarnation) {
            return true;
        }
    }
    return false;
}

static void add_process(struct list *list, size_t i)
{
    const struct job *job = list->job;
    const struct process *p = &job->lives[i];
    const struct coordinator *c = &job->coordinator;
    bool hears = c->arbiter && !c->over;
    if (p->life == LIFE_RUNNING) {
        add_running(list, i);
    } else if (p->life == LIFE_STOPPED) {
        add(list, ACT_RESUME, i, 0);
    } else if (p->life == LIFE_DEAD && job->config.relaunch && !is_replaced(job, p) && !c->over &&
               job->life_count < LIVES_MAX) {
        add(list, ACT_START, p->place, 0);
    }
    if (hears && p->link.seen && p->link.up_frames.count > 0) {
        add(list, ACT_TELL, i, 0);
    } else if (hears && p->link.seen && !p->link.up) {
        add(list, ACT_PART, i, 0);
    }
    bool is_seen = !job->config.remote || !p->link.seen; /* its host refuses: reach.c */
    if (hears && !process_lives(p) && !p->buried && p->link.known && is_seen) {
        add(list, ACT_BURY, i, 0);
    } else if (hears && p->unexplained) {
        add(list, ACT_EXPLAIN, i, 0);
    }
    add_process_faults(list, i);
}

static void add_joiners(struct list *list)
{
    const struct job *job = list->job;
    uint8_t first = job->config.trainers;
    for (uint8_t place = first; place < first + job->config.joiners; place++) {
        bool there = false;
        for (size_t i = 0; i < job->life_count; i++) {
            there = there || job->lives[i].place == place;
        }
        if (!there && !job->coordinator.over && job->life_count < LIVES_MAX) {
            add(list, ACT_START, place, 0);
        }
    }
}

static void add_coordinator(struct list *list)
{
    const struct job *job = list->job;
    const struct coordinator *c = &job->coordinator;
    if (!c->arbiter) {
        add(list, ACT_BEGIN, 0, 0);
        return;
    }
    if (c->sync_due) {
        add(list, ACT_SYNC, 0, 0);
    } else if (c->journal_count > 8 && arbiter_may_compact(c->arbiter)) {
        add(list, ACT_COMPACT, 0, 0);
    }
    if (has_fault(job, FAULT_DOWN)) {
        for (size_t kept = c->durable; kept <= c->journal_count; kept++) {
            add(list, ACT_DOWN, 0, kept - c->durable);
        }
    }
}

/* Whether all possible actions may wait: other actions happen before the clock moves. */
static bool only_waits(const struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        uint8_t kind = list->actions[i].kind;
        if (kind < ACT_FAULTS && kind != ACT_RESUME && kind != ACT_START && kind != ACT_COMPACT) {
            return false;
        }
    }
    return true;
}

static void add_time(struct list *list)
{
    const struct job *job = list->job;
    const struct coordinator *c = &job->coordinator;
    if (!c->arbiter || arbiter_next_ms(c->arbiter) == INT64_MAX) {
        return;
    }
    if (only_waits(list)) {
        add(list, ACT_TIME, 0, 0);
    } else if (has_fault(job, FAULT_HASTE)) {
        add(list, ACT_HASTE, 0, 0);
    }
}

size_t job_actions(const struct job *job, struct action ret[ACTIONS_MAX])
{
    struct list list = {job, ret, 0};
    for (size_t i = 0; i < job->life_count; i++) {
        add_process(&list, i);
    }
    for (size_t i = 0; i < job->file_count && has_fault(job, FAULT_DAMAGE); i++) {
        add(&list, ACT_DAMAGE, i, 0);
    }
    if (!job->coordinator.over) {
        add_joiners(&list);
        add_coordinator(&list);
        add_time(&list);
    }
    return list.count;
}
