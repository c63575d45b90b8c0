/* A Lease is taken, renewed, lost, taken over and given up, with a clock and a server of the
 * test. */
#include "kube/leader/leader_scene.h"

enum { SECOND = ELECTION_RETRY_MS, LEASE_MS = ELECTION_LEASE_S * 1000 };

/* ---- Held ---- */

static void the_first_one_takes_it(void **state)
{
    (void)state;
    json_t *owner = json_pack("{s:s, s:s}", "kind", "PyTorchJob", "uid", "7");
    struct program *a = stand(0, "a", owner);
    json_decref(owner);
    assert_false(leader_has_heard(a->leader) || leader_leads(a->leader));
    assert_true(leader_may_send(a->leader) && leader_may_send(NULL));
    let_pass(0);
    assert_int_equal(a->requests, 2); /* reads the Lease, then creates it */
    assert_int_equal(a->led, 1);
    assert_true(leader_has_heard(a->leader) && leader_leads(a->leader));
    assert_string_equal(a->text[LEADER_LEADS], "host_a holds lease here/work");
    assert_int_equal(leader_changes(a->leader), 0);
    check_holder("host_a", 0);
    assert_string_equal(doc_text(scene.lease, "metadata.ownerReferences.0.uid", ""), "7");
    assert_int_equal(doc_int(scene.lease, "spec.leaseDurationSeconds", 0), ELECTION_LEASE_S);
}

/* The leader sends one request each second; it begins to lead once. */
static void who_has_it_renews_it(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(60 * SECOND);
    assert_int_equal(a->requests, 62);
    assert_int_equal(scene.version, 61);
    assert_string_equal(doc_text(scene.lease, "spec.renewTime", ""), "2026-01-02T03:05:05.678000Z");
    assert_string_equal(doc_text(scene.lease, "spec.acquireTime", ""),
                        "2026-01-02T03:04:05.678000Z");
    check_holder("host_a", 0);
    assert_int_equal(a->led, 1);
    assert_int_equal(a->lost + a->said[LEADER_TROUBLE], 0);
}

static void two_that_begin_at_once_are_one_and_one(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b = stand(1, "b", NULL);
    a->is_cut_off = b->is_cut_off = true;
    let_pass(0);
    answer(a); /* both learn that there is no Lease */
    answer(b);
    answer(b);
    answer(a); /* EEXIST, which is not reported */
    assert_int_equal(b->led, 1);
    a->is_cut_off = b->is_cut_off = false;
    let_pass(10 * SECOND);
    check_holder("host_b", 0);
    assert_int_equal(a->led + a->said[LEADER_TROUBLE] + b->lost, 0);
    assert_int_equal(a->said[LEADER_WAITS], 1);
    assert_string_equal(a->text[LEADER_WAITS], "host_b holds lease here/work");
}

/* ---- Lost ---- */

/* Five seconds after the last answered renewal was sent, however late its answer, nothing is sent
 * any more. The next attempt to send notices this before any timer does. No request waits longer
 * than until then. */
static void it_is_lost_before_anything_is_sent_after_the_deadline(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(3 * SECOND);
    a->is_cut_off = true;
    let_pass(SECOND);
    int64_t end_ms = scene.now_ms + ELECTION_DEADLINE_MS;
    let_pass(3 * SECOND - 1);
    answer(a);
    let_pass(1); /* the next renewal is sent */
    assert_int_equal(a->call.timeout_ms, end_ms - scene.now_ms);
    let_pass(end_ms - scene.now_ms - 1);
    assert_true(leader_may_send(a->leader));
    assert_int_equal(a->lost, 0);
    scene.now_ms = end_ms;
    assert_false(leader_may_send(a->leader));
    assert_int_equal(a->lost, 1);
    time_out(a);
    int requests = a->requests;
    let_pass(60 * SECOND);
    assert_false(leader_may_send(a->leader));
    assert_int_equal(a->lost, 1); /* this is reported once */
    assert_int_equal(a->requests, requests);
}

/* The process was stopped while the answer was on its way: when it gets the answer, the time of the
 * Lease is over. */
static void what_is_won_after_its_deadline_is_asked_for_again(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    a->is_cut_off = true;
    let_pass(0);
    answer(a);
    scene.now_ms += ELECTION_DEADLINE_MS;
    answer(a);
    check_holder("host_a", 0);
    assert_int_equal(a->led + a->said[LEADER_LEADS], 0);
    assert_false(leader_leads(a->leader));
    a->is_cut_off = false;
    let_pass(SECOND);
    assert_int_equal(a->led, 1);
    assert_true(leader_may_send(a->leader));
    assert_int_equal(a->lost, 0);
    check_holder("host_a", 0);
}

/* The renewal from before the loss is answered when the program is a candidate again: this does not
 * begin a new term. */
static void an_answer_from_before_the_loss_does_not_count_after_it(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(0);
    a->is_cut_off = true;
    let_pass(SECOND);
    scene.now_ms += ELECTION_DEADLINE_MS;
    assert_false(leader_may_send(a->leader));
    leader_stand_again(a->leader);
    answer(a);
    assert_int_equal(a->led, 1);
    assert_int_equal(a->lost, 1);
    a->is_cut_off = false;
    let_pass(SECOND);
    assert_int_equal(a->led, 2);
    assert_true(leader_may_send(a->leader));
    assert_int_equal(leader_changes(a->leader), 0); /* no other program has held it */
}

static void a_conflict_is_looked_into(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(0);
    store(scene.lease); /* kubectl has written a label: it is still ours */
    let_pass(SECOND);   /* 409 */
    assert_true(leader_may_send(a->leader));
    let_pass(SECOND);
    check_holder("host_a", 0);
    assert_int_equal(a->lost + a->said[LEADER_TROUBLE], 0);
    write_holder("else_where");
    let_pass(SECOND); /* 409: the new holder is not yet known */
    assert_int_equal(a->lost, 0);
    let_pass(SECOND);
    assert_int_equal(a->lost, 1); /* well before the deadline */
    assert_false(leader_may_send(a->leader));
    check_holder("else_where", 0);
}

/* It is unknown whether the renewal was carried out; it was. */
static void a_renewal_that_breaks_off_is_looked_into(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(0);
    a->is_cut_off = true;
    let_pass(SECOND);
    (void)carry_out(&a->call);
    time_out(a);
    assert_int_equal(a->said[LEADER_TROUBLE], 1);
    assert_string_equal(a->text[LEADER_TROUBLE], "lease here/work: no answer in time");
    a->is_cut_off = false;
    let_pass(10 * SECOND);
    assert_int_equal(a->led, 1);
    assert_int_equal(a->lost, 0);
    assert_int_equal(a->said[LEADER_TROUBLE], 1);
    check_holder("host_a", 0);
}

/* ---- Taken over ---- */

/* The previous holder has sent nothing for three seconds when another program takes the Lease. */
static void another_takes_it_when_it_was_not_renewed_for_its_time(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b = stand(1, "b", NULL);
    let_pass(30 * SECOND);
    assert_int_equal(b->led, 0);
    assert_int_equal(b->said[LEADER_WAITS], 1);
    a->is_cut_off = true;
    let_pass(LEASE_MS - 1); /* it was renewed when these eight seconds began */
    assert_int_equal(a->lost, 1);
    assert_int_equal(b->led, 0);
    check_holder("host_a", 0);
    let_pass(1);
    assert_int_equal(b->led, 1);
    assert_int_equal(leader_changes(b->leader), 1);
    check_holder("host_b", 1);
    time_out(a);
    a->is_cut_off = false;
    leader_stand_again(a->leader);
    let_pass(60 * SECOND);
    assert_int_equal(a->led, 1);
    assert_string_equal(a->text[LEADER_WAITS], "host_b holds lease here/work");
    assert_int_equal(a->said[LEADER_WAITS], 1);
    check_holder("host_b", 1);
    assert_int_equal(b->lost, 0);
}

/* The previous holder was stopped during its renewal: its write comes late, and is refused. */
static void a_renewal_that_comes_late_takes_nothing_back(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b = stand(1, "b", NULL);
    let_pass(0);
    a->is_cut_off = true;
    let_pass(LEASE_MS + SECOND);
    assert_int_equal(b->led, 1);
    answer(a);
    assert_false(leader_may_send(a->leader));
    check_holder("host_b", 1);
    let_pass(10 * SECOND);
    assert_int_equal(b->lost, 0);
}

/* A program that has just started does not know for how long the Lease was not renewed. */
static void who_comes_after_the_end_waits_for_its_time_all_the_same(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b;
    let_pass(0);
    leader_close(a->leader);
    a->leader = NULL;
    let_pass(1000 * SECOND);
    b = stand(1, "b", NULL);
    let_pass(LEASE_MS - 1);
    assert_int_equal(b->led, 0);
    let_pass(1);
    assert_int_equal(b->led, 1);
}

/* A program that is started again under the same name, as by `muster keep`, counts as the same
 * one. */
static void who_is_started_again_by_its_name_has_it_at_once(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(0);
    leader_close(a->leader);
    a->leader = NULL;
    a = stand(0, "a", NULL);
    let_pass(0);
    assert_int_equal(a->led, 2);
    check_holder("host_a", 0);
    assert_int_equal(leader_changes(a->leader), 0);
}

/* ---- Given up ---- */

static void what_is_given_up_is_taken_at_once(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b = stand(1, "b", NULL);
    let_pass(3 * SECOND);
    leader_release(a->leader, note_released);
    assert_int_equal(a->released, 0); /* the write is in progress: it takes at most this time */
    assert_int_equal(a->call.timeout_ms, 2000);
    answer(a);
    assert_int_equal(a->released, 1);
    assert_string_equal(a->text[LEADER_GIVES_UP], "lease here/work: given up");
    check_holder("", 0);
    int requests = a->requests;
    let_pass(SECOND);
    assert_int_equal(a->requests, requests);
    assert_int_equal(b->led, 1);
    check_holder("host_b", 1);
}

static void what_is_under_way_is_awaited_before_it_is_given_up(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    let_pass(0);
    a->is_cut_off = true;
    let_pass(SECOND);
    leader_release(a->leader, note_released);
    assert_int_equal(a->released, 0);
    answer(a); /* answers the renewal */
    check_holder("host_a", 0);
    answer(a);
    check_holder("", 0);
    assert_int_equal(a->released, 1);
}

/* A program that does not hold the Lease, or may have lost it, writes nothing. */
static void the_end_comes_in_any_case(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL), *b = stand(1, "b", NULL);
    let_pass(0);
    leader_release(b->leader, note_released); /* b only waits */
    assert_int_equal(b->released, 1);
    assert_null(b->call.done);
    write_holder("else_where");
    leader_release(a->leader, note_released);
    answer(a); /* 409: the other program's Lease stays */
    assert_int_equal(a->released, 1);
    check_holder("else_where", 0);
}

static void without_memory_it_is_tried_again_and_the_end_comes_too(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    a->without_memory = true;
    let_pass(2 * SECOND);
    assert_int_equal(a->said[LEADER_TROUBLE], 3);
    assert_string_equal(a->text[LEADER_TROUBLE], "no memory for a request");
    a->without_memory = false;
    let_pass(SECOND);
    assert_int_equal(a->led, 1);
    a->without_memory = true;
    leader_release(a->leader, note_released);
    assert_int_equal(a->released, 1);
    check_holder("host_a", 0);
}

static void what_is_under_way_at_the_end_is_cancelled(void **state)
{
    (void)state;
    struct program *a = stand(0, "a", NULL);
    a->is_cut_off = true;
    let_pass(0);
    leader_close(a->leader);
    a->leader = NULL;
    assert_int_equal(a->cancelled, 1);
    leader_close(NULL);
}

/* ---- Names ---- */

/* A name that is longer than the part that is kept is reported once, waited for once, and noticed
 * where another holder was expected. */
static void a_holder_with_a_long_name_is_as_any_other(void **state)
{
    (void)state;
    char name[2 * ELECTION_TEXT_BYTES] = "";
    struct program *a = stand(0, "a", NULL);
    memset(name, 'x', sizeof name - 1);
    let_pass(0);
    write_holder(name);
    let_pass(2 * SECOND);
    assert_int_equal(a->lost, 1);
    leader_stand_again(a->leader);
    let_pass(LEASE_MS - SECOND);
    assert_int_equal(a->said[LEADER_WAITS], 1);
    assert_non_null(strstr(a->text[LEADER_WAITS], "xxx holds lease here/work"));
    assert_int_equal(a->led, 1);
    let_pass(SECOND);
    assert_int_equal(a->led, 2);
    check_holder("host_a", 1);
}

/* At most 127 bytes of a host's name count; a program without a given name has a random number. */
static void our_own_long_name_is_ours(void **state)
{
    (void)state;
    memset(scene.host, 'h', sizeof scene.host - 1);
    struct program *a = stand(0, NULL, NULL), *b = stand(1, NULL, NULL);
    let_pass(10 * SECOND);
    assert_int_equal(a->led, 1);
    assert_int_equal(a->lost, 0);
    assert_int_equal(doc_int(scene.lease, "spec.leaseTransitions", -1), 0);
    assert_int_equal(strlen(doc_text(scene.lease, "spec.holderIdentity", "")), 127 + 1 + 16);
    assert_int_equal(b->led, 0); /* it has another number */
    assert_int_equal(b->said[LEADER_WAITS], 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_one_takes_it),
        TEST(who_has_it_renews_it),
        TEST(two_that_begin_at_once_are_one_and_one),
        TEST(it_is_lost_before_anything_is_sent_after_the_deadline),
        TEST(what_is_won_after_its_deadline_is_asked_for_again),
        TEST(an_answer_from_before_the_loss_does_not_count_after_it),
        TEST(a_conflict_is_looked_into),
        TEST(a_renewal_that_breaks_off_is_looked_into),
        TEST(another_takes_it_when_it_was_not_renewed_for_its_time),
        TEST(a_renewal_that_comes_late_takes_nothing_back),
        TEST(who_comes_after_the_end_waits_for_its_time_all_the_same),
        TEST(who_is_started_again_by_its_name_has_it_at_once),
        TEST(what_is_given_up_is_taken_at_once),
        TEST(what_is_under_way_is_awaited_before_it_is_given_up),
        TEST(the_end_comes_in_any_case),
        TEST(without_memory_it_is_tried_again_and_the_end_comes_too),
        TEST(what_is_under_way_at_the_end_is_cancelled),
        TEST(a_holder_with_a_long_name_is_as_any_other),
        TEST(our_own_long_name_is_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
