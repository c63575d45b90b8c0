/* Messages without a task: which are sent or received at once, and that a message which is left to
 * the task's steps is still available to them, in its order. */
#include "comm/messages/message.h"
#include "comm/messages/streams.h"

#include "comm/algorithm/pair_test.h"
#include "comm/api/call.h"

enum { MOST_BYTES = 12 * 1024 };

static unsigned char in[MOST_BYTES], out[MOST_BYTES];

/* Prepares a message from rank 0 to rank 1: the send, or the receive. */
static void prepare(struct pair *pair, int rank, size_t bytes, int tag, struct task *ret)
{
    const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                     .kind = rank == 0 ? MUSTER_SEND : MUSTER_RECV,
                                     .type = MUSTER_U8,
                                     .peer = 1 - rank,
                                     .tag = tag,
                                     .in = in,
                                     .out = out,
                                     .count = bytes};
    *ret = (struct task){0};
    assert_int_equal(prepare_call(pair->ranks[rank].comm, &call, &ret->call, NULL), 0);
    call_begin(pair->ranks[rank].comm, ret);
}

/* Sends the message at once, by the function for a single send or by the one for several. */
static void send(struct pair *pair, size_t bytes, int tag, unsigned char first)
{
    struct task task;
    for (size_t i = 0; i < bytes; i++) {
        in[i] = (unsigned char)(first + i);
    }
    prepare(pair, 0, bytes, tag, &task);
    assert_true((tag % 2 ? message_send_now : message_send_ahead)(pair->ranks[0].comm, &task.call));
}

static void check(const struct task *task, size_t bytes, int tag, unsigned char first)
{
    const struct muster_message *m = &task->transfer.message;
    assert_true(m->source == 0 && m->tag == tag && m->size_bytes == bytes);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(out[i], (unsigned char)(first + i));
    }
}

static int step(struct pair *pair, struct task *task, struct muster_err *err)
{
    return task->step(pair->ranks[1].comm, task, err);
}

static void what_is_there_is_received_at_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 500, 4000, MESSAGE_NOW_BYTES, MOST_BYTES};
    struct pair pair;
    struct task task;
    pair_open(&pair, false);
    for (size_t i = 0; i < 200; i++) {
        size_t bytes = sizes[i % (sizeof sizes / sizeof sizes[0])];
        int tag = (int)(i % 2); /* send() chooses the function by the tag */
        pair.ranks[0].comm->messages->streams[1].out.ahead = i / 2 % 2;
        memset(out, 0, sizeof out);
        prepare(&pair, 1, bytes, tag, &task);
        send(&pair, bytes, tag, (unsigned char)i);
        assert_true(message_receive_now(pair.ranks[1].comm, &task));
        check(&task, bytes, tag, (unsigned char)i);
    }
    pair_close(&pair);
}

static void what_is_for_another_receive_stays(void **state)
{
    (void)state;
    struct pair pair;
    struct task second, first;
    pair_open(&pair, false);
    prepare(&pair, 1, 100, 2, &second);
    assert_false(message_receive_now(pair.ranks[1].comm, &second)); /* nothing has arrived */
    send(&pair, 100, 1, 7);
    assert_false(message_receive_now(pair.ranks[1].comm, &second));
    send(&pair, 100, 2, 8);
    assert_false(message_receive_now(pair.ranks[1].comm, &second)); /* not the next message */
    assert_int_equal(step(&pair, &second, NULL), 1);
    check(&second, 100, 2, 8);
    prepare(&pair, 1, 100, 1, &first);
    assert_false(message_receive_now(pair.ranks[1].comm, &first)); /* it is in another queue */
    assert_int_equal(step(&pair, &first, NULL), 1);
    check(&first, 100, 1, 7);
    send(&pair, 50, 1, 9);
    prepare(&pair, 1, 50, MUSTER_ANY_TAG, &first);
    assert_true(message_receive_now(pair.ranks[1].comm, &first));
    check(&first, 50, 1, 9);
    pair_close(&pair);
}

static void what_is_too_long_or_not_all_there_is_left_to_the_steps(void **state)
{
    (void)state;
    struct pair pair;
    struct task send_task, task;
    struct muster_err err = MUSTER_ERR_INIT;
    pair_open(&pair, false);
    send(&pair, 100, 1, 1);
    prepare(&pair, 1, 99, 1, &task);
    assert_false(message_receive_now(pair.ranks[1].comm, &task));
    assert_int_equal(step(&pair, &task, &err), MUSTER_ETOOBIG);
    for (size_t i = 0; i < MOST_BYTES; i++) {
        in[i] = (unsigned char)(5 + i);
    }
    prepare(&pair, 0, MOST_BYTES, 1, &send_task);
    assert_int_equal(send_task.step(pair.ranks[0].comm, &send_task, NULL), 1); /* in two parts */
    prepare(&pair, 1, MOST_BYTES, 1, &task);
    assert_false(message_receive_now(pair.ranks[1].comm, &task));
    assert_int_equal(step(&pair, &task, &err), 1);
    check(&task, MOST_BYTES, 1, 5);
    pair_close(&pair);
}

static void what_has_no_room_is_not_sent(void **state)
{
    (void)state;
    struct pair pair;
    struct task task;
    int sent = 0;
    pair_open(&pair, false);
    size_t ring_bytes = pair.ranks[0].comm->messages->streams[1].out.ring_bytes;
    prepare(&pair, 0, MOST_BYTES, 1, &task);
    while (message_send_now(pair.ranks[0].comm, &task.call)) {
        assert_in_range(++sent, 1, ring_bytes / MOST_BYTES);
    }
    for (int i = 0; i < sent; i++) {
        prepare(&pair, 1, MOST_BYTES, 1, &task);
        assert_true(message_receive_now(pair.ranks[1].comm, &task));
    }
    assert_int_equal(sent, ring_bytes / (MOST_BYTES + SEGMENT_LINE));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_received_at_once),
        cmocka_unit_test(what_is_for_another_receive_stays),
        cmocka_unit_test(what_is_too_long_or_not_all_there_is_left_to_the_steps),
        cmocka_unit_test(what_has_no_room_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
