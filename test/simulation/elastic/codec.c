/* Messages of the world through src/wire: what arrives is what was read from the bytes. A record is
 * a range of one position. See world.h. */
#include "world.h"

#include "wire/wire.h"

#include <string.h>

enum { FRAME_MAX = 8192 };

/* Memory for the arrays of one message. */
struct parts {
    struct shard_range ranges[STEPS_MAX + 2][RECORDS_MAX];
    size_t used;
    struct wire_step steps[STEPS_MAX];
    struct wire_step prepared;
    struct wire_member members[MEMBERS_MAX];
};

static struct wire_ranges to_ranges(struct parts *parts, uint8_t records)
{
    struct shard_range *list = parts->ranges[parts->used++];
    struct wire_ranges ranges = {.list = list};
    for (uint8_t bit = 0; bit < RECORDS_MAX; bit++) {
        if (records & 1u << bit) {
            list[ranges.count++] = (struct shard_range){.first = bit, .count = 1};
        }
    }
    return ranges;
}

static uint8_t from_ranges(struct wire_ranges ranges)
{
    uint8_t records = 0;
    for (uint32_t i = 0; i < ranges.count; i++) {
        records = (uint8_t)(records | 1u << ranges.list[i].first);
    }
    return records;
}

static struct wire_steps to_steps(struct parts *parts, const struct message *m)
{
    struct wire_steps steps = {.list = parts->steps};
    for (uint64_t v = m->first; v <= m->version && v < STEPS_MAX; v++) {
        parts->steps[steps.count++] =
            (struct wire_step){.version = v, .ranges = to_ranges(parts, m->steps[v])};
    }
    return steps;
}

static void from_steps(struct wire_steps steps, struct message *m)
{
    for (uint32_t i = 0; i < steps.count; i++) {
        m->steps[steps.list[i].version] = from_ranges(steps.list[i].ranges);
    }
}

static struct wire_report to_report(struct parts *parts, const struct message *m)
{
    struct wire_report report = {.generation = m->generation,
                                 .version = m->version,
                                 .lost = m->lost,
                                 .ended = m->lost != 0,
                                 .closed = m->closed,
                                 .loaded = m->loaded,
                                 .steps = to_steps(parts, m),
                                 .leases = to_ranges(parts, m->records)};
    if (m->is_prepared) {
        parts->prepared = (struct wire_step){.version = (uint64_t)m->version + 1,
                                             .ranges = to_ranges(parts, m->prepared)};
        report.prepared = (struct wire_steps){&parts->prepared, 1};
    }
    return report;
}

static struct wire_open to_open(struct parts *parts, const struct message *m)
{
    struct wire_open open = {.generation = m->generation,
                             .base = m->version,
                             .lineage = m->lineage,
                             .restore = m->restore,
                             .digest = {m->records},
                             .members = {.list = parts->members}};
    while (open.members.count < MEMBERS_MAX && m->members[open.members.count] != 0) {
        parts->members[open.members.count].incarnation = m->members[open.members.count];
        open.members.count++;
    }
    return open;
}

static struct wire_message to_wire(struct parts *parts, const struct message *m)
{
    struct wire_message w = {.kind = m->kind, .term = m->term};
    switch (w.kind) {
    case WIRE_LEAVE: w.leave.finished = m->finished; break;
    case WIRE_REPORT: w.report = to_report(parts, m); break;
    case WIRE_COMMITS: w.commits = (struct wire_commits){m->generation, to_steps(parts, m)}; break;
    case WIRE_CHECKPOINT:
        w.checkpoint = (struct wire_checkpoint){
            .generation = m->generation, .version = m->version, .digest = {m->records}};
        break;
    case WIRE_OPEN: w.open = to_open(parts, m); break;
    case WIRE_CLOSE: w.close = (struct wire_close){m->generation, m->boundary}; break;
    case WIRE_ACK: w.ack.version = m->version; break;
    case WIRE_GRANT:
        w.grant = (struct wire_grant){.incarnation = m->incarnation,
                                      .ranges = to_ranges(parts, m->records)};
        break;
    case WIRE_EXPELLED:
        w.expelled = (struct wire_expelled){.incarnation = m->incarnation, .reason = m->reason};
        break;
    case WIRE_JOIN:
    case WIRE_HELLO:
    case WIRE_ASK:
    case WIRE_PROGRESS:
    case WIRE_WELCOME:
    case WIRE_REFUSED:
    case WIRE_DATASET:
    case WIRE_ENROLL:
    case WIRE_FETCH:
    case WIRE_DONE:
    case WIRE_LEASED:
    case WIRE_RECEIPT:
    case WIRE_TO_DO:
    case WIRE_CHECKPOINT_FAILED:
    case WIRE_PASS:
    case WIRE_FAIL:
    case WIRE_HEALED:
    case WIRE_SILENT:
    case WIRE_KINDS: break;
    }
    return w;
}

static void from_report(const struct wire_report *report, struct message *m)
{
    m->generation = (uint8_t)report->generation;
    m->version = (uint8_t)report->version;
    m->first = (uint8_t)(report->version + 1 - report->steps.count);
    m->lost = (uint8_t)report->lost;
    m->closed = report->closed;
    m->loaded = report->loaded;
    m->is_prepared = report->prepared.count == 1;
    m->prepared = m->is_prepared ? from_ranges(report->prepared.list[0].ranges) : 0;
    m->records = from_ranges(report->leases);
    from_steps(report->steps, m);
}

static void from_commits(const struct wire_commits *commits, struct message *m)
{
    const struct wire_steps *steps = &commits->steps;
    m->generation = (uint8_t)commits->generation;
    m->first = (uint8_t)steps->list[0].version;
    m->version = (uint8_t)steps->list[steps->count - 1].version;
    from_steps(*steps, m);
}

static void from_open(const struct wire_open *open, struct message *m)
{
    m->generation = (uint8_t)open->generation;
    m->version = (uint8_t)open->base;
    m->lineage = (uint8_t)open->lineage;
    m->restore = open->restore;
    m->records = open->digest[0];
    for (uint32_t i = 0; i < open->members.count; i++) {
        m->members[i] = (uint8_t)open->members.list[i].incarnation;
    }
}

/* The process names itself at the beginning of its connection, not in each message. */
static struct message from_wire(const struct wire_message *w, uint8_t incarnation)
{
    struct message m = {
        .kind = (uint8_t)w->kind, .incarnation = incarnation, .term = (uint8_t)w->term};
    switch (w->kind) {
    case WIRE_LEAVE: m.finished = w->leave.finished; break;
    case WIRE_REPORT: from_report(&w->report, &m); break;
    case WIRE_COMMITS: from_commits(&w->commits, &m); break;
    case WIRE_CHECKPOINT:
        m.generation = (uint8_t)w->checkpoint.generation;
        m.version = (uint8_t)w->checkpoint.version;
        m.records = w->checkpoint.digest[0];
        break;
    case WIRE_OPEN: from_open(&w->open, &m); break;
    case WIRE_CLOSE:
        m.generation = (uint8_t)w->close.generation;
        m.boundary = w->close.boundary;
        break;
    case WIRE_ACK: m.version = (uint8_t)w->ack.version; break;
    case WIRE_GRANT: m.records = from_ranges(w->grant.ranges); break;
    case WIRE_EXPELLED: m.reason = (uint8_t)w->expelled.reason; break;
    case WIRE_JOIN:
    case WIRE_HELLO:
    case WIRE_ASK:
    case WIRE_PROGRESS:
    case WIRE_WELCOME:
    case WIRE_REFUSED:
    case WIRE_DATASET:
    case WIRE_ENROLL:
    case WIRE_FETCH:
    case WIRE_DONE:
    case WIRE_LEASED:
    case WIRE_RECEIPT:
    case WIRE_TO_DO:
    case WIRE_CHECKPOINT_FAILED:
    case WIRE_PASS:
    case WIRE_FAIL:
    case WIRE_HEALED:
    case WIRE_SILENT:
    case WIRE_KINDS: break;
    }
    return m;
}

void codec_pass(struct world *world, struct message *message)
{
    alignas(max_align_t) unsigned char memory[WIRE_ROOM_BYTES(FRAME_MAX)];
    struct wire_room room = {memory, sizeof memory, 0};
    struct parts parts = {.used = 0};
    struct wire_message w = to_wire(&parts, message), again;
    uint8_t frame[FRAME_MAX];
    int64_t count = wire_write(&w, frame, sizeof frame, NULL);
    if (count < 0 || count > FRAME_MAX ||
        wire_read(frame, (size_t)count, &room, &again, NULL) < 0) {
        world_break(world, "every message can be written and read");
        return;
    }
    struct message arrived = from_wire(&again, message->incarnation);
    if (memcmp(&arrived, message, sizeof arrived) != 0) {
        world_break(world, "a message is read as it was written");
    }
    *message = arrived;
}
