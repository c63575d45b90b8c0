/* See report.h. */
#include "client/report.h"

#include "client/identity.h"
#include "commit/planted.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_OF_A_FRAME = 4096, FAIL_AGAIN_MS = 500 };

static void say(struct muster_elastic *job, enum uplink_phase least, struct wire_message *message)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (job->phase < least) {
        return;
    }
    message->term = job->core.term;
    if (connection_send(&job->connection, message, &err) < 0) {
        connection_close(&job->connection); /* the next connection begins with all of it */
    }
    if (job->connection.sent < job->connection.out.used || job->connection.fd < 0) {
        worker_wake(job);
    }
}

static struct wire_text text_of(const char *text)
{
    return (struct wire_text){text, (uint32_t)strlen(text)};
}

void report_hello(struct muster_elastic *job)
{
    struct wire_message m = identity_hello(job->incarnation, job->token);
    say(job, UPLINK_GREETING, &m);
}

void report_dataset(struct muster_elastic *job)
{
    struct wire_message m = {.kind = WIRE_DATASET,
                             .dataset = {.name = text_of(job->dataset),
                                         .task = 0,
                                         .records = job->plan.records,
                                         .epochs = job->plan.epochs,
                                         .batch = job->plan.batch,
                                         .micro_batches = job->plan.micro_batches,
                                         .block = job->plan.shuffle,
                                         .seed = job->plan.seed,
                                         .set_aside = job->set_aside,
                                         .per_worker = job->plan.per_worker}};
    say(job, UPLINK_DECLARING, &m);
}

void report_join(struct muster_elastic *job)
{
    struct wire_message m = {.kind = WIRE_JOIN,
                             .join = {.address = job->address,
                                      .environment = job->environment,
                                      .name = text_of(job->name)}};
    say(job, UPLINK_UP, &m);
}

/* Lists the steps from `first` on: ranges[i] belongs to steps[i]. */
static void list_steps(const struct muster_elastic *job, uint64_t first, uint32_t count,
                       struct wire_step *steps, struct shard_range *ranges)
{
    for (uint32_t i = 0; i < count; i++) {
        struct plan_step step = plan_step(&job->plan, first + i);
        ranges[i] = plan_step_range(&job->plan, &step);
        steps[i] = (struct wire_step){.version = first + i, .ranges = {&ranges[i], 1}};
    }
}

static void say_commits(struct muster_elastic *job, const struct wire_step *steps, uint32_t count)
{
    struct wire_message m = {
        .kind = WIRE_COMMITS,
        .commits = {.generation = job->core.generation, .steps = {steps, count}}};
    say(job, UPLINK_UP, &m);
}

void report_commit(struct muster_elastic *job, uint64_t version)
{
    struct wire_step step;
    struct shard_range range;
    list_steps(job, version, 1, &step, &range);
    say_commits(job, &step, 1);
}

static void say_report(struct muster_elastic *job, uint64_t lost, bool ended,
                       const struct wire_step *steps, uint32_t count)
{
    const struct commit_member *core = &job->core;
    struct wire_step prepared;
    struct shard_range range;
    struct wire_message m = {.kind = WIRE_REPORT,
                             .report = {.generation = core->generation,
                                        .version = core->version,
                                        .lost = lost,
                                        .ended = ended,
                                        .closed = core->stage == COMMIT_CLOSED,
                                        .loaded = core->loaded,
                                        .steps = {steps, count}}};
    if (core->prepared) {
        list_steps(job, core->version + 1, 1, &prepared, &range);
        if (PLANTED(IDS_IN_BARRIER)) { /* nothing is known yet of the others' records */
            range.count = job->pass_records;
        }
        m.report.prepared = (struct wire_steps){&prepared, 1};
    }
    say(job, UPLINK_UP, &m);
}

/* Sends REPORT, and COMMITS before it if necessary: many steps may have been committed while the
 * coordinator was away, and frames have a limit. */
void report_state(struct muster_elastic *job, uint64_t lost, bool ended)
{
    struct wire_step *steps = malloc(STEPS_OF_A_FRAME * sizeof *steps);
    struct shard_range *ranges = malloc(STEPS_OF_A_FRAME * sizeof *ranges);
    uint64_t first = job->core.acked + 1, left = job->core.version - job->core.acked;
    if (!steps || !ranges) {
        connection_close(&job->connection); /* it is sent when there is memory */
        left = 0;
    }
    for (; left > STEPS_OF_A_FRAME; left -= STEPS_OF_A_FRAME, first += STEPS_OF_A_FRAME) {
        list_steps(job, first, STEPS_OF_A_FRAME, steps, ranges);
        say_commits(job, steps, STEPS_OF_A_FRAME);
    }
    if (steps && ranges) {
        list_steps(job, first, (uint32_t)left, steps, ranges);
        say_report(job, lost, ended, steps, (uint32_t)left);
    }
    free(steps);
    free(ranges);
}

void report_leave(struct muster_elastic *job, bool finished)
{
    struct wire_message m = {.kind = WIRE_LEAVE, .leave = {finished, job->broken_off}};
    say(job, UPLINK_UP, &m);
}

void report_pass(struct muster_elastic *job)
{
    struct wire_message m = {.kind = WIRE_PASS,
                             .pass = {.generation = job->pass_generation,
                                      .at_hand = {&job->at_hand, job->at_hand.count > 0}}};
    say(job, UPLINK_UP, &m);
}

void report_pass_end(struct muster_elastic *job)
{
    job->computing = false;
    if (job->at_hand.count > 0) {
        job->at_hand.count = 0;
        report_pass(job);
    }
}

static void report_failure(struct muster_elastic *job, const char *why)
{
    struct wire_message m = {.kind = WIRE_FAIL, .fail.why = text_of(why)};
    say(job, UPLINK_UP, &m);
}

int report_until_ended(struct muster_elastic *job, const char *why, int64_t end_ns,
                       struct muster_err *err)
{
    int64_t next_ns = 0;
    int r = 0;
    while (r == 0 && job->end == WORKER_GOES_ON) {
        int64_t now_ns = worker_now_ns();
        if (now_ns >= end_ns) {
            return muster_fail(err, MUSTER_EUNAVAIL, "the coordinator cannot be told");
        }
        if (now_ns >= next_ns) {
            report_failure(job, why);
            next_ns = now_ns + FAIL_AGAIN_MS * INT64_C(1000000);
        }
        r = worker_wait(job, err);
    }
    return r;
}

void report_progress(struct muster_elastic *job)
{
    const struct figures *f = &job->figures;
    struct wire_message m = {.kind = WIRE_PROGRESS,
                             .progress = {.generation = job->core.generation,
                                          .version = job->core.version,
                                          .records = f->trained,
                                          .step_ns = (uint64_t)f->step_ns,
                                          .wait_ns = (uint64_t)f->wait_ns}};
    say(job, UPLINK_UP, &m);
}

void report_healed(struct muster_elastic *job)
{
    const struct figures *f = &job->figures;
    struct wire_message m = {.kind = WIRE_HEALED,
                             .healed = {.generation = job->core.generation,
                                        .version = f->diverged_version,
                                        .took_ns = (uint64_t)(worker_now_ns() - f->odd_ns)}};
    say(job, UPLINK_UP, &m);
}

void report_silent(struct muster_elastic *job, uint64_t incarnation, int64_t silent_ms)
{
    struct wire_message m = {.kind = WIRE_SILENT, .silent = {incarnation, (uint32_t)silent_ms}};
    say(job, UPLINK_UP, &m);
}

void report_checkpoint(struct muster_elastic *job, const struct checkpoint_place *place)
{
    char name[CHECKPOINT_NAME_BYTES];
    checkpoint_name_write(&place->name, name);
    struct wire_message m = {.kind = WIRE_CHECKPOINT,
                             .checkpoint = {.generation = job->core.generation,
                                            .version = place->name.version,
                                            .path = text_of(name)}};
    memcpy(m.checkpoint.digest, place->digest, sizeof m.checkpoint.digest);
    say(job, UPLINK_UP, &m);
}

void report_checkpoint_failed(struct muster_elastic *job, uint64_t version, bool reading,
                              const char *why)
{
    struct wire_message m = {.kind = WIRE_CHECKPOINT_FAILED,
                             .checkpoint_failed = {.generation = job->core.generation,
                                                   .version = version,
                                                   .reading = reading,
                                                   .why = text_of(why)}};
    say(job, UPLINK_UP, &m);
}
