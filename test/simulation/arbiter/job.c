/* What can happen in the job, and what must always hold. See job.h. */
#include "job.h"

#include "base/testing/test_draw.h"

#include <string.h>

enum {
    PROGRESS_MS = 1000,
    WAITS_MAX = 400, /* seconds in which only time passes; they are longer than several leases */
};

uint32_t job_draw(struct job *job, uint32_t below)
{
    return test_draw(&job->random, below);
}

void job_break(struct job *job, const char *invariant)
{
    if (!job->broken) {
        job->broken = invariant;
    }
}

static uint8_t place_count(const struct job_config *config)
{
    return (uint8_t)(config->trainers + config->joiners + config->leasers);
}

void job_init(struct job *job, const struct job_config *config, uint64_t random)
{
    *job = (struct job){.config = *config, .random = random, .now_ms = 1};
    job->plan = (struct plan){.records = config->records,
                              .epochs = config->epochs,
                              .batch = config->batch,
                              .micro_batches = config->micro_batches,
                              .per_worker = config->per_worker,
                              .max_steps = config->max_steps};
    for (uint8_t place = 0; place < place_count(config); place++) {
        if (place < config->trainers || place >= config->trainers + config->joiners) {
            (void)job_launch(job, place);
        }
    }
    coordinator_begin(job);
}

void job_done(struct job *job)
{
    for (size_t i = 0; i < job->life_count; i++) {
        struct process *p = &job->lives[i];
        frames_drop(&p->link.up_frames);
        frames_drop(&p->link.down_frames);
        if (p->leases && process_lives(p)) {
            holdings_done(&p->leaser.holdings);
        }
    }
    coordinator_done(job);
}
/* ---- Carrying out an action ---- */

/* Each running process with a connection renews its leases every second. */
static void beat(struct job *job)
{
    for (size_t i = 0; i < job->life_count; i++) {
        struct process *p = &job->lives[i];
        if (p->life == LIFE_RUNNING && p->link.declared && p->link.seen) {
            if (p->leases) {
                leaser_beat(job, p);
            } else {
                trainer_beat(job, p);
            }
            while (p->link.up_frames.count > 0 && !job->broken) {
                coordinator_hear(job, p);
            }
        }
    }
}

static void pass_time(struct job *job)
{
    int64_t next = arbiter_next_ms(job->coordinator.arbiter), slice = job->now_ms + PROGRESS_MS;
    job->now_ms = next > slice ? slice : next > job->now_ms ? next : job->now_ms;
    beat(job);
    coordinator_feed(job, (struct arbiter_event){.kind = ARBITER_TICK});
}

static void hear(struct job *job, struct process *p)
{
    if (p->link.down_frames.count > 0) {
        process_hear(job, p);
    } else { /* the coordinator has hung up */
        p->link.ending = false;
        process_hang_up(job, p);
    }
}

/* Three random bits decide whether the process still receives the frames under way, whether the
 * coordinator does, and whether it sees the end. */
static void cut(struct job *job, struct process *p)
{
    uint32_t bits = job_draw(job, 8);
    job->cuts++;
    while ((bits & 1) && p->life == LIFE_RUNNING && p->link.down_frames.count > 0 && !job->broken) {
        process_hear(job, p);
    }
    process_hang_up(job, p);
    if (!(bits & 2)) {
        frames_drop(&p->link.up_frames);
    }
    if ((bits & 4) && p->link.seen && job->coordinator.arbiter) {
        coordinator_part(job, p);
    }
}

/* Ends the process: the job is over, and no connection is made any more. */
static void go(struct job *job, struct process *p)
{
    if (p->leases) {
        leaser_leave(job, p);
    } else {
        process_die(job, p, ARBITER_CAUSE_OUTSIDE);
        p->life = LIFE_ENDED;
    }
}

static void leave(struct job *job, struct process *p)
{
    p->trainer.told_leave = true;
    trainer_tell(job, p, (struct commit_event){.kind = COMMIT_LEAVE}, NULL);
}

static void happen(struct job *job, struct action action)
{
    struct process *p = &job->lives[action.who];
    switch ((enum action_kind)action.kind) {
    case ACT_CONNECT: process_connect(job, p); break;
    case ACT_HEAR: hear(job, p); break;
    case ACT_TELL: coordinator_hear(job, p); break;
    case ACT_PART: coordinator_part(job, p); break;
    case ACT_BURY: coordinator_bury(job, p); break;
    case ACT_EXPLAIN: coordinator_explain(job, p); break;
    case ACT_COMPUTE:
    case ACT_ENTER:
    case ACT_REDUCE:
    case ACT_PASS:
    case ACT_RESTORE:
    case ACT_SAVE: trainer_act(job, p, (enum action_kind)action.kind); break;
    case ACT_LOSE: trainer_lose(job, p, &job->lives[action.what], false); break;
    case ACT_DOUBT: trainer_lose(job, p, &job->lives[action.what], true); break;
    case ACT_LOAD: trainer_load(job, p, &job->lives[action.what]); break;
    case ACT_WORK:
    case ACT_ASK: leaser_act(job, p, (enum action_kind)action.kind); break;
    case ACT_RESUME: p->life = LIFE_RUNNING; break;
    case ACT_START: (void)job_launch(job, action.who); break;
    case ACT_GO: go(job, p); break;
    case ACT_SYNC: coordinator_sync(job); break;
    case ACT_COMPACT: coordinator_compact(job); break;
    case ACT_BEGIN: coordinator_begin(job); break;
    case ACT_TIME:
    case ACT_HASTE: pass_time(job); break;
    case ACT_KILL: process_die(job, p, ARBITER_CAUSE_OUTSIDE); break;
    case ACT_CRASH: process_die(job, p, ARBITER_CAUSE_OWN); break;
    case ACT_STOP: p->life = LIFE_STOPPED; break;
    case ACT_CUT: cut(job, p); break;
    case ACT_LEAVE: leave(job, p); break;
    case ACT_DAMAGE: job->files[action.who].damaged = job->damaged = true; break;
    case ACT_DOWN: coordinator_die(job, job->coordinator.durable + action.what); break;
    }
}

void job_act(struct job *job, struct action action)
{
    job->faults += action.kind >= ACT_FAULTS;
    job->now_ms += job_draw(job, 3);
    job->waits = action.kind == ACT_TIME ? job->waits + 1 : 0;
    happen(job, action);
    if (job->config.leased_poison != POISON_NONE && job->faults == 0 &&
        job->leased_crashes > ARBITER_TRIES) {
        job_break(job, "the third death names the record");
    }
    if (job->faults == 0 && job->informed_crashes > ARBITER_TRIES + 1) {
        job_break(job, "one death is not told of, and the third one after it names the record");
    }
    if (job->waits > WAITS_MAX) {
        job_break(job, "nobody waits for ever");
    }
}

/* ---- The end ---- */

static bool anybody_lives(const struct job *job)
{
    for (size_t i = 0; i < job->life_count; i++) {
        if (process_lives(&job->lives[i])) {
            return true;
        }
    }
    return false;
}

static bool has_finished(const struct job *job, bool leases)
{
    for (size_t i = 0; i < job->life_count; i++) {
        if (job->lives[i].finished && job->lives[i].leases == leases) {
            return true;
        }
    }
    return false;
}

const char *job_end(const struct job *job)
{
    if (anybody_lives(job)) {
        return "nobody waits for ever";
    }
    bool trained = job->config.trainers == 0 || has_finished(job, false);
    bool evaluated = job->config.leasers == 0 || has_finished(job, true);
    if (trained && evaluated && !job->coordinator.over) {
        return "the coordinator ends when its workers have";
    }
    return NULL;
}

const char *job_action_name(struct action action)
{
    static const char *const names[] = {
        [ACT_CONNECT] = "connects",
        [ACT_HEAR] = "hears",
        [ACT_TELL] = "is heard",
        [ACT_PART] = "is seen to have hung up",
        [ACT_BURY] = "is seen to have ended",
        [ACT_EXPLAIN] = "is seen to have died of something",
        [ACT_COMPUTE] = "computes",
        [ACT_ENTER] = "enters",
        [ACT_REDUCE] = "reduces",
        [ACT_PASS] = "passes",
        [ACT_LOSE] = "loses",
        [ACT_LOAD] = "loads from",
        [ACT_RESTORE] = "restores",
        [ACT_SAVE] = "saves",
        [ACT_WORK] = "works",
        [ACT_ASK] = "asks for records",
        [ACT_RESUME] = "resumes",
        [ACT_START] = "(place) starts",
        [ACT_GO] = "goes",
        [ACT_SYNC] = "(journal) syncs",
        [ACT_COMPACT] = "(journal) is compacted",
        [ACT_BEGIN] = "(coordinator) begins",
        [ACT_TIME] = "(clock) moves",
        [ACT_KILL] = "is killed",
        [ACT_CRASH] = "crashes",
        [ACT_STOP] = "is stopped",
        [ACT_CUT] = "is cut off",
        [ACT_DOUBT] = "doubts",
        [ACT_LEAVE] = "is told to leave",
        [ACT_HASTE] = "(clock) moves too early",
        [ACT_DAMAGE] = "(checkpoint) is damaged",
        [ACT_DOWN] = "(coordinator) dies, keeping more",
    };
    return names[action.kind];
}
