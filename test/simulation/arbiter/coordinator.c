/* The coordinator of the job: the arbiter that ships, a journal, and what the server does around
 * them. See job.h. */
#include "job.h"

#include "coordinator/arbiter/entry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Frames ---- */

void frames_put(struct job *job, struct frames *frames, const uint8_t *bytes, size_t count)
{
    if (frames->count == FRAMES_MAX) {
        job_break(job, "frames under way are bounded");
        return;
    }
    uint8_t *copy = malloc(count);
    assert(copy);
    memcpy(copy, bytes, count);
    frames->list[frames->count].bytes = copy;
    frames->list[frames->count++].count = count;
}

void frames_drop(struct frames *frames)
{
    for (size_t i = 0; i < frames->count; i++) {
        free(frames->list[i].bytes);
    }
    frames->count = 0;
}

/* ---- The journal ---- */

static void append(struct coordinator *c, uint32_t kind, const uint8_t *bytes, size_t count)
{
    if (c->journal_count == c->journal_room) {
        c->journal_room = c->journal_room ? 2 * c->journal_room : 64;
        c->journal = realloc(c->journal, c->journal_room * sizeof *c->journal);
        assert(c->journal);
    }
    uint8_t *copy = malloc(count + 1);
    assert(copy);
    if (count > 0) {
        memcpy(copy, bytes, count);
    }
    c->journal[c->journal_count++] = (struct entry){kind, copy, count};
}

static void cut_journal(struct coordinator *c, size_t kept)
{
    while (c->journal_count > kept) {
        free(c->journal[--c->journal_count].bytes);
    }
}

static int replay(const struct coordinator *c, size_t entries, struct arbiter *arbiter,
                  struct arbiter_effects *effects, int64_t now_ms, struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; i < entries && r == 0; i++) {
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .now_ms = now_ms,
                                            .record = c->journal[i].kind,
                                            .bytes = c->journal[i].bytes,
                                            .count = c->journal[i].count};
        r = arbiter_step(arbiter, &event, effects, err);
    }
    return r;
}

/* ---- Effects ---- */

static void send(struct job *job, const struct arbiter_effect *effect)
{
    struct process *p = job_process(job, effect->to);
    if (p && p->link.seen && p->link.up) {
        frames_put(job, &p->link.down_frames,
                   arbiter_effect_bytes(&job->coordinator.effects, effect), effect->count);
    }
}

static void hang_up(struct job *job, uint64_t incarnation)
{
    struct process *p = job_process(job, incarnation);
    if (p && p->link.seen) {
        p->link.ending = true;
    }
}

static uint32_t most_crashes(const struct job *job)
{
    uint32_t most = 0;
    for (size_t i = 0; i < RECORDS_MAX; i++) {
        for (size_t epoch = 0; epoch < EPOCHS_MAX; epoch++) {
            most = job->crashes[i][epoch] > most ? job->crashes[i][epoch] : most;
        }
    }
    return most;
}

/* Whether the job may fail: only if ARBITER_TRIES workers have died with the same record. It is not
 * known how workers on other hosts end, so there each fault counts. */
static bool may_fail(const struct job *job)
{
    uint32_t most = most_crashes(job);
    uint32_t crashes = job->leased_crashes > most ? job->leased_crashes : most;
    uint32_t deaths = job->config.remote ? job->faults : crashes;
    bool poison = job->config.poison != POISON_NONE || job->config.leased_poison != POISON_NONE;
    return (poison && !job->config.set_aside) || deaths + job->hangs >= ARBITER_TRIES;
}

/* Whether the text names another record than the poisonous one, although no message about passes
 * was lost. Messages about leases are never lost. */
static bool names_another(const struct job *job, const char *why)
{
    static const char before[] = "one after the other, of record ";
    const char *named = strstr(why, before);
    bool leased = strstr(why, LEASED_NAME), lost = job->hangs + job->cuts > 0;
    int16_t poison = leased ? job->config.leased_poison : job->config.poison;
    return named && poison != POISON_NONE && (leased || !lost) &&
           strtoll(named + strlen(before), NULL, 10) != poison;
}

/* Whether the job fails although the record could be found: workers compute suspects in parts, so
 * that one record is left at last, as long as no message is lost. */
static bool gives_up(const struct job *job, const char *why)
{
    bool known = job->config.poison != POISON_NONE && job->hangs + job->cuts == 0;
    return known && !strstr(why, LEASED_NAME) &&
           (job->config.set_aside || strstr(why, "of the same pass"));
}

static void fail(struct job *job, const struct arbiter_effect *effect)
{
    struct coordinator *c = &job->coordinator;
    const char *why = (const char *)arbiter_effect_bytes(&c->effects, effect);
    snprintf(c->why, sizeof c->why, "%.*s", (int)effect->count, why);
    c->failed = c->over = true;
    if (!may_fail(job)) {
        snprintf(job->detail, sizeof job->detail, "%s", c->why);
        job_break(job, "a job fails of a record that workers died of, again and again");
    } else if (names_another(job, c->why)) {
        snprintf(job->detail, sizeof job->detail, "%s", c->why);
        job_break(job, "the record that workers die of is named");
    } else if (gives_up(job, c->why)) {
        snprintf(job->detail, sizeof job->detail, "%s", c->why);
        job_break(job, "one record is found, and set aside where that is wished");
    }
}

static void check_asides(struct job *job, bool leased, int16_t poison, bool lost)
{
    struct arbiter_aside each;
    uint32_t count = 0;
    bool found = false;
    for (uint32_t i = 0; arbiter_aside(job->coordinator.arbiter, i, &each); i++) {
        bool counts = each.leased == leased;
        count += counts;
        found = found || (counts && each.aside.record == (uint64_t)poison);
    }
    if (poison != POISON_NONE && !found) {
        job_break(job, "a record that workers die of is not trained");
    }
    if (count > (poison != POISON_NONE) && !lost) {
        job_break(job, "no other record is set aside");
    }
}

static bool has_every_step(const struct job *job, const struct arbiter *arbiter,
                           const struct shard_progress *data)
{
    uint64_t version = arbiter_version(arbiter), limit = job->config.max_steps;
    bool has = data->epoch == data->dataset.epochs || (limit > 0 && version == limit);
    return has && (job->config.per_worker || version == plan_steps(&job->plan));
}

static void end(struct job *job)
{
    struct arbiter *arbiter = job->coordinator.arbiter;
    struct shard_progress data;
    const char *names;
    const double *sums;
    job->coordinator.over = true;
    /* Leases may be finished before a member has said what it trains. */
    if (arbiter_dataset(arbiter, 0, &data) && !has_every_step(job, arbiter, &data)) {
        job_break(job, "the job is done when all records are in the log");
    }
    check_asides(job, false, job->config.poison, job->hangs + job->cuts > 0);
    if (arbiter_leased(arbiter, 0, &data, &names, &sums)) { /* the job may end before it exists */
        check_asides(job, true, job->config.leased_poison, false);
    }
}

static void carry_out(struct job *job, const struct arbiter_effect *effect)
{
    struct coordinator *c = &job->coordinator;
    switch (effect->kind) {
    case ARBITER_APPEND:
        append(c, effect->record, arbiter_effect_bytes(&c->effects, effect), effect->count);
        break;
    case ARBITER_SYNC: c->sync_due = true; break;
    case ARBITER_SERVE: c->serving = true; break;
    case ARBITER_SEND: send(job, effect); break;
    case ARBITER_HANG_UP: hang_up(job, effect->to); break;
    case ARBITER_END: end(job); break;
    case ARBITER_FAILED: fail(job, effect); break;
    case ARBITER_HANGS: job->hangs++; break;
    case ARBITER_ASIDE:
    case ARBITER_OPENED:
    case ARBITER_LOST:
    case ARBITER_LOST_AGAIN:
    case ARBITER_LEASER_LOST: break;
    }
}

/* Whether no readable checkpoint is left: then people must decide. */
static bool has_lost_its_state(const struct job *job, const struct muster_err *err)
{
    return job->damaged && err->code == MUSTER_EDATA && strstr(err->text, "no checkpoint of");
}

void coordinator_feed(struct job *job, struct arbiter_event event)
{
    struct coordinator *c = &job->coordinator;
    struct muster_err err = MUSTER_ERR_INIT;
    if (!c->arbiter || c->over || job->broken) {
        return;
    }
    event.now_ms = job->now_ms;
    int r = arbiter_step(c->arbiter, &event, &c->effects, &err);
    for (size_t i = 0; i < c->effects.count && !job->broken; i++) {
        carry_out(job, &c->effects.list[i]);
    }
    if (r < 0 && has_lost_its_state(job, &err)) {
        c->failed = c->over = true;
    } else if (r < 0) {
        snprintf(job->detail, sizeof job->detail, "%s", err.text);
        job_break(job, "members and journal do not contradict themselves");
    } else if (arbiter_check(c->arbiter)) {
        job_break(job, arbiter_check(c->arbiter));
    }
}

/* ---- Connections ---- */

void coordinator_welcome(struct job *job, struct process *p)
{
    bool known = p->link.known;
    frames_drop(&p->link.up_frames);
    frames_drop(&p->link.down_frames);
    p->link.known = p->link.up = p->link.seen = true;
    p->link.recalled = p->link.ending = p->link.declared = false;
    if (known) {
        coordinator_feed(
            job, (struct arbiter_event){.kind = ARBITER_CONNECTED, .incarnation = p->incarnation});
    }
}

void coordinator_hear(struct job *job, struct process *p)
{
    uint8_t memory[1 << 14] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct frames *frames = &p->link.up_frames;
    struct wire_message m;
    struct muster_err err = MUSTER_ERR_INIT;
    uint8_t *bytes = frames->list[0].bytes;
    size_t count = frames->list[0].count;
    frames->count--;
    memmove(frames->list, frames->list + 1, frames->count * sizeof *frames->list);
    if (wire_read(bytes, count, &room, &m, &err) < 0) {
        job_break(job, "what a worker writes can be read");
    } else {
        coordinator_feed(job, (struct arbiter_event){.kind = ARBITER_MESSAGE,
                                                     .incarnation = p->incarnation,
                                                     .message = &m});
    }
    free(bytes);
}

/* Messages that were sent before the end of the connection count. */
static void drain(struct job *job, struct process *p)
{
    while (p->link.up_frames.count > 0 && !job->broken) {
        coordinator_hear(job, p);
    }
}

/* Whether the coordinator will still be told how the process ended, or why. */
static bool is_watched(const struct job *job, const struct process *p)
{
    return !job->config.remote && (!p->buried || p->unexplained);
}

void coordinator_part(struct job *job, struct process *p)
{
    drain(job, p);
    p->link.seen = false;
    coordinator_feed(job,
                     (struct arbiter_event){.kind = ARBITER_DISCONNECTED,
                                            .incarnation = p->incarnation,
                                            .cause = is_watched(job, p) ? ARBITER_CAUSE_PENDING
                                                                        : ARBITER_CAUSE_UNKNOWN});
}

void coordinator_bury(struct job *job, struct process *p)
{
    if (p->link.seen) {
        drain(job, p);
    }
    p->buried = true;
    bool gone = p->link.recalled || job->config.remote;
    p->unexplained = !gone && job_draw(job, 2) == 0;
    coordinator_feed(
        job, (struct arbiter_event){.kind = gone ? ARBITER_GONE : ARBITER_DEAD,
                                    .incarnation = p->incarnation,
                                    .cause = p->unexplained ? ARBITER_CAUSE_PENDING : p->cause});
}

void coordinator_explain(struct job *job, struct process *p)
{
    p->unexplained = false;
    coordinator_feed(job, (struct arbiter_event){.kind = ARBITER_CAUSE,
                                                 .incarnation = p->incarnation,
                                                 .cause = p->cause});
}

bool coordinator_has_told(const struct job *job, const struct process *p)
{
    const struct coordinator *c = &job->coordinator;
    for (size_t i = 0; i < job->life_count; i++) {
        const struct process *other = &job->lives[i];
        bool counts = !other->leases && other->life == LIFE_DEAD;
        if (counts && (!other->buried || other->unexplained || other->link.seen)) {
            return false;
        }
    }
    return c->arbiter && p->link.up && p->link.up_frames.count == 0 &&
           p->link.down_frames.count == 0 && arbiter_is_open(c->arbiter) &&
           arbiter_generation(c->arbiter) == p->trainer.core.generation;
}

/* ---- Terms ---- */

static int open_arbiter(const struct job *job, struct arbiter **ret)
{
    struct muster_err err = MUSTER_ERR_INIT;
    uint32_t trainers = job->config.trainers;
    const struct arbiter_options options = {
        .sizes = {1, trainers + job->config.joiners + 1u, trainers > 0 ? trainers : 1, 1ull << 32},
        .peers = LIVES_MAX,
        .lease_ms = SHARD_LEASE_MS,
        .first_ms = SHARD_LEASE_MS,
        .max_steps = job->config.max_steps};
    return arbiter_new(&options, ret, &err);
}

static void call_the_roll(struct job *job)
{
    for (size_t i = 0; i < job->life_count; i++) {
        struct process *p = &job->lives[i];
        bool known = p->link.known && !p->buried && !job->config.forgets &&
                     arbiter_knows(job->coordinator.arbiter, p->incarnation);
        p->link.recalled = p->link.known = known;
        if (known && !process_lives(p) && !job->config.remote) {
            coordinator_bury(job, p);
        }
    }
}

void coordinator_begin(struct job *job)
{
    struct coordinator *c = &job->coordinator;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = open_arbiter(job, &c->arbiter);
    assert(r == 0);
    arbiter_effects_init(&c->effects);
    r = replay(c, c->journal_count, c->arbiter, &c->effects, job->now_ms, &err);
    if (r < 0) {
        snprintf(job->detail, sizeof job->detail, "%s", err.text);
        job_break(job, "the journal can be read to its end");
        return;
    }
    coordinator_feed(job, (struct arbiter_event){.kind = ARBITER_START});
    call_the_roll(job);
}

static void close_arbiter(struct coordinator *c)
{
    if (c->arbiter) {
        arbiter_free(c->arbiter);
        arbiter_effects_done(&c->effects);
        c->arbiter = NULL;
    }
}

void coordinator_die(struct job *job, size_t kept)
{
    struct coordinator *c = &job->coordinator;
    close_arbiter(c);
    cut_journal(c, kept);
    c->durable = c->journal_count;
    c->serving = c->sync_due = false;
    for (size_t i = 0; i < job->life_count; i++) {
        struct process *p = &job->lives[i];
        frames_drop(&p->link.up_frames);
        p->link.seen = p->link.ending = p->unexplained = false;
        while (p->link.up && p->life == LIFE_RUNNING && p->link.down_frames.count > 0 &&
               job_draw(job, 4) > 0) {
            process_hear(job, p);
        }
        frames_drop(&p->link.up_frames);
        process_hang_up(job, p);
    }
}

void coordinator_done(struct job *job)
{
    close_arbiter(&job->coordinator);
    cut_journal(&job->coordinator, 0);
    free(job->coordinator.journal);
}

void coordinator_sync(struct job *job)
{
    job->coordinator.sync_due = false;
    job->coordinator.durable = job->coordinator.journal_count;
    coordinator_feed(job, (struct arbiter_event){.kind = ARBITER_DURABLE});
}

void coordinator_compact(struct job *job)
{
    struct coordinator *c = &job->coordinator;
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf bytes;
    buf_init(&bytes, ARBITER_BYTES_MAX);
    if (arbiter_snapshot(c->arbiter, &bytes, &err) < 0) {
        job_break(job, "a snapshot can be made");
    }
    cut_journal(c, 0);
    append(c, ENTRY_SNAPSHOT, (const uint8_t *)bytes.data, bytes.used);
    c->durable = 1;
    buf_done(&bytes);
}

bool coordinator_has_all(struct job *job, uint64_t version)
{
    struct coordinator *c = &job->coordinator;
    struct muster_err err = MUSTER_ERR_INIT;
    struct arbiter_effects effects;
    struct arbiter *arbiter;
    int r = open_arbiter(job, &arbiter);
    assert(r == 0);
    arbiter_effects_init(&effects);
    r = replay(c, c->durable, arbiter, &effects, job->now_ms, &err);
    bool all = r == 0 && arbiter_version(arbiter) == version;
    arbiter_effects_done(&effects);
    arbiter_free(arbiter);
    return all;
}
