/* The fields of each message of a job in steps, those of leases apart (leases.c). Each message is
 * described once, by the function that reads or writes its fields. See codec.h. */
#include "wire/codec.h"

enum { RANGE_BYTES = 20, STEP_BYTES = 16, MEMBER_BYTES = 265 };

/* ---- Parts ---- */

static void code_range(struct coder *c, struct shard_range *range)
{
    coder_u32(c, &range->dataset);
    coder_u32(c, &range->epoch);
    coder_u64(c, &range->first);
    coder_u32(c, &range->count);
    if (!c->wrong && !shard_range_valid(*range)) {
        coder_fail(c, "a range of records is none");
    }
}

void code_ranges(struct coder *c, struct wire_ranges *ranges)
{
    void *list = (void *)ranges->list;
    coder_array(c, &ranges->count, RANGE_BYTES, sizeof *ranges->list, &list);
    if (!c->writes) {
        ranges->list = list;
    }
    for (uint32_t i = 0; i < ranges->count && !c->wrong; i++) {
        code_range(c, (struct shard_range *)list + i);
    }
}

static void code_step(struct coder *c, struct wire_step *step)
{
    coder_u64(c, &step->version);
    coder_u32(c, &step->flags);
    code_ranges(c, &step->ranges);
    if (step->version == 0) {
        coder_fail(c, "a step makes no version");
    }
}

static void code_steps(struct coder *c, struct wire_steps *steps)
{
    void *list = (void *)steps->list;
    coder_array(c, &steps->count, STEP_BYTES, sizeof *steps->list, &list);
    if (!c->writes) {
        steps->list = list;
    }
    for (uint32_t i = 0; i < steps->count && !c->wrong; i++) {
        struct wire_step *step = (struct wire_step *)list + i;
        code_step(c, step);
        if (i > 0 && step->version != step[-1].version + 1) {
            coder_fail(c, "a step is missing");
        }
    }
}

static void code_address(struct coder *c, struct wire_address *address)
{
    coder_bytes(c, address->endpoint, sizeof address->endpoint);
    coder_bytes(c, address->region, sizeof address->region);
}

static void code_member(struct coder *c, struct wire_member *member)
{
    coder_u64(c, &member->incarnation);
    coder_bool(c, &member->loaded);
    code_address(c, &member->address);
}

static void code_members(struct coder *c, struct wire_members *members)
{
    void *list = (void *)members->list;
    coder_array(c, &members->count, MEMBER_BYTES, sizeof *members->list, &list);
    if (!c->writes) {
        members->list = list;
    }
    for (uint32_t i = 0; i < members->count && !c->wrong; i++) {
        code_member(c, (struct wire_member *)list + i);
    }
}

/* ---- Messages ---- */

void code_hello(struct coder *c, struct wire_message *m)
{
    coder_u32(c, &m->hello.version);
    coder_u64(c, &m->hello.incarnation);
    coder_bytes(c, m->hello.token, sizeof m->hello.token);
    coder_u64(c, &m->hello.pid_space);
    coder_u32(c, &m->hello.pid);
}

void code_join(struct coder *c, struct wire_message *m)
{
    code_address(c, &m->join.address);
    coder_u64(c, &m->join.environment);
    coder_text(c, &m->join.name);
}

void code_leave(struct coder *c, struct wire_message *m)
{
    coder_bool(c, &m->leave.finished);
    coder_bool(c, &m->leave.broken_off);
}

void code_report(struct coder *c, struct wire_message *m)
{
    struct wire_report *report = &m->report;
    coder_u64(c, &report->generation);
    coder_u64(c, &report->version);
    coder_u64(c, &report->lost);
    coder_bool(c, &report->ended);
    coder_bool(c, &report->closed);
    coder_bool(c, &report->loaded);
    code_steps(c, &report->steps);
    code_steps(c, &report->prepared);
    code_ranges(c, &report->leases);
    if (c->wrong) {
        return;
    }
    const struct wire_steps *steps = &report->steps, *prepared = &report->prepared;
    if (steps->count > 0 && steps->list[steps->count - 1].version != report->version) {
        coder_fail(c, "its steps do not end at its version");
    }
    if (prepared->count > 1 ||
        (prepared->count == 1 && prepared->list[0].version != report->version + 1)) {
        coder_fail(c, "it prepared another step than the next");
    }
}

void code_commits(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->commits.generation);
    code_steps(c, &m->commits.steps);
    if (m->commits.steps.count == 0) {
        coder_fail(c, "it has no step");
    }
}

void code_ask(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->ask.records);
}

void code_progress(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->progress.generation);
    coder_u64(c, &m->progress.version);
    coder_u64(c, &m->progress.records);
    coder_u64(c, &m->progress.step_ns);
    coder_u64(c, &m->progress.wait_ns);
}

void code_checkpoint(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->checkpoint.generation);
    coder_u64(c, &m->checkpoint.version);
    coder_bytes(c, m->checkpoint.digest, sizeof m->checkpoint.digest);
    coder_text(c, &m->checkpoint.path);
}

void code_pass(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->pass.generation);
    code_ranges(c, &m->pass.at_hand);
    if (m->pass.at_hand.count > 1) {
        coder_fail(c, "it has more than one pass at hand");
    }
}

void code_fail(struct coder *c, struct wire_message *m)
{
    coder_text(c, &m->fail.why);
}

void code_healed(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->healed.generation);
    coder_u64(c, &m->healed.version);
    coder_u64(c, &m->healed.took_ns);
}

void code_silent(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->silent.incarnation);
    coder_u32(c, &m->silent.silent_ms);
}

void code_welcome(struct coder *c, struct wire_message *m)
{
    coder_u32(c, &m->welcome.version);
    coder_u64(c, &m->welcome.lease_ms);
}

void code_refused(struct coder *c, struct wire_message *m)
{
    coder_text(c, &m->refused.why);
}

static void code_aside(struct coder *c, struct wire_ranges *aside)
{
    code_ranges(c, aside);
    if (aside->count > WIRE_ASIDE_MAX) {
        coder_fail(c, "it sets too much aside");
    }
    for (uint32_t i = 0; i < aside->count && !c->wrong; i++) {
        if (aside->list[i].count != 1 || aside->list[i].epoch != 0) {
            coder_fail(c, "what it sets aside is no record");
        }
    }
}

/* An absent anchor has no bytes, so that it has only one encoding. */
static void code_anchor(struct coder *c, struct shard_anchor *anchor)
{
    bool is_there = c->writes ? anchor->later > 0 : c->at < c->room;
    if (!is_there || c->wrong) {
        return;
    }
    coder_u64(c, &anchor->version);
    coder_u32(c, &anchor->epoch);
    coder_u64(c, &anchor->position);
    coder_u32(c, &anchor->next);
    coder_u32(c, &anchor->later);
    if (anchor->next == 0 || anchor->later == 0) {
        coder_fail(c, "its steps have no micro-batches");
    }
}

void code_open(struct coder *c, struct wire_message *m)
{
    struct wire_open *open = &m->open;
    coder_u64(c, &open->generation);
    coder_u64(c, &open->base);
    coder_u64(c, &open->lineage);
    coder_bool(c, &open->restore);
    coder_text(c, &open->checkpoint);
    coder_bytes(c, open->digest, sizeof open->digest);
    code_members(c, &open->members);
    if (open->members.count == 0) {
        coder_fail(c, "it has no member");
    }
    code_ranges(c, &open->suspects);
    if (open->suspects.count > WIRE_SUSPECTS_MAX) {
        coder_fail(c, "it suspects too much");
    }
    code_aside(c, &open->aside);
    code_anchor(c, &open->anchor);
}

void code_close(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->close.generation);
    coder_bool(c, &m->close.boundary);
}

void code_ack(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->ack.version);
}

void code_grant(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->grant.incarnation);
    coder_bool(c, &m->grant.last);
    code_ranges(c, &m->grant.ranges);
}

void code_expelled(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->expelled.incarnation);
    coder_u32(c, &m->expelled.reason);
    coder_text(c, &m->expelled.why);
}

void code_dataset_fields(struct coder *c, struct wire_dataset *dataset)
{
    coder_text(c, &dataset->name);
    coder_u32(c, &dataset->number);
    coder_u32(c, &dataset->task);
    coder_u64(c, &dataset->records);
    coder_u32(c, &dataset->epochs);
    coder_u32(c, &dataset->batch);
    coder_u32(c, &dataset->micro_batches);
    coder_u32(c, &dataset->block);
    coder_u64(c, &dataset->seed);
    coder_bool(c, &dataset->set_aside);
    coder_bool(c, &dataset->per_worker);
    coder_u64(c, &dataset->max_steps);
    if (dataset->name.count > WIRE_DATASET_NAME_MAX) {
        coder_fail(c, "the name of its data set is too long");
    }
    if (dataset->records == 0 || dataset->batch == 0) {
        coder_fail(c, "its data set has no records, or none in a micro-batch");
    }
    if (dataset->per_worker && dataset->micro_batches == 0) {
        coder_fail(c, "its data set has no micro-batches for a worker");
    }
}

void code_dataset(struct coder *c, struct wire_message *m)
{
    code_dataset_fields(c, &m->dataset);
}

void code_checkpoint_failed(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->checkpoint_failed.generation);
    coder_u64(c, &m->checkpoint_failed.version);
    coder_bool(c, &m->checkpoint_failed.reading);
    coder_text(c, &m->checkpoint_failed.why);
}
