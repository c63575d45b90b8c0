/* Checks that the queue returns each key once, in order, never while the key is taken, and later
 * and later after failures. */
#include "base/testing/test.h"
#include "controller/queue.h"

#include <muster/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct queue *q, int64_t now_ms, const char *keys)
{
    char text[64] = "";
    for (const char *key; (key = queue_take(q, now_ms)) != NULL;) {
        assert_true(strlen(text) + strlen(key) < sizeof text);
        strncat(text, key, sizeof text - strlen(text) - 1);
    }
    assert_string_equal(text, keys);
}

static void a_key_is_there_once_and_in_its_order(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    queue_add(&q, "b", 0);
    queue_add(&q, "a", 0);
    queue_add(&q, "b", 0);
    assert_true(queue_next(&q) == INT64_MIN);
    expect(&q, 0, "ba");
    assert_true(queue_next(&q) == INT64_MAX);
    queue_done(&q);
}

static void what_is_added_while_it_is_taken_comes_after_its_release(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    queue_add(&q, "a", 0);
    expect(&q, 0, "a");
    queue_add(&q, "a", 0);
    queue_add(&q, "a", 0);
    expect(&q, 0, "");
    assert_int_equal(queue_busy(&q), 1);
    queue_release(&q, "a", 0);
    expect(&q, 0, "a");
    queue_release(&q, "a", 0);
    expect(&q, 0, "");
    assert_int_equal(queue_busy(&q), 0);
    queue_done(&q);
}

static void a_time_is_waited_for_and_the_earlier_one_counts(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    queue_add_at(&q, "late", 30);
    queue_add_at(&q, "soon", 20);
    queue_add_at(&q, "late", 10);
    queue_add_at(&q, "soon", 50);
    assert_int_equal(queue_next(&q), 10);
    expect(&q, 9, "");
    expect(&q, 10, "late");
    queue_add_at(&q, "late", 15); /* the key is taken: this is kept for later */
    expect(&q, 25, "soon");
    queue_release(&q, "late", 0);
    expect(&q, 25, "late");
    queue_done(&q);
}

static void an_addition_makes_a_time_needless(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    queue_add_at(&q, "a", 100);
    queue_add(&q, "a", 0);
    expect(&q, 0, "a");
    queue_release(&q, "a", 0);
    expect(&q, 200, "");
    queue_done(&q);
}

static void failures_wait_longer_each_time(void **state)
{
    (void)state;
    static const int64_t delays[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000};
    struct queue q;
    queue_init(&q, 10, 100);
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        queue_retry(&q, "a", 0, 1000, 0, false);
        int64_t next = queue_next(&q);
        assert_in_range(next, delays[i], delays[i] * 5 / 4);
        expect(&q, next - 1, "");
        expect(&q, next, "a");
        queue_release(&q, "a", 0);
    }
    queue_succeeded(&q, "a");
    queue_retry(&q, "a", 0, 1000, 0, false);
    assert_in_range(queue_next(&q), 1000, 1250);
    queue_retry(&q, "b", 0, 10, 700, false); /* the server named the time */
    assert_in_range(queue_next(&q), 700, 875);
    queue_done(&q);
}

/* A hundred jobs whose server was away for a while do not return all at once. */
static void what_failed_together_comes_back_apart(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 1000, 100);
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof key, "default/job-%d", i);
        queue_retry(&q, key, 0, 8000, 0, false);
    }
    size_t early = 0;
    while (queue_take(&q, 9000)) {
        early++;
    }
    assert_in_range(early, 30, 70); /* return after 8 to 10 s, about half in the first second */
    queue_done(&q);
}

static void its_size_is_bounded(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 1, 100);
    assert_int_equal(queue_add(&q, "a", 0), 0);
    assert_int_equal(queue_add(&q, "b", 0), MUSTER_ETOOBIG);
    queue_remove(&q, "a");
    assert_int_equal(queue_add_at(&q, "b", 5), 0);
    queue_remove(&q, "b");
    assert_true(queue_next(&q) == INT64_MAX);
    queue_done(&q);
}

/* The queue is compared with a list that is searched completely. */
static void times_come_in_order_whatever_is_added_and_removed(void **state)
{
    (void)state;
    enum { KEYS = 50, ROUNDS = 5000 };
    int64_t at[KEYS];
    struct queue q;
    uint64_t random = 1;
    queue_init(&q, KEYS, 100);
    for (int i = 0; i < KEYS; i++) {
        at[i] = INT64_MAX;
    }
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        int key = (int)(random >> 33) % KEYS;
        int64_t time = (int64_t)(random >> 40) % 1000;
        char name[16];
        snprintf(name, sizeof name, "%d", key);
        if (random >> 60 < 4) {
            queue_remove(&q, name);
            at[key] = INT64_MAX;
        } else {
            queue_add_at(&q, name, time);
            at[key] = time < at[key] ? time : at[key];
        }
        int64_t soonest = INT64_MAX;
        for (int i = 0; i < KEYS; i++) {
            soonest = at[i] < soonest ? at[i] : soonest;
        }
        assert_true(queue_next(&q) == soonest);
    }
    queue_done(&q);
}

static void namespaces_take_turns(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    static const char *const keys[] = {"a/1", "a/2", "a/3", "b/4", "b/5", "c/6"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        queue_add(&q, keys[i], 0);
    }
    queue_remove(&q, "a/2");
    expect(&q, 0, "a/1b/4c/6a/3b/5");
    queue_done(&q);
}

/* One namespace has at most 4 of 5 places, and another one gets the last, however many keys of the
 * first one wait. */
static void one_namespace_does_not_have_all_places(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 5);
    static const char *const keys[] = {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        queue_add(&q, keys[i], 0);
    }
    expect(&q, 0, "a/1a/2a/3a/4");
    assert_true(queue_next(&q) == INT64_MAX);
    queue_add(&q, "b/7", 0);
    assert_true(queue_next(&q) == INT64_MIN);
    expect(&q, 0, "b/7");
    queue_release(&q, "b/7", 0);
    assert_true(queue_next(&q) == INT64_MAX);
    queue_release(&q, "a/2", 0);
    expect(&q, 0, "a/5");
    queue_done(&q);
}

/* This is the case after an outage of an API server. Keys with other failures wait as before. */
static void what_was_not_answered_goes_soon_when_the_server_is_heard(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = {"a", "b", "c"};
        queue_add(&q, keys[i], 0);
        assert_non_null(queue_take(&q, 0));
        queue_retry(&q, keys[i], 0, 60000, 0, i < 2);
        queue_release(&q, keys[i], 0);
    }
    queue_heard(&q, 2000);
    int64_t first_ms = queue_next(&q);
    assert_true(first_ms >= 2000 && first_ms <= 2000 + QUEUE_HEARD_WITHIN_MS);
    assert_non_null(queue_take(&q, 2000 + QUEUE_HEARD_WITHIN_MS));
    assert_non_null(queue_take(&q, 2000 + QUEUE_HEARD_WITHIN_MS));
    assert_null(queue_take(&q, 2000 + QUEUE_HEARD_WITHIN_MS));
    queue_heard(&q, 4000);
    assert_true(queue_next(&q) >= 60000);
    queue_done(&q);
}

/* A key that is added while it is taken waits from then on, as in client-go's workqueue. */
static void it_is_counted_how_long_keys_wait_and_are_worked_on(void **state)
{
    (void)state;
    struct queue q;
    queue_init(&q, 10, 100);
    queue_add(&q, "a", 1000);
    expect(&q, 1500, "a"); /* it waited for 500 ms */
    queue_add(&q, "a", 1600);
    queue_add(&q, "a", 1700);
    queue_release(&q, "a", 3500); /* it was worked on for 2000 ms */
    expect(&q, 3600, "a");        /* it waited for 2000 ms */
    queue_add_at(&q, "b", 5000);
    expect(&q, 5003, "b"); /* it waited for 3 ms */
    queue_release(&q, "a", 4600);
    assert_true(q.waited.sum_ms == 2503 && q.worked.sum_ms == 3000);
    assert_true(q.waited.within[6] == 1 && q.waited.within[8] == 1 && q.waited.within[9] == 1);
    assert_true(q.worked.within[8] == 1 && q.worked.within[9] == 1);
    queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_take_turns),
        cmocka_unit_test(one_namespace_does_not_have_all_places),
        cmocka_unit_test(what_was_not_answered_goes_soon_when_the_server_is_heard),
        cmocka_unit_test(it_is_counted_how_long_keys_wait_and_are_worked_on),
        cmocka_unit_test(a_key_is_there_once_and_in_its_order),
        cmocka_unit_test(what_is_added_while_it_is_taken_comes_after_its_release),
        cmocka_unit_test(a_time_is_waited_for_and_the_earlier_one_counts),
        cmocka_unit_test(an_addition_makes_a_time_needless),
        cmocka_unit_test(failures_wait_longer_each_time),
        cmocka_unit_test(what_failed_together_comes_back_apart),
        cmocka_unit_test(its_size_is_bounded),
        cmocka_unit_test(times_come_in_order_whatever_is_added_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
