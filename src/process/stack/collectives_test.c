/* Which collectives hang, found from reports. */
#include "process/stack/collectives.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <stdio.h>
#include <stdlib.h>

/* Makes a report of ranks "RANK NUMBER in|out", with the call of group g. */
static json_t *make_report(const char *const *ranks, int size)
{
    json_t *report = json_array();
    for (; *ranks; ranks++) {
        int rank, number;
        char inside[8];
        assert_int_equal(sscanf(*ranks, "%d %d %7s", &rank, &number, inside), 3);
        json_array_append_new(report,
                              json_pack("{s:i, s:[{s:s, s:s, s:[{s:s, s:i, s:i, s:i, s:s, s:b}]}]}",
                                        "rank", rank, "processes", "state", "sleeping", "where",
                                        "train.py:17 in slow", "calls", "group", "g", "rank", rank,
                                        "size", size, "number", number, "call", "barrier", "inside",
                                        strcmp(inside, "in") == 0));
    }
    return report;
}

static void expect(const char *const *ranks, int size, const char *line)
{
    muster_auto(doc) json_t *report = make_report(ranks, size);
    muster_auto(doc) json_t *lines = collectives_describe(report);
    assert_int_equal(json_array_size(lines), line != NULL);
    if (line) {
        assert_string_equal(json_string_value(json_array_get(lines, 0)), line);
    }
}

static void who_waits_and_who_is_missing(void **state)
{
    (void)state;
    expect((const char *[]){"2 5 in", "1 4 out", "0 5 in", NULL}, 3,
           "barrier (call 5): ranks 0, 2 wait; rank 1 is missing: in no call since call 4, "
           "barrier, sleeping at train.py:17 in slow");
    expect((const char *[]){"0 5 in", "1 3 in", NULL}, 2,
           "barrier (call 5): rank 0 waits; rank 1 is missing: in call 3, barrier, sleeping at "
           "train.py:17 in slow");
}

static void nobody_is_inside(void **state)
{
    (void)state;
    expect((const char *[]){"0 5 out", "1 5 out", NULL}, 2, NULL);
    expect((const char *[]){NULL}, 2, NULL);
}

static void all_are_inside(void **state)
{
    (void)state;
    expect((const char *[]){"0 5 in", "1 5 in", NULL}, 2, "barrier (call 5): all ranks are in it");
}

/* A root may leave a broadcast before the others have it. */
static void who_has_left_is_not_missing(void **state)
{
    (void)state;
    expect((const char *[]){"0 5 out", "1 5 in", NULL}, 2, "barrier (call 5): rank 1 waits");
}

static void ranks_that_have_ended(void **state)
{
    (void)state;
    expect((const char *[]){"0 5 in", NULL}, 3,
           "barrier (call 5): rank 0 waits; 2 of its 3 ranks have no process here");
}

static void of_one_rank(void **state)
{
    (void)state;
    muster_auto(doc) json_t *report = make_report((const char *[]){"0 5 in", "1 4 out", NULL}, 2);
    muster_auto(free) char *first = collectives_of_rank(report, 0);
    muster_auto(free) char *second = collectives_of_rank(report, 1);
    assert_non_null(strstr(first, "rank 1 is missing"));
    assert_null(second);
}

/* torchrun in rank 0 of the job: the processes are named by their ranks in the communicator. */
static void several_in_one_rank(void **state)
{
    (void)state;
    muster_auto(doc) json_t *report = make_report((const char *[]){"0 5 in", "1 4 out", NULL}, 2);
    json_t *all = json_array();
    size_t i;
    json_t *attempt;
    json_array_foreach (report, i, attempt) {
        json_array_extend(all, json_object_get(attempt, "processes"));
    }
    muster_auto(doc) json_t *one = json_pack("[{s:i, s:o}]", "rank", 0, "processes", all);
    muster_auto(doc) json_t *lines = collectives_describe(one);
    muster_auto(free) char *first = collectives_of_rank(one, 0);
    const char *line = json_string_value(json_array_get(lines, 0));
    assert_non_null(strstr(line, "rank 0 waits; rank 1 is missing: in no call since call 4"));
    assert_string_equal(line, first);
}

/* Reports come over a socket, so they may contain anything. */
static void nonsense_is_nothing(void **state)
{
    (void)state;
    muster_auto(doc) json_t *report = parse("[1, {'processes': 3}, {'processes': [{'calls': "
                                            "[null, 7, {'inside': 'yes'}]}]}]");
    muster_auto(doc) json_t *lines = collectives_describe(report);
    assert_int_equal(json_array_size(lines), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_and_who_is_missing),
        cmocka_unit_test(nobody_is_inside),
        cmocka_unit_test(all_are_inside),
        cmocka_unit_test(who_has_left_is_not_missing),
        cmocka_unit_test(ranks_that_have_ended),
        cmocka_unit_test(of_one_rank),
        cmocka_unit_test(several_in_one_rank),
        cmocka_unit_test(nonsense_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
