/* Every message is read as it was written, and other bytes are refused. */
#include "base/testing/test.h"
#include "wire/wire.h"

#include <stdlib.h>

enum { ROOM = 4096 };

static const struct shard_range ranges[] = {{0, 1, 10, 32}, {2, 0, UINT64_C(1) << 40, 1}};
static const struct wire_step steps[] = {{7, 0, {ranges, 2}}, {8, 1, {NULL, 0}}};
static const struct wire_step next[] = {{9, 0, {ranges, 1}}};
static const uint64_t sums[] = {1, UINT64_MAX};
static const struct shard_range aside[] = {{1, 0, 41, 1}};
static const struct wire_member members[] = {{1, true, {{1}, {2}}}, {2, false, {{3}, {4}}}};

/* One message of each kind, in which no field is zero. */
static const struct wire_message samples[] = {
    {WIRE_HELLO, 1, .hello = {WIRE_VERSION, 5, {1, 2, 3}, 7, 8}},
    {WIRE_JOIN, 2, .join = {{{9}, {8}}, 77, {"worker-1", 8}}},
    {WIRE_LEAVE, 3, .leave = {false, true}},
    {WIRE_REPORT, 4, .report = {3, 8, 6, true, true, true, {steps, 2}, {next, 1}, {ranges, 2}}},
    {WIRE_COMMITS, 5, .commits = {3, {steps, 2}}},
    {WIRE_ASK, 6, .ask = {640}},
    {WIRE_PROGRESS, 7, .progress = {3, 8, 512, 5000000, 10000}},
    {WIRE_CHECKPOINT, 8, .checkpoint = {3, 8, {4, 5}, {"/data/8", 7}}},
    {WIRE_WELCOME, 9, .welcome = {WIRE_VERSION, 30000}},
    {WIRE_REFUSED, 10, .refused = {{"the token is wrong", 18}}},
    {WIRE_OPEN, 11,
     .open = {4, 8, 2, true, {"/data/8", 7}, {4, 5}, {members, 2}, {ranges, 1}, {aside, 1}}},
    {WIRE_CLOSE, 12, .close = {3, true}},
    {WIRE_ACK, 13, .ack = {8}},
    {WIRE_GRANT, 14, .grant = {5, true, {ranges, 2}}},
    {WIRE_EXPELLED, 15, .expelled = {5, 1, {"silent", 6}}},
    {WIRE_DATASET, 16, .dataset = {{"mnist", 5}, 1, 1, 60000, 3, 32, 8, 1, 42, true, true, 500}},
    {WIRE_ENROLL, 17,
     .enroll = {{{"mnist", 5}, 1, 1, 60000, 3, 32, 8, 1, 42, true, true},
                {"loss", 4},
                {"worker-1", 8},
                true,
                {ranges, 2},
                {4, 5}}},
    {WIRE_FETCH, 18, .fetch = {640}},
    {WIRE_DONE, 19, .done = {4, {ranges, 2}, {ranges, 1}, {sums, 2}}},
    {WIRE_LEASED, 20, .leased = {true, true, 4, {ranges, 2}, {sums, 2}, 3}},
    {WIRE_RECEIPT, 21, .receipt = {4}},
    {WIRE_TO_DO, 22, .to_do = {true, 1, {ranges, 2}, {ranges, 1}}},
    {WIRE_CHECKPOINT_FAILED, 23, .checkpoint_failed = {3, 8, true, {"torn", 4}}},
    {WIRE_PASS, 24, .pass = {5, {ranges, 1}}},
    {WIRE_FAIL, 25, .fail = {{"worker-1: KeyError: 7", 21}}},
    {WIRE_HEALED, 26, .healed = {3, 8, 4000000}},
    {WIRE_SILENT, 27, .silent = {5, 900}},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static int64_t written(const struct wire_message *message, uint8_t *bytes)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t count = wire_write(message, bytes, ROOM, &err);
    if (count < 0 || count > ROOM) {
        fail_msg("%s: %s", wire_kind_name(message->kind), err.text);
    }
    return count;
}

/* Reads into a room that has exactly WIRE_ROOM_BYTES bytes, so that a sanitizer sees its end. */
static int read_frame(const uint8_t *bytes, size_t count, struct wire_message *ret,
                      void **ret_memory)
{
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(count) + 1), WIRE_ROOM_BYTES(count), 0};
    *ret_memory = room.memory;
    return wire_read(bytes, count, &room, ret, NULL);
}

static void each_message_is_read_as_it_was_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint8_t bytes[ROOM], again[ROOM];
        struct wire_message message;
        void *memory;
        int64_t count = written(&samples[i], bytes);
        assert_int_equal(wire_frame_bytes(bytes, (size_t)count, ROOM, NULL), count);
        assert_int_equal(read_frame(bytes, (size_t)count, &message, &memory), 0);
        assert_int_equal(message.kind, samples[i].kind);
        assert_int_equal(message.term, i + 1);
        assert_int_equal(written(&message, again), count);
        assert_memory_equal(again, bytes, (size_t)count);
        free(memory);
    }
    assert_int_equal(SAMPLES, WIRE_KINDS - 1);
}

static void fields_are_where_they_were(void **state)
{
    (void)state;
    uint8_t bytes[ROOM];
    struct wire_message m;
    void *memory;
    int64_t count = written(&samples[WIRE_REPORT - 1], bytes);
    assert_int_equal(read_frame(bytes, (size_t)count, &m, &memory), 0);
    assert_int_equal(m.report.version, 8);
    assert_int_equal(m.report.lost, 6);
    assert_true(m.report.ended);
    assert_int_equal(m.report.steps.count, 2);
    assert_int_equal(m.report.steps.list[0].ranges.list[1].first, UINT64_C(1) << 40);
    assert_int_equal(m.report.prepared.list[0].version, 9);
    assert_int_equal(m.report.leases.list[0].count, 32);
    free(memory);
}

static void a_data_set_is_read_field_by_field(void **state)
{
    (void)state;
    uint8_t bytes[ROOM];
    struct wire_message m;
    void *memory;
    int64_t count = written(&samples[WIRE_DATASET - 1], bytes);
    assert_int_equal(read_frame(bytes, (size_t)count, &m, &memory), 0);
    const struct wire_dataset *d = &m.dataset;
    assert_int_equal(d->name.count, 5);
    assert_memory_equal(d->name.bytes, "mnist", 5);
    assert_int_equal(d->number, 1);
    assert_int_equal(d->task, 1);
    assert_int_equal(d->records, 60000);
    assert_int_equal(d->epochs, 3);
    assert_int_equal(d->batch, 32);
    assert_int_equal(d->micro_batches, 8);
    assert_int_equal(d->block, 1);
    assert_int_equal(d->seed, 42);
    assert_true(d->set_aside);
    assert_true(d->per_worker);
    assert_int_equal(d->max_steps, 500);
    free(memory);
}

/* The anchor is the last field, if there is one: without it the frame is that of a data set whose
 * steps are all equal. */
static void an_anchor_is_there_or_not(void **state)
{
    (void)state;
    enum { ANCHOR_BYTES = 28 };
    uint8_t bytes[ROOM], without[ROOM];
    struct wire_message anchored = samples[WIRE_OPEN - 1], m;
    void *memory;
    anchored.open.anchor = (struct shard_anchor){8, 1, 640, 2, 6};
    size_t plain = (size_t)written(&samples[WIRE_OPEN - 1], without);
    size_t count = (size_t)written(&anchored, bytes);
    assert_int_equal(count, plain + ANCHOR_BYTES);
    assert_memory_equal(bytes + WIRE_LENGTH_BYTES, without + WIRE_LENGTH_BYTES,
                        plain - WIRE_LENGTH_BYTES);
    assert_int_equal(read_frame(bytes, count, &m, &memory), 0);
    assert_int_equal(m.open.anchor.version, 8);
    assert_int_equal(m.open.anchor.epoch, 1);
    assert_int_equal(m.open.anchor.position, 640);
    assert_int_equal(m.open.anchor.next, 2);
    assert_int_equal(m.open.anchor.later, 6);
    free(memory);
    for (size_t cut = plain; cut <= count + 1; cut++) {
        uint32_t length = (uint32_t)(cut - WIRE_LENGTH_BYTES);
        memcpy(bytes, &length, sizeof length);
        bool whole = cut == plain || cut == count;
        assert_int_equal(read_frame(bytes, cut, &m, &memory), whole ? 0 : MUSTER_EPROTO);
        free(memory);
    }
    memset(bytes + plain, 0, ANCHOR_BYTES); /* no other encoding of an absent anchor */
    uint32_t length = (uint32_t)(count - WIRE_LENGTH_BYTES);
    memcpy(bytes, &length, sizeof length);
    assert_int_equal(read_frame(bytes, count, &m, &memory), MUSTER_EPROTO);
    free(memory);
}

static void a_frame_that_is_cut_or_too_long_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint8_t bytes[ROOM] = {0};
        struct wire_message message;
        void *memory;
        size_t count = (size_t)written(&samples[i], bytes);
        for (size_t cut = 0; cut <= count + 1; cut++) {
            uint32_t length = (uint32_t)(cut - WIRE_LENGTH_BYTES);
            uint8_t short_frame[ROOM];
            memcpy(short_frame, bytes, sizeof bytes);
            memcpy(short_frame, &length, sizeof length); /* the length fits the bytes */
            int code = read_frame(short_frame, cut, &message, &memory);
            assert_int_equal(code, cut == count ? 0 : MUSTER_EPROTO);
            free(memory);
        }
    }
}

/* A frame with a single wrong byte is refused, or is another message, which is written as it was
 * read. */
static void a_wrong_byte_is_refused_or_means_something_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint8_t bytes[ROOM], again[ROOM];
        size_t count = (size_t)written(&samples[i], bytes);
        for (size_t at = 0; at < count; at++) {
            struct wire_message message;
            void *memory;
            bytes[at] ^= 0xff;
            if (read_frame(bytes, count, &message, &memory) == 0) {
                assert_int_equal(written(&message, again), count);
                assert_memory_equal(again, bytes, count);
            }
            bytes[at] ^= 0xff;
            free(memory);
        }
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const char too_long[65] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const struct shard_range none[] = {{0, 0, 5, 0}};
    static const struct wire_step gap[] = {{7, 0, {NULL, 0}}, {9, 0, {NULL, 0}}};
    static const struct {
        struct wire_message message;
        const char *says;
    } rows[] = {
        {{WIRE_GRANT, 1, .grant = {5, false, {none, 1}}}, "a range of records is none"},
        {{WIRE_COMMITS, 1, .commits = {3, {gap, 2}}}, "a step is missing"},
        {{WIRE_COMMITS, 1, .commits = {3, {NULL, 0}}}, "it has no step"},
        {{WIRE_REPORT, 1, .report = {.version = 9, .steps = {steps, 2}}},
         "do not end at its version"},
        {{WIRE_REPORT, 1, .report = {.version = 7, .prepared = {next, 1}}}, "another step than"},
        {{WIRE_OPEN, 1, .open = {.generation = 1}}, "it has no member"},
        {{WIRE_DATASET, 1, .dataset = {.records = 1}}, "none in a micro-batch"},
        {{WIRE_DATASET, 1, .dataset = {.batch = 1}}, "no records"},
        {{WIRE_DATASET, 1, .dataset = {.records = 1, .batch = 1, .per_worker = true}},
         "no micro-batches for a worker"},
        {{WIRE_OPEN, 1, .open = {.members = {members, 1}, .anchor = {.later = 1}}},
         "its steps have no micro-batches"},
        {{WIRE_DATASET, 1, .dataset = {{too_long, 64}, .records = 1, .batch = 1}}, "too long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        uint8_t bytes[ROOM];
        assert_int_equal(wire_write(&rows[i].message, bytes, ROOM, &err), MUSTER_EINVAL);
        assert_non_null(strstr(err.text, rows[i].says));
    }
}

static void the_length_is_known_before_the_rest_is_kept(void **state)
{
    (void)state;
    uint8_t bytes[ROOM];
    int64_t count = written(&samples[0], bytes);
    assert_true(count <= WIRE_FIRST_MAX);
    assert_int_equal(wire_frame_bytes(bytes, 3, WIRE_FIRST_MAX, NULL), 0);
    assert_int_equal(wire_frame_bytes(bytes, 4, WIRE_FIRST_MAX, NULL), count);
    assert_int_equal(wire_frame_bytes(bytes, 4, (size_t)count - 1, NULL), MUSTER_ETOOBIG);
    memset(bytes, 0xff, 4);
    assert_int_equal(wire_frame_bytes(bytes, 4, WIRE_FRAME_MAX, NULL), MUSTER_ETOOBIG);
    memset(bytes, 0, 4);
    assert_int_equal(wire_frame_bytes(bytes, 4, WIRE_FRAME_MAX, NULL), MUSTER_EPROTO);
}

static void a_frame_is_counted_where_there_is_no_room(void **state)
{
    (void)state;
    uint8_t bytes[ROOM];
    int64_t count = written(&samples[3], bytes);
    assert_int_equal(wire_write(&samples[3], NULL, 0, NULL), count);
    struct wire_room room = {bytes, 0, 0};
    struct wire_message message;
    uint8_t frame[ROOM];
    written(&samples[3], frame);
    assert_int_equal(wire_read(frame, (size_t)count, &room, &message, NULL), MUSTER_ETOOBIG);
}

static void what_workers_may_send_is_known(void **state)
{
    (void)state;
    static const enum wire_kind of_coordinators[] = {WIRE_WELCOME, WIRE_REFUSED, WIRE_OPEN,
                                                     WIRE_CLOSE,   WIRE_ACK,     WIRE_GRANT,
                                                     WIRE_LEASED,  WIRE_RECEIPT, WIRE_EXPELLED};
    bool expected[WIRE_KINDS];
    memset(expected, true, sizeof expected);
    expected[0] = expected[WIRE_HELLO] = false;
    for (size_t i = 0; i < sizeof of_coordinators / sizeof of_coordinators[0]; i++) {
        expected[of_coordinators[i]] = false;
    }
    for (int kind = 0; kind < WIRE_KINDS; kind++) {
        assert_int_equal(wire_kind_of_workers((enum wire_kind)kind), expected[kind]);
    }
    assert_false(wire_kind_of_workers(WIRE_KINDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_read_as_it_was_written),
        cmocka_unit_test(fields_are_where_they_were),
        cmocka_unit_test(a_data_set_is_read_field_by_field),
        cmocka_unit_test(an_anchor_is_there_or_not),
        cmocka_unit_test(a_frame_that_is_cut_or_too_long_is_refused),
        cmocka_unit_test(a_wrong_byte_is_refused_or_means_something_else),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_length_is_known_before_the_rest_is_kept),
        cmocka_unit_test(a_frame_is_counted_where_there_is_no_room),
        cmocka_unit_test(what_workers_may_send_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
