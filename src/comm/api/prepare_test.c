/* Checks what a prepared call has: only the fields of its kind, and the values that follow from
 * them. */
#include "comm/api/prepare.h"

#include "base/testing/test.h"
#include "comm/state/call_log.h"

static struct muster_comm *comm;

static int make_comm(void **state)
{
    (void)state;
    struct muster_comm_options alone = MUSTER_COMM_OPTIONS_INIT;
    return muster_comm_create(&alone, &comm, NULL);
}

static int free_comm(void **state)
{
    (void)state;
    muster_comm_free(comm);
    return 0;
}

static const size_t counts[] = {2};
static float in[8], out[8];

static struct muster_call call_of(int kind, int given)
{
    return (struct muster_call){.struct_size = sizeof(struct muster_call),
                                .kind = (enum muster_collective)kind,
                                .type = MUSTER_F32,
                                .in = in,
                                .out = out,
                                .count = 7,
                                .in_counts = given & 1 ? counts : NULL,
                                .out_counts = given & 2 ? counts : NULL};
}

/* An all-gather has only the output's counts, an all-to-all has both, and other calls have none. */
static void a_call_has_only_its_own_fields(void **state)
{
    (void)state;
    for (int kind = 0; kind <= MUSTER_RECV; kind++) {
        for (int given = 0; given < 4; given++) {
            struct muster_call call = call_of(kind, given);
            struct prepared p;
            bool gathers = kind == MUSTER_ALL_GATHER && given & 2;
            bool exchanges = kind == MUSTER_ALL_TO_ALL && given;
            bool one = exchanges && given != 3; /* only one of the two counts */
            assert_int_equal(prepare_call(comm, &call, &p, NULL), one ? MUSTER_EINVAL : 0);
            if (one) {
                continue;
            }
            assert_ptr_equal(p.in_counts, exchanges ? counts : NULL);
            assert_ptr_equal(p.out_counts, gathers || exchanges ? counts : NULL);
            assert_int_equal(p.count, gathers || exchanges || kind == MUSTER_BARRIER ? 0 : 7);
            assert_int_equal(p.bytes, p.count * sizeof(float));
            assert_int_equal(p.total, gathers ? 2 : p.count);
        }
    }
}

/* A receive from a named rank has code of its own, and is prepared as a receive from any rank
 * is. */
static void a_message_is_prepared_alike_from_a_rank_and_from_any(void **state)
{
    (void)state;
    for (int type = 0; type < MUSTER_NUM_TYPES; type++) {
        struct muster_call call = call_of(MUSTER_RECV, 3);
        struct prepared named, any;
        call.type = (enum muster_type)type;
        call.tag = type % 2 ? 5 : MUSTER_ANY_TAG;
        assert_int_equal(prepare_call(comm, &call, &named, NULL), 0);
        call.peer = MUSTER_ANY_SOURCE;
        assert_int_equal(prepare_call(comm, &call, &any, NULL), 0);
        assert_true(named.peer == 0 && any.peer == MUSTER_ANY_SOURCE);
        assert_true(named.kind == any.kind && named.type == any.type && named.op == any.op);
        assert_true(named.tag == any.tag && named.in == any.in && named.out == any.out);
        assert_true(named.count == any.count && named.unit == any.unit);
        assert_true(named.bytes == any.bytes && named.lane == any.lane);
        assert_true(named.shape == any.shape && named.total == any.total);
        assert_true(named.rooted == any.rooted && named.divisor == any.divisor);
        assert_false(named.in_counts || named.out_counts || prepared_reduces(&named));
    }
}

static void expect_fault(struct muster_call call)
{
    struct prepared p;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(prepare_call(comm, &call, &p, &err), MUSTER_EINVAL);
    assert_true(err.text[0] != '\0');
}

static void what_is_wrong_with_a_message_is_found(void **state)
{
    (void)state;
    for (int kind = MUSTER_SEND; kind <= MUSTER_RECV; kind++) {
        struct muster_call good = call_of(kind, 0), bad = good;
        bad.type = (enum muster_type)MUSTER_NUM_TYPES;
        expect_fault(bad);
        bad = good;
        bad.peer = 1;
        expect_fault(bad);
        bad.peer = -2;
        expect_fault(bad);
        bad = good;
        bad.tag = -2;
        expect_fault(bad);
        bad = good;
        bad.count = SIZE_MAX / 4;
        expect_fault(bad);
        bad = good;
        bad.in = bad.out = NULL;
        expect_fault(bad);
    }
    struct muster_call send = call_of(MUSTER_SEND, 0);
    send.peer = MUSTER_ANY_SOURCE;
    expect_fault(send);
    send.peer = 0;
    send.tag = MUSTER_ANY_TAG;
    expect_fault(send);
}

/* The kind and size of a call decide on which lane it runs. */
static void the_lane_follows_from_kind_and_bytes(void **state)
{
    (void)state;
    static float large[SIDE_BYTES / sizeof(float) + 1];
    for (int kind = 0; kind <= MUSTER_RECV; kind++) {
        for (size_t more = 0; more < 2; more++) {
            struct muster_call call = call_of(kind, 0);
            struct prepared p;
            call.in = call.out = large;
            call.count = SIDE_BYTES / sizeof(float) + more;
            assert_int_equal(prepare_call(comm, &call, &p, NULL), 0);
            bool message = kind == MUSTER_SEND || kind == MUSTER_RECV;
            bool side = kind == MUSTER_ALL_GATHER && more == 0;
            assert_int_equal(p.lane, message ? LANE_MESSAGES : side ? LANE_SIDE : LANE_MAIN);
            assert_int_equal(prepared_reduces(&p), types_find_kind(p.kind)->reduces);
        }
    }
}

static void an_operation_that_a_type_lacks_is_refused(void **state)
{
    (void)state;
    for (int type = -1; type <= MUSTER_NUM_TYPES; type++) {
        for (int op = -1; op <= MUSTER_NUM_OPS; op++) {
            struct muster_call call = call_of(MUSTER_ALL_REDUCE, 0);
            struct prepared p;
            call.type = (enum muster_type)type;
            call.op = (enum muster_op)op;
            bool known = types_has_type(call.type) && types_has_op(call.op) &&
                         reduce_find(call.type, call.op);
            struct muster_err err = MUSTER_ERR_INIT;
            assert_int_equal(prepare_call(comm, &call, &p, &err), known ? 0 : MUSTER_EINVAL);
            assert_true(!known || p.unit == muster_type_bytes(call.type));
            bool of_none = types_has_type(call.type) && !types_has_op(call.op);
            assert_int_equal(strstr(err.text, "there is no operation") != NULL, of_none);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_has_only_its_own_fields),
        cmocka_unit_test(a_message_is_prepared_alike_from_a_rank_and_from_any),
        cmocka_unit_test(what_is_wrong_with_a_message_is_found),
        cmocka_unit_test(the_lane_follows_from_kind_and_bytes),
        cmocka_unit_test(an_operation_that_a_type_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, make_comm, free_comm);
}
