/* The queue: which request is first, how long a request waits, and which one is too late. */
#include "base/testing/test.h"
#include "kube/pace/queue.h"

enum { MS = 1000000, ITEMS = 6 };

struct scene {
    struct pace q;
    struct pace_item items[ITEMS];
    int64_t wake_ms;
};

static void start(struct scene *s, double qps, int burst, int under_way_max)
{
    *s = (struct scene){0};
    pace_init(&s->q, qps, burst, under_way_max);
    for (int i = 0; i < ITEMS; i++) {
        s->items[i].deadline_ms = PACE_NEVER;
    }
}

static void add(struct scene *s, int i, int lane)
{
    s->items[i].lane = lane;
    assert_true(pace_add(&s->q, &s->items[i]));
}

/* Returns which item is sent at that time; -1: none. */
static int next(struct scene *s, int64_t at_ms)
{
    struct pace_item *item = pace_next(&s->q, at_ms * MS, &s->wake_ms);
    return item ? (int)(item - s->items) : -1;
}

static void urgent_lanes_go_first(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 100);
    add(&s, 0, 3);
    add(&s, 1, 2);
    add(&s, 2, 2);
    add(&s, 3, 1);
    add(&s, 4, 0);
    assert_int_equal(next(&s, 0), 4);
    assert_int_equal(next(&s, 0), 3);
    assert_int_equal(next(&s, 0), 1);
    assert_int_equal(next(&s, 0), 2);
    assert_int_equal(next(&s, 0), 0);
    assert_int_equal(next(&s, 0), -1);
    assert_true(s.wake_ms == PACE_NEVER);
}

static void without_a_token_only_the_lease_goes(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 10, 1, 100);
    add(&s, 0, 1);
    add(&s, 1, 1);
    add(&s, 2, 0);
    assert_int_equal(next(&s, 1000), 2);
    assert_int_equal(next(&s, 1000), 0);
    assert_int_equal(next(&s, 1000), -1);
    assert_int_equal(s.wake_ms, 1100);
    assert_int_equal(next(&s, 1100), 1);
}

/* Events do not take the token that a job's write waits for, nor its place. */
static void few_are_under_way(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 1);
    s.items[3].is_stream = true;
    add(&s, 0, 3);
    add(&s, 1, 1);
    add(&s, 2, 0);
    add(&s, 3, 2);
    assert_int_equal(next(&s, 0), 2);
    assert_int_equal(next(&s, 0), 1);
    assert_int_equal(next(&s, 0), 3); /* a watch is a long request, and does not count */
    assert_int_equal(next(&s, 0), -1);
    pace_remove(&s.q, &s.items[2]);
    pace_remove(&s.q, &s.items[3]);
    assert_int_equal(next(&s, 0), -1);
    pace_remove(&s.q, &s.items[1]);
    assert_int_equal(next(&s, 0), 0);
}

static void what_waits_comes_back_when_it_is_due(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 1);
    add(&s, 0, 1);
    add(&s, 1, 1);
    assert_int_equal(next(&s, 0), 0);
    pace_wait(&s.q, &s.items[0], 50); /* it is not under way any more */
    assert_int_equal(next(&s, 0), 1);
    pace_remove(&s.q, &s.items[1]);
    assert_int_equal(next(&s, 49), -1);
    assert_int_equal(s.wake_ms, 50);
    assert_int_equal(next(&s, 50), 0);
}

static void who_is_late_is_taken_out(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 1, 1, 100);
    s.items[0].deadline_ms = s.items[2].deadline_ms = 2000;
    s.items[1].deadline_ms = 1000;
    s.items[3].deadline_ms = 1500;
    for (int i = 0; i < 4; i++) {
        add(&s, i, 1);
    }
    assert_int_equal(next(&s, 500), 0);
    pace_wait(&s.q, &s.items[2], 1900);
    assert_int_equal(next(&s, 500), -1);
    assert_int_equal(s.wake_ms, 1000);
    assert_ptr_equal(pace_late(&s.q, 999), NULL);
    assert_ptr_equal(pace_late(&s.q, 1000), &s.items[1]);
    assert_ptr_equal(pace_late(&s.q, 1000), NULL);
    assert_int_equal(next(&s, 1400), -1);
    assert_int_equal(s.wake_ms, 1500);
    assert_ptr_equal(pace_late(&s.q, 3000), &s.items[2]);
    assert_ptr_equal(pace_late(&s.q, 3000), &s.items[3]);
    assert_ptr_equal(pace_late(&s.q, 3000), NULL); /* a sent request has its own limit */
    pace_remove(&s.q, &s.items[0]);
    assert_int_equal(s.q.count, 0);
    assert_int_equal(s.q.under_way, 0);
}

/* A watch that was a stream reads pages next: its present kind counts when it is sent again. */
static void what_was_a_stream_may_become_none(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 1);
    s.items[0].is_stream = true;
    add(&s, 0, 1);
    assert_int_equal(next(&s, 0), 0);
    s.items[0].is_stream = false;
    pace_wait(&s.q, &s.items[0], 0);
    assert_int_equal(next(&s, 0), 0);
    assert_int_equal(s.q.under_way, 1);
    s.items[0].is_stream = true;
    pace_remove(&s.q, &s.items[0]);
    assert_int_equal(s.q.under_way, 0);
}

static void mark(struct scene *s, const char *groups)
{
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; groups[i]; i++) {
        s->items[i].group = names[groups[i] - 'a'];
    }
}

static void groups_take_turns_in_a_lane(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 100);
    mark(&s, "aaabbc");
    for (int i = 0; i < ITEMS; i++) {
        add(&s, i, 2);
    }
    pace_remove(&s.q, &s.items[1]);
    const int wanted[] = {0, 3, 5, 2, 4, -1};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(next(&s, 0), wanted[i]);
    }
}

/* One group gets 4 of 5 places, and another group the last, however many items of the first group
 * wait. */
static void one_group_does_not_have_all_that_are_under_way(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 5);
    mark(&s, "aaaaab");
    for (int i = 0; i < ITEMS; i++) {
        add(&s, i, i < 5 ? 1 : 3);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(next(&s, 0), i);
    }
    assert_int_equal(next(&s, 0), 5);
    assert_int_equal(next(&s, 0), -1);
    pace_remove(&s.q, &s.items[5]);
    assert_int_equal(next(&s, 0), -1);
    pace_remove(&s.q, &s.items[2]);
    assert_int_equal(next(&s, 0), 4);
}

static void those_behind_the_first_of_their_group_are_late_too(void **state)
{
    (void)state;
    struct scene s;
    start(&s, 0, 0, 1);
    mark(&s, "aaa");
    s.items[2].deadline_ms = 50;
    for (int i = 0; i < 3; i++) {
        add(&s, i, 2);
    }
    assert_int_equal(next(&s, 0), 0);
    assert_int_equal(next(&s, 0), -1);
    assert_int_equal(s.wake_ms, 50);
    assert_null(pace_late(&s.q, 49));
    assert_ptr_equal(pace_late(&s.q, 50), &s.items[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_take_turns_in_a_lane),
        cmocka_unit_test(one_group_does_not_have_all_that_are_under_way),
        cmocka_unit_test(those_behind_the_first_of_their_group_are_late_too),
        cmocka_unit_test(urgent_lanes_go_first),
        cmocka_unit_test(without_a_token_only_the_lease_goes),
        cmocka_unit_test(few_are_under_way),
        cmocka_unit_test(what_waits_comes_back_when_it_is_due),
        cmocka_unit_test(who_is_late_is_taken_out),
        cmocka_unit_test(what_was_a_stream_may_become_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
