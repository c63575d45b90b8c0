/* Checks which message is given to which receive. */
#include "comm/messages/matching.h"

#include "base/testing/test.h"

#include <stdlib.h>

enum { ANY = -1 };

static struct task receive(int from, int tag, char *out, size_t bytes)
{
    return (struct task){
        .call = {.kind = MUSTER_RECV, .peer = from, .tag = tag, .out = out, .bytes = bytes}};
}

static struct muster_message message(int from, int tag, size_t bytes)
{
    return (struct muster_message){.source = from, .tag = tag, .size_bytes = bytes};
}

static void queue(struct matching *m, int from, int tag, const char *text)
{
    struct muster_message what = message(from, tag, strlen(text));
    struct unexpected *u = matching_make_room(m, &what);
    assert_non_null(u);
    memcpy(u->data, text, strlen(text));
    matching_queue(m, u);
}

static void the_first_posted_receive_that_fits(void **state)
{
    (void)state;
    struct matching m = {0};
    struct task tasks[] = {receive(1, 5, NULL, 0), receive(ANY, 7, NULL, 0),
                           receive(2, ANY, NULL, 0), receive(ANY, ANY, NULL, 0),
                           receive(1, 5, NULL, 0)};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        matching_post(&m, &tasks[i]);
    }
    /* source, tag, the receive that gets the message */
    static const int come[][3] = {{2, 7, 1}, {2, 7, 2},   {1, 5, 0},
                                  {1, 5, 3}, {1, 6, ANY}, {1, 5, 4}};
    for (size_t i = 0; i < sizeof come / sizeof come[0]; i++) {
        struct muster_message what = message(come[i][0], come[i][1], i);
        struct task *found = matching_take_posted(&m, &what);
        assert_ptr_equal(found, come[i][2] < 0 ? NULL : &tasks[come[i][2]]);
        assert_true(!found || found->transfer.message.size_bytes == i);
    }
    assert_null(m.posted);
    struct task last = receive(1, 1, NULL, 0);
    matching_post(&m, &last);
    assert_ptr_equal(m.posted, &last);
}

static void the_first_message_that_fits(void **state)
{
    (void)state;
    struct matching m = {0};
    char out[8];
    queue(&m, 1, 5, "a");
    queue(&m, 2, 5, "bb");
    queue(&m, 1, 6, "ccc");
    queue(&m, 1, 5, "dddd");
    /* source, tag, length of the message that the receive gets (0: none) */
    static const int asked[][3] = {{3, ANY, 0}, {1, 6, 3},   {2, 6, 0},     {1, ANY, 1},
                                   {1, 5, 4},   {1, ANY, 0}, {ANY, ANY, 2}, {ANY, ANY, 0}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct task task = receive(asked[i][0], asked[i][1], out, sizeof out);
        assert_int_equal(matching_take_unexpected(&m, &task), asked[i][2] > 0);
        assert_int_equal(task.transfer.ended, asked[i][2] > 0);
        assert_int_equal(task.transfer.message.size_bytes, asked[i][2]);
        assert_true(asked[i][2] == 0 || out[asked[i][2] - 1] == 'a' + asked[i][2] - 1);
    }
    assert_int_equal(m.unexpected_bytes, 0);
    queue(&m, 1, 1, "e"); /* the queue's end is right after the last message was taken */
    assert_ptr_equal(m.unexpected, m.last_unexpected);
    matching_done(&m);
    assert_int_equal(m.unexpected_bytes, 0);
}

static void a_message_that_is_too_long(void **state)
{
    (void)state;
    struct matching m = {0};
    char out[4] = "....";
    queue(&m, 0, 0, "long");
    struct task task = receive(0, 0, out, 2);
    assert_true(matching_take_unexpected(&m, &task));
    assert_true(task.transfer.too_big && task.transfer.ended);
    assert_memory_equal(out, "lo..", 4);
}

static void what_is_unexpected_has_a_limit(void **state)
{
    (void)state;
    struct matching m = {0};
    struct muster_message most = message(0, 0, UNEXPECTED_LIMIT_BYTES), one = message(0, 0, 1);
    struct unexpected *all = matching_make_room(&m, &most);
    assert_non_null(all);
    assert_null(matching_make_room(&m, &one));
    matching_free_room(&m, all);
    all = matching_make_room(&m, &one);
    assert_non_null(all);
    matching_free_room(&m, all);
    assert_int_equal(m.unexpected_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_posted_receive_that_fits),
        cmocka_unit_test(the_first_message_that_fits),
        cmocka_unit_test(a_message_that_is_too_long),
        cmocka_unit_test(what_is_unexpected_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
