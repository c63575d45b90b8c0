/* Offered messages: each is read once out of its sender's memory, in its order; a message that
 * cannot be read comes through the second ring; and data that was read from a sender that is gone
 * is not used. */
#include "comm/messages/offer.h"

#include "comm/algorithm/pair_test.h"
#include "comm/api/call.h"
#include "comm/messages/message.h"
#include "comm/system/remote_read_test.h"

#include <stdlib.h>

enum {
    LARGE = 300 * 1000, /* a reader needs two turns for it, and it exceeds the second ring */
    SMALL = 1000,
    MOST = 8, /* messages */
    TURNS = 10000,
};

/* ---- Messages from rank 0 to rank 1 ---- */

struct message {
    struct task send, receive;
    unsigned char *in, *out;
    size_t bytes;
    int tag;
};

struct scene {
    struct pair pair;
    struct message messages[MOST];
    int num;
};

static void scene_open(struct scene *s, size_t offers_from_bytes)
{
    memset(s, 0, sizeof *s);
    remote_reads_begin(0, 0);
    remote_reads.meanwhile = NULL;
    pair_open(&s->pair, false);
    for (int r = 0; r < 2; r++) {
        struct muster_comm *comm = s->pair.ranks[r].comm;
        comm->oversubscribed = false; /* also with one processor */
        message_open(comm);
        comm->messages->offers_from_bytes = offers_from_bytes; /* on any processor */
        comm->messages->offers_above_bytes = 0;
    }
    remote_reads.context = s->pair.ranks[0].comm;
}

static void scene_close(struct scene *s)
{
    pair_close(&s->pair);
    for (int i = 0; i < s->num; i++) {
        free(s->messages[i].in);
        free(s->messages[i].out);
    }
}

static unsigned char value(int message, size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 + (size_t)message * 31);
}

static struct message *add(struct scene *s, size_t bytes)
{
    assert_in_range(s->num, 0, MOST - 1);
    struct message *m = &s->messages[s->num];
    m->in = malloc(bytes);
    m->out = calloc(1, bytes);
    assert_true(m->in && m->out);
    m->bytes = bytes;
    m->tag = s->num;
    for (size_t i = 0; i < bytes; i++) {
        m->in[i] = value(s->num, i);
    }
    s->num++;
    return m;
}

/* Puts a message in its lane, as if it had been started. */
static void start(struct scene *s, struct message *m, enum muster_collective kind, size_t bytes)
{
    int rank = kind == MUSTER_SEND ? 0 : 1;
    struct task *task = kind == MUSTER_SEND ? &m->send : &m->receive;
    const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                     .kind = kind,
                                     .type = MUSTER_U8,
                                     .peer = 1 - rank,
                                     .tag = m->tag,
                                     .in = m->in,
                                     .out = m->out,
                                     .count = bytes};
    assert_int_equal(prepare_call(s->pair.ranks[rank].comm, &call, &task->call, NULL), 0);
    call_begin(s->pair.ranks[rank].comm, task);
    task->queued = true;
    message_begin(s->pair.ranks[rank].comm, task);
}

static void start_all(struct scene *s)
{
    for (int i = 0; i < s->num; i++) {
        start(s, &s->messages[i], MUSTER_RECV, s->messages[i].bytes);
    }
    for (int i = 0; i < s->num; i++) {
        start(s, &s->messages[i], MUSTER_SEND, s->messages[i].bytes);
    }
}

static void move(struct scene *s, int rank)
{
    (void)message_move(s->pair.ranks[rank].comm);
}

static bool all_ended(const struct scene *s)
{
    bool all = true;
    for (int i = 0; i < s->num; i++) {
        const struct message *m = &s->messages[i];
        all = all && m->send.transfer.ended && m->receive.transfer.ended;
    }
    return all;
}

static void run(struct scene *s)
{
    for (int turn = 0; turn < TURNS && !all_ended(s); turn++) {
        move(s, turn % 2);
    }
    assert_true(all_ended(s));
    assert_int_equal(s->pair.ranks[0].comm->messages->sends, 0);
    assert_null(s->pair.ranks[0].comm->messages->streams[1].first_offered);
}

static void check(const struct scene *s, int i, size_t bytes)
{
    const struct message *m = &s->messages[i];
    assert_int_equal(m->receive.transfer.message.tag, m->tag);
    assert_int_equal(m->receive.transfer.message.size_bytes, m->bytes);
    for (size_t at = 0; at < m->bytes; at++) {
        if (m->out[at] != (at < bytes ? value(i, at) : 0)) {
            fail_msg("message %d: byte %zu is %d", i, at, m->out[at]);
        }
    }
}

static void check_all(const struct scene *s)
{
    for (int i = 0; i < s->num; i++) {
        check(s, i, s->messages[i].bytes);
    }
}

/* ---- Tests ---- */

static void several_are_read_out_of_the_senders_memory(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, LARGE);
    for (int i = 0; i < 4; i++) {
        (void)add(&s, LARGE + (size_t)i);
        (void)add(&s, SMALL);
    }
    start_all(&s);
    move(&s, 0);
    for (int i = 0; i < s.num; i++) { /* small ones have their data in the stream */
        assert_int_equal(s.messages[i].send.transfer.ended, s.messages[i].bytes == SMALL);
    }
    assert_int_equal(remote_reads.count, 0);
    run(&s);
    assert_in_range(remote_reads.count, 4 * 2, 4 * 3);
    check_all(&s);
    scene_close(&s);
}

/* A message alone goes through the ring: its sender copies in while its receiver copies out. */
static void one_alone_goes_through_the_ring(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, LARGE);
    (void)add(&s, LARGE);
    start_all(&s);
    run(&s);
    check_all(&s);
    assert_int_equal(remote_reads.count, 0);
    scene_close(&s);
}

static void start_from(struct scene *s, int first)
{
    for (int i = first; i < s->num; i++) {
        start(s, &s->messages[i], MUSTER_RECV, s->messages[i].bytes);
        start(s, &s->messages[i], MUSTER_SEND, s->messages[i].bytes);
    }
    run(s);
    check_all(s);
}

/* A few messages go through the ring, which is faster for data that is still in the sender's cache.
 * Sends that have ended do not count. */
static void few_go_through_the_ring(void **state)
{
    (void)state;
    enum { FEW = 2, MANY = 3 };
    struct scene s;
    scene_open(&s, LARGE);
    s.pair.ranks[0].comm->messages->offers_above_bytes = FEW * LARGE;
    for (int i = 0; i < FEW; i++) {
        (void)add(&s, LARGE);
    }
    start_from(&s, 0);
    assert_int_equal(remote_reads.count, 0);
    for (int i = 0; i < MANY; i++) {
        (void)add(&s, LARGE);
    }
    start_from(&s, FEW);
    int read = remote_reads.count;
    assert_in_range(read, MANY * 2, MANY * 3);
    for (int i = 0; i < FEW; i++) {
        (void)add(&s, LARGE);
    }
    start_from(&s, FEW + MANY);
    assert_int_equal(remote_reads.count, read);
    scene_close(&s);
}

static void one_is_offered_by_a_sender_that_receives(void **state)
{
    (void)state;
    struct scene s;
    struct task receive;
    unsigned char byte;
    const struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                     .kind = MUSTER_RECV,
                                     .type = MUSTER_U8,
                                     .peer = 1,
                                     .out = &byte,
                                     .count = 1};
    scene_open(&s, LARGE / 2);
    assert_int_equal(prepare_call(s.pair.ranks[0].comm, &call, &receive.call, NULL), 0);
    call_begin(s.pair.ranks[0].comm, &receive);
    message_begin(s.pair.ranks[0].comm, &receive);
    (void)add(&s, LARGE);
    start_all(&s);
    run(&s);
    check_all(&s);
    assert_true(remote_reads.count > 0);
    scene_close(&s);
}

static void refuse_at(int number, int code)
{
    struct scene s;
    scene_open(&s, LARGE);
    remote_reads_begin(number, code);
    for (int i = 0; i < 3; i++) {
        (void)add(&s, LARGE);
        (void)add(&s, SMALL);
    }
    start_all(&s);
    run(&s);
    check_all(&s);
    assert_int_equal(remote_reads.count, number);
    (void)add(&s, LARGE);
    (void)add(&s, LARGE);
    for (int i = s.num - 2; i < s.num; i++) {
        start(&s, &s.messages[i], MUSTER_RECV, LARGE);
        start(&s, &s.messages[i], MUSTER_SEND, LARGE);
    }
    move(&s, 0);
    assert_null(s.pair.ranks[0].comm->messages->streams[1].first_offered);
    run(&s);
    check_all(&s);
    assert_int_equal(remote_reads.count, number);
    scene_close(&s);
}

/* Where ranks share processors, each offer needs a context switch. */
static void only_larger_ones_are_offered_where_processors_are_shared(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair, false);
    struct muster_comm *comm = pair.ranks[0].comm;
    comm->tuning = &schedule_tunings[SCHEDULE_INTEL];
    size_t from[2];
    for (int shares = 0; shares < 2; shares++) {
        comm->oversubscribed = shares;
        offer_open(comm);
        from[shares] = comm->messages->offers_from_bytes;
    }
    assert_int_equal(from[0], comm->tuning->offers_from_bytes);
    assert_in_range(from[1], 2 * from[0], SIZE_MAX - 1);
    comm->tuning = &schedule_tunings[SCHEDULE_AMD];
    offer_open(comm);
    assert_true(comm->messages->offers_from_bytes == SIZE_MAX);
    pair_close(&pair);
}

/* The second read is in the middle of a message, the third is of another message. */
static void what_cannot_be_read_comes_through_the_second_ring(void **state)
{
    (void)state;
    refuse_at(1, EPERM);
    refuse_at(2, EFAULT);
    refuse_at(3, EFAULT);
    refuse_at(4, ENOSYS);
}

static void close_sender(void *context)
{
    const struct muster_comm *sender = context;
    atomic_store(&sender->control->closed, 1);
}

static void kill_sender(void *context)
{
    const struct muster_comm *sender = context;
    atomic_fetch_or(&sender->control->heartbeat.owner, FUTEX_OWNER_DIED);
}

static void lose_during_read(void (*loss)(void *sender))
{
    struct scene s;
    scene_open(&s, LARGE);
    (void)add(&s, LARGE);
    (void)add(&s, LARGE);
    start_all(&s);
    move(&s, 0);
    remote_reads.meanwhile = loss;
    for (int i = 0; i < 10; i++) {
        move(&s, 1);
    }
    remote_reads.meanwhile = NULL;
    assert_true(remote_reads.count > 0);
    assert_false(s.messages[0].receive.transfer.ended);
    assert_int_equal(s.pair.ranks[1].comm->messages->streams[0].inbound.done, 0);
    assert_false(s.pair.ranks[1].comm->messages->streams[0].refused);
    scene_close(&s);
}

static void what_was_read_of_a_sender_that_is_gone_does_not_count(void **state)
{
    (void)state;
    lose_during_read(close_sender);
    lose_during_read(kill_sender);
}

static void take_a_part(int failing)
{
    struct scene s;
    scene_open(&s, LARGE);
    remote_reads_begin(failing, EFAULT);
    (void)add(&s, LARGE);
    (void)add(&s, LARGE);
    start(&s, &s.messages[0], MUSTER_RECV, SMALL);
    start(&s, &s.messages[1], MUSTER_RECV, LARGE);
    start(&s, &s.messages[0], MUSTER_SEND, LARGE);
    start(&s, &s.messages[1], MUSTER_SEND, LARGE);
    run(&s);
    assert_true(s.messages[0].receive.transfer.too_big);
    check(&s, 0, SMALL);
    check(&s, 1, LARGE);
    scene_close(&s);
}

static void what_does_not_fit_its_receive_is_left_out(void **state)
{
    (void)state;
    take_a_part(0);
    take_a_part(1);
}

/* The first message has arrived completely before its receive is started, the second one in
 * part. */
static void what_nobody_asked_for_is_kept(void **state)
{
    (void)state;
    struct scene s;
    scene_open(&s, LARGE);
    (void)add(&s, LARGE);
    (void)add(&s, LARGE);
    start(&s, &s.messages[0], MUSTER_SEND, LARGE);
    start(&s, &s.messages[1], MUSTER_SEND, LARGE);
    move(&s, 0);
    const struct inbound *in = &s.pair.ranks[1].comm->messages->streams[0].inbound;
    for (int i = 0; i < TURNS && (in->header.tag != 1 || in->done == 0); i++) {
        move(&s, 1);
    }
    assert_in_range(in->done, 1, LARGE - 1);
    start(&s, &s.messages[1], MUSTER_RECV, LARGE);
    assert_ptr_equal(in->to, &s.messages[1].receive);
    start(&s, &s.messages[0], MUSTER_RECV, LARGE);
    run(&s);
    check_all(&s);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_are_read_out_of_the_senders_memory),
        cmocka_unit_test(one_alone_goes_through_the_ring),
        cmocka_unit_test(few_go_through_the_ring),
        cmocka_unit_test(one_is_offered_by_a_sender_that_receives),
        cmocka_unit_test(only_larger_ones_are_offered_where_processors_are_shared),
        cmocka_unit_test(what_cannot_be_read_comes_through_the_second_ring),
        cmocka_unit_test(what_was_read_of_a_sender_that_is_gone_does_not_count),
        cmocka_unit_test(what_does_not_fit_its_receive_is_left_out),
        cmocka_unit_test(what_nobody_asked_for_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
