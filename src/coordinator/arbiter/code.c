/* See code.h. */
#include "coordinator/arbiter/code.h"

#include "coordinator/arbiter/entry.h"
#include "core/hash.h"

enum { NUMBER_BYTES = 8, OPTIONS = 12, EVENT_HEAD = 6 };

static void add_numbers(const uint64_t *numbers, size_t count, struct buf *ret)
{
    for (size_t i = 0; i < count; i++) {
        entry_write_number(numbers[i], ret);
    }
}

static void add_bytes(const void *bytes, size_t count, struct buf *ret)
{
    entry_write_number(count, ret);
    buf_add(ret, bytes, count);
}

/* ---- Options ---- */

void arbiter_code_options(const struct arbiter_options *o, struct buf *ret)
{
    const uint64_t fields[OPTIONS] = {o->sizes.min_size,
                                      o->sizes.max_size,
                                      o->sizes.first_size,
                                      o->sizes.lineage,
                                      o->peers,
                                      o->micro_batches,
                                      (uint64_t)o->lease_ms,
                                      (uint64_t)o->pass_ms,
                                      (uint64_t)o->pass_max_ms,
                                      (uint64_t)o->first_ms,
                                      o->least_term,
                                      o->max_steps};
    add_numbers(fields, OPTIONS, ret);
}

bool arbiter_code_read_options(const uint8_t *bytes, size_t count, struct arbiter_options *ret)
{
    uint64_t fields[OPTIONS];
    for (size_t i = 0; i < OPTIONS && count == sizeof fields; i++) {
        fields[i] = entry_read_number(bytes + i * NUMBER_BYTES);
    }
    if (count != sizeof fields || fields[4] > ARBITER_PEERS_MAX) {
        return false;
    }
    *ret = (struct arbiter_options){.sizes = {.min_size = (uint32_t)fields[0],
                                              .max_size = (uint32_t)fields[1],
                                              .first_size = (uint32_t)fields[2],
                                              .lineage = fields[3]},
                                    .peers = (uint32_t)fields[4],
                                    .micro_batches = (uint32_t)fields[5],
                                    .lease_ms = (int64_t)fields[6],
                                    .pass_ms = (int64_t)fields[7],
                                    .pass_max_ms = (int64_t)fields[8],
                                    .first_ms = (int64_t)fields[9],
                                    .least_term = fields[10],
                                    .max_steps = fields[11]};
    return true;
}

/* ---- Events ---- */

static void add_message(const struct wire_message *message, struct buf *ret)
{
    int64_t count = wire_write(message, NULL, 0, NULL);
    entry_write_number(count > 0 ? (uint64_t)count : 0, ret);
    char *place = count > 0 ? buf_reserve(ret, (size_t)count) : NULL;
    if (place) {
        (void)wire_write(message, (uint8_t *)place, (size_t)count, NULL);
        buf_grew(ret, (size_t)count);
    }
}

void arbiter_code_event(const struct arbiter_event *event, struct buf *ret)
{
    const uint64_t head[] = {event->kind, event->cause, (uint64_t)event->now_ms, event->incarnation,
                             event->record};
    add_numbers(head, sizeof head / sizeof head[0], ret);
    if (event->kind == ARBITER_MESSAGE) {
        add_message(event->message, ret);
    } else {
        add_bytes(event->bytes, event->bytes ? event->count : 0, ret);
    }
}

bool arbiter_code_read_event(const uint8_t *bytes, size_t count, struct wire_room *room,
                             struct wire_message *message, struct arbiter_event *ret,
                             size_t *ret_count)
{
    size_t head = EVENT_HEAD * NUMBER_BYTES;
    uint64_t fields[EVENT_HEAD] = {0};
    for (size_t i = 0; i < EVENT_HEAD && count >= head; i++) {
        fields[i] = entry_read_number(bytes + i * NUMBER_BYTES);
    }
    size_t tail = (size_t)fields[5];
    if (count < head || fields[0] > ARBITER_TICK || tail > count - head) {
        return false;
    }
    *ret = (struct arbiter_event){.kind = (enum arbiter_event_kind)fields[0],
                                  .cause = (enum arbiter_cause)fields[1],
                                  .now_ms = (int64_t)fields[2],
                                  .incarnation = fields[3],
                                  .record = (uint32_t)fields[4]};
    *ret_count = head + tail;
    if (ret->kind == ARBITER_MESSAGE) {
        ret->message = message;
        return wire_read(bytes + head, tail, room, message, NULL) == 0;
    }
    ret->bytes = tail > 0 ? bytes + head : NULL;
    ret->count = tail;
    return true;
}

/* ---- Answers ---- */

static uint64_t hash_snapshot(struct arbiter *a)
{
    uint64_t hash = 0;
    struct buf snapshot;
    buf_init(&snapshot, ARBITER_BYTES_MAX);
    if (arbiter_may_compact(a) && arbiter_snapshot(a, &snapshot, NULL) == 0) {
        hash = hash_bytes(HASH_START, snapshot.data, snapshot.used);
    }
    buf_done(&snapshot);
    return hash;
}

void arbiter_code_answer(struct arbiter *after, const struct arbiter_event *event, int result,
                         const struct arbiter_effects *effects, struct buf *ret)
{
    bool reads = event->kind == ARBITER_REPLAY;
    const uint64_t head[] = {(uint64_t)(int64_t)result,
                             arbiter_term(after),
                             arbiter_generation(after),
                             arbiter_is_open(after),
                             arbiter_version(after),
                             (uint64_t)arbiter_next_ms(after),
                             reads || result < 0 ? 0 : hash_snapshot(after),
                             effects->count};
    add_numbers(head, sizeof head / sizeof head[0], ret);
    for (size_t i = 0; i < effects->count; i++) {
        const struct arbiter_effect *e = &effects->list[i];
        const uint64_t fields[] = {e->kind, e->record, e->to};
        add_numbers(fields, 3, ret);
        add_bytes(arbiter_effect_bytes(effects, e), e->count, ret);
    }
}
