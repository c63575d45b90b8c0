/* Messages to bytes and back. Each message is described once, by the function that reads or writes
 * its fields. See wire.h. */
#include "wire/wire.h"

#include "wire/codec.h"

#include <string.h>

enum {
    HEAD_BYTES = WIRE_LENGTH_BYTES + 1 + 8,
    RANGE_BYTES = 20,
    STEP_BYTES = 16,
    MEMBER_BYTES = 265
};

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

static void code_hello(struct coder *c, struct wire_message *m)
{
    coder_u32(c, &m->hello.version);
    coder_u64(c, &m->hello.incarnation);
    coder_bytes(c, m->hello.token, sizeof m->hello.token);
    coder_u64(c, &m->hello.pid_space);
    coder_u32(c, &m->hello.pid);
}

static void code_join(struct coder *c, struct wire_message *m)
{
    code_address(c, &m->join.address);
    coder_u64(c, &m->join.environment);
    coder_text(c, &m->join.name);
}

static void code_leave(struct coder *c, struct wire_message *m)
{
    coder_bool(c, &m->leave.finished);
}

static void code_report(struct coder *c, struct wire_message *m)
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

static void code_commits(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->commits.generation);
    code_steps(c, &m->commits.steps);
    if (m->commits.steps.count == 0) {
        coder_fail(c, "it has no step");
    }
}

static void code_ask(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->ask.records);
}

static void code_progress(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->progress.generation);
    coder_u64(c, &m->progress.version);
    coder_u64(c, &m->progress.records);
    coder_u64(c, &m->progress.step_ns);
    coder_u64(c, &m->progress.wait_ns);
}

static void code_checkpoint(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->checkpoint.generation);
    coder_u64(c, &m->checkpoint.version);
    coder_bytes(c, m->checkpoint.digest, sizeof m->checkpoint.digest);
    coder_text(c, &m->checkpoint.path);
}

static void code_pass(struct coder *c, struct wire_message *m)
{
    code_ranges(c, &m->pass.at_hand);
    if (m->pass.at_hand.count > 1) {
        coder_fail(c, "it has more than one pass at hand");
    }
}

static void code_fail(struct coder *c, struct wire_message *m)
{
    coder_text(c, &m->fail.why);
}

static void code_healed(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->healed.generation);
    coder_u64(c, &m->healed.version);
    coder_u64(c, &m->healed.took_ns);
}

static void code_welcome(struct coder *c, struct wire_message *m)
{
    coder_u32(c, &m->welcome.version);
    coder_u64(c, &m->welcome.lease_ms);
}

static void code_refused(struct coder *c, struct wire_message *m)
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

static void code_open(struct coder *c, struct wire_message *m)
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
}

static void code_close(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->close.generation);
    coder_bool(c, &m->close.boundary);
}

static void code_ack(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->ack.version);
}

static void code_grant(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->grant.incarnation);
    coder_bool(c, &m->grant.last);
    code_ranges(c, &m->grant.ranges);
}

static void code_expelled(struct coder *c, struct wire_message *m)
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
    if (dataset->name.count > WIRE_DATASET_NAME_MAX) {
        coder_fail(c, "the name of its data set is too long");
    }
    if (dataset->records == 0 || dataset->batch == 0) {
        coder_fail(c, "its data set has no records, or none in a micro-batch");
    }
}

static void code_dataset(struct coder *c, struct wire_message *m)
{
    code_dataset_fields(c, &m->dataset);
}

static void code_checkpoint_failed(struct coder *c, struct wire_message *m)
{
    coder_u64(c, &m->checkpoint_failed.generation);
    coder_u64(c, &m->checkpoint_failed.version);
    coder_bool(c, &m->checkpoint_failed.reading);
    coder_text(c, &m->checkpoint_failed.why);
}

static const struct {
    const char *name;
    void (*code)(struct coder *c, struct wire_message *m);
} kinds[WIRE_KINDS] = {
    [WIRE_HELLO] = {"HELLO", code_hello},
    [WIRE_JOIN] = {"JOIN", code_join},
    [WIRE_LEAVE] = {"LEAVE", code_leave},
    [WIRE_REPORT] = {"REPORT", code_report},
    [WIRE_COMMITS] = {"COMMITS", code_commits},
    [WIRE_ASK] = {"ASK", code_ask},
    [WIRE_PROGRESS] = {"PROGRESS", code_progress},
    [WIRE_CHECKPOINT] = {"CHECKPOINT", code_checkpoint},
    [WIRE_WELCOME] = {"WELCOME", code_welcome},
    [WIRE_REFUSED] = {"REFUSED", code_refused},
    [WIRE_OPEN] = {"OPEN", code_open},
    [WIRE_CLOSE] = {"CLOSE", code_close},
    [WIRE_ACK] = {"ACK", code_ack},
    [WIRE_GRANT] = {"GRANT", code_grant},
    [WIRE_EXPELLED] = {"EXPELLED", code_expelled},
    [WIRE_DATASET] = {"DATASET", code_dataset},
    [WIRE_ENROLL] = {"ENROLL", code_enroll},
    [WIRE_FETCH] = {"FETCH", code_fetch},
    [WIRE_DONE] = {"DONE", code_done},
    [WIRE_LEASED] = {"LEASED", code_leased},
    [WIRE_RECEIPT] = {"RECEIPT", code_receipt},
    [WIRE_TO_DO] = {"TO_DO", code_to_do},
    [WIRE_CHECKPOINT_FAILED] = {"CHECKPOINT_FAILED", code_checkpoint_failed},
    [WIRE_PASS] = {"PASS", code_pass},
    [WIRE_FAIL] = {"FAIL", code_fail},
    [WIRE_HEALED] = {"HEALED", code_healed},
};

static bool is_kind(unsigned kind)
{
    return kind > 0 && kind < WIRE_KINDS;
}

const char *wire_kind_name(enum wire_kind kind)
{
    return is_kind(kind) ? kinds[kind].name : "a message of no known kind";
}

/* ---- Frames ---- */

int64_t wire_frame_bytes(const uint8_t *bytes, size_t count, size_t most, struct muster_err *err)
{
    if (count < WIRE_LENGTH_BYTES) {
        return 0;
    }
    uint32_t length = 0;
    struct coder c = {.in = bytes, .room = count};
    coder_u32(&c, &length);
    if (length < HEAD_BYTES - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_EPROTO, "a frame of %u bytes is no message", length);
    }
    if (length > most - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "a frame of %u bytes is longer than the %zu allowed", length, most);
    }
    return (int64_t)length + WIRE_LENGTH_BYTES;
}

/* Counts that the frame cannot hold may need more than the room that is always enough: then it is
 * the frame that is wrong. */
static int refuse(const struct coder *c, unsigned kind, struct muster_err *err)
{
    bool too_big = c->too_big && c->arrays->size_bytes < WIRE_ROOM_BYTES(c->room);
    return muster_fail(err, too_big ? MUSTER_ETOOBIG : MUSTER_EPROTO, "%s cannot be read: %s",
                       wire_kind_name((enum wire_kind)kind), c->wrong);
}

int wire_read(const uint8_t *frame, size_t count, struct wire_room *room, struct wire_message *ret,
              struct muster_err *err)
{
    struct coder c = {.in = frame, .room = count, .arrays = room};
    struct wire_message message = {0};
    uint32_t length = 0;
    uint8_t kind = 0;
    size_t used_bytes = room->used_bytes;
    coder_u32(&c, &length);
    coder_u8(&c, &kind);
    coder_u64(&c, &message.term);
    if (c.wrong || length != count - WIRE_LENGTH_BYTES) {
        return muster_fail(err, MUSTER_EPROTO, "%zu bytes are not one frame", count);
    }
    if (!is_kind(kind)) {
        return muster_fail(err, MUSTER_EPROTO, "there is no message of kind %u", kind);
    }
    message.kind = kind;
    kinds[kind].code(&c, &message);
    if (!c.wrong && c.at != count) {
        coder_fail(&c, "it goes on after its last field");
    }
    if (c.wrong) {
        room->used_bytes = used_bytes;
        return refuse(&c, kind, err);
    }
    *ret = message;
    return 0;
}

int64_t wire_write(const struct wire_message *message, uint8_t *bytes, size_t room,
                   struct muster_err *err)
{
    struct coder c = {.writes = true, .out = bytes, .room = room};
    struct wire_message copy = *message; /* a coder takes its fields by reference */
    uint8_t kind = (uint8_t)message->kind;
    uint32_t length = 0;
    coder_u32(&c, &length);
    coder_u8(&c, &kind);
    coder_u64(&c, &copy.term);
    kinds[kind].code(&c, &copy);
    if (c.wrong) {
        return muster_fail(err, MUSTER_EINVAL, "%s cannot be written: %s", wire_kind_name(kind),
                           c.wrong);
    }
    if (c.at > WIRE_FRAME_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "%s of %zu bytes is longer than a frame",
                           wire_kind_name(kind), c.at);
    }
    if (c.at <= room) {
        struct coder head = {.writes = true, .out = bytes, .room = WIRE_LENGTH_BYTES};
        length = (uint32_t)(c.at - WIRE_LENGTH_BYTES);
        coder_u32(&head, &length);
    }
    return (int64_t)c.at;
}
