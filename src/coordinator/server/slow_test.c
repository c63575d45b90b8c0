/* Checks which worker is named as slow, with made-up progress. */
#include "base/testing/test.h"
#include "coordinator/server/slow.h"

enum { WORKERS = 4, MS = 1000000 };

struct scene {
    struct slow_worker workers[WORKERS];
    struct slow_worker *list[WORKERS];
    uint64_t version;
    uint64_t generation;
    uint64_t records[WORKERS];
    int named; /* the worker that was named last; -1: none */
};

static void begin(struct scene *s)
{
    *s = (struct scene){.generation = 1, .named = -1};
    for (int i = 0; i < WORKERS; i++) {
        s->list[i] = &s->workers[i];
    }
}

static void on_named(void *data, size_t index)
{
    ((struct scene *)data)->named = (int)index;
}

/* Lets a second pass, in which worker i needs own[i] milliseconds of a step for shares[i]
 * records. */
static void second(struct scene *s, const uint64_t own[WORKERS], const uint64_t shares[WORKERS])
{
    s->version += 10;
    for (int i = 0; i < WORKERS; i++) {
        s->records[i] += 10 * shares[i];
        const struct wire_progress told = {.generation = s->generation,
                                           .version = s->version,
                                           .records = s->records[i],
                                           .step_ns = 100 * MS,
                                           .wait_ns = (100 - own[i]) * MS};
        slow_hear(&s->workers[i], &told);
    }
    slow_look(s->list, WORKERS, s->generation, on_named, s);
}

static const uint64_t equal[WORKERS] = {8, 8, 8, 8};

static void a_slow_one_is_named_after_some_seconds(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    for (int i = 0; i < SLOW_LOOKS; i++) {
        second(&s, (uint64_t[]){20, 20, 60, 21}, equal);
        assert_int_equal(s.named, -1);
    }
    second(&s, (uint64_t[]){20, 20, 60, 21}, equal);
    assert_int_equal(s.named, 2);
    assert_true(s.workers[2].times > 2.9 && s.workers[2].times < 3.1);
    assert_true(s.workers[2].lag_ms > 39 && s.workers[2].lag_ms < 41);
    second(&s, (uint64_t[]){20, 20, 28, 21}, equal); /* too little to be named: it stays named */
    assert_true(s.workers[2].named);
    second(&s, (uint64_t[]){20, 20, 24, 21}, equal);
    assert_false(s.workers[2].named);
}

/* Four workers share five micro-batches, so one of them has two. */
static void who_has_more_to_do_is_not_slow(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    for (int i = 0; i < 3 * SLOW_LOOKS; i++) {
        second(&s, (uint64_t[]){20, 20, 20, 40}, (uint64_t[]){8, 8, 8, 16});
    }
    assert_int_equal(s.named, -1);
}

static void a_moment_or_a_trifle_names_nobody(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    for (int i = 0; i < 5 * SLOW_LOOKS; i++) {
        second(&s, (uint64_t[]){20, 20, i % SLOW_LOOKS ? 60 : 20, 21}, equal);
        assert_int_equal(s.named, -1);
    }
    for (int i = 0; i < 3 * SLOW_LOOKS; i++) {
        second(&s, (uint64_t[]){1, 1, 2, 1}, equal);
    }
    assert_int_equal(s.named, -1);
}

/* Times that were measured with other shares do not count. */
static void a_generation_begins_anew(void **state)
{
    (void)state;
    struct scene s;
    begin(&s);
    for (int i = 0; i < 2 * SLOW_LOOKS; i++) {
        second(&s, (uint64_t[]){20, 20, 60, 21}, equal);
    }
    assert_true(s.workers[2].named);
    s.generation = 2;
    second(&s, (uint64_t[]){20, 20, 60, 21}, equal);
    assert_false(s.workers[2].named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_one_is_named_after_some_seconds),
        cmocka_unit_test(who_has_more_to_do_is_not_slow),
        cmocka_unit_test(a_moment_or_a_trifle_names_nobody),
        cmocka_unit_test(a_generation_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
