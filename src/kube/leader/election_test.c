/* Which candidate leads, and until when. */
#include "kube/leader/election.h"

#include "base/doc.h"
#include "base/testing/test.h"

#include <stdio.h>
#include <string.h>

enum { NOW = 1000000, LEASE_MS = ELECTION_LEASE_S * 1000 };

static const int64_t unix_ms = 1767323045678; /* 2026-01-02T03:04:05.678Z */

static struct election candidate(const char *identity)
{
    struct election e = {0};
    (void)snprintf(e.identity, sizeof e.identity, "%s", identity);
    return e;
}

/* Returns the Lease that the candidate would write; NULL: it waits. */
static json_t *step(struct election *e, const json_t *lease, int64_t now_ms)
{
    enum election_do what = ELECTION_WAIT;
    json_t *body = NULL;
    assert_int_equal(election_step(e, lease, now_ms, unix_ms + now_ms - NOW, &what, &body), 0);
    assert_int_equal(what, !body ? ELECTION_WAIT : lease ? ELECTION_REPLACE : ELECTION_CREATE);
    return body;
}

static void assert_holder(const json_t *lease, const char *holder, int64_t changes)
{
    assert_string_equal(doc_text(lease, "spec.holderIdentity", "?"), holder);
    assert_int_equal(doc_int(lease, "spec.leaseTransitions", -1), changes);
}

static void the_first_one_makes_it_and_renews_it(void **state)
{
    (void)state;
    struct election a = candidate("a");
    json_t *lease = step(&a, NULL, NOW);
    assert_holder(lease, "a", 0);
    assert_string_equal(doc_text(lease, "spec.acquireTime", ""), "2026-01-02T03:04:05.678000Z");
    assert_int_equal(doc_int(lease, "spec.leaseDurationSeconds", 0), ELECTION_LEASE_S);
    json_t *renewed = step(&a, lease, NOW + 1000);
    assert_holder(renewed, "a", 0);
    assert_string_equal(doc_text(renewed, "spec.acquireTime", ""), "2026-01-02T03:04:05.678000Z");
    assert_string_equal(doc_text(renewed, "spec.renewTime", ""), "2026-01-02T03:04:06.678000Z");
    json_decref(lease);
    json_decref(renewed);
}

static void another_waits_while_it_changes(void **state)
{
    (void)state;
    struct election a = candidate("a"), b = candidate("b");
    json_t *lease = step(&a, NULL, NOW);
    assert_null(step(&b, lease, NOW + 10));
    assert_null(step(&b, lease, NOW + 9 + LEASE_MS));
    json_t *renewed = step(&a, lease, NOW + 1000);
    assert_null(step(&b, renewed, NOW + 10 + LEASE_MS)); /* the Lease has changed */
    assert_null(step(&b, renewed, NOW + 9 + 2 * LEASE_MS));
    json_t *taken = step(&b, renewed, NOW + 10 + 2 * LEASE_MS);
    assert_holder(taken, "b", 1);
    assert_null(step(&a, taken, NOW + 11 + 2 * LEASE_MS));
    json_decref(lease);
    json_decref(renewed);
    json_decref(taken);
}

/* The holder may be another program, whose name may be any text. */
static void a_holder_with_a_long_name_is_waited_for_once(void **state)
{
    (void)state;
    char name[2 * ELECTION_TEXT_BYTES] = "";
    memset(name, 'x', sizeof name - 1);
    struct election b = candidate("b");
    json_t *lease =
        json_pack("{s:{s:s, s:s, s:i}}", "spec", "holderIdentity", name, "renewTime",
                  "2026-01-02T03:04:05.678000Z", "leaseDurationSeconds", ELECTION_LEASE_S);
    assert_null(step(&b, lease, NOW));
    assert_null(step(&b, lease, NOW + LEASE_MS - 1));
    json_t *taken = step(&b, lease, NOW + LEASE_MS);
    assert_holder(taken, "b", 1);
    json_decref(lease);
    json_decref(taken);
}

/* A leader is silent well before the next one may begin. */
static void who_leads_has_a_deadline(void **state)
{
    (void)state;
    struct election a = candidate("a");
    assert_true(election_may_send(&a, NOW));
    election_won(&a, NOW);
    assert_true(election_may_send(&a, NOW + ELECTION_DEADLINE_MS - 1));
    assert_false(election_may_send(&a, NOW + ELECTION_DEADLINE_MS));
    assert_true(ELECTION_DEADLINE_MS + ELECTION_RETRY_MS < LEASE_MS);
    election_won(&a, NOW + 1000);
    assert_true(election_may_send(&a, NOW + ELECTION_DEADLINE_MS));
}

static void what_was_released_is_taken_at_once(void **state)
{
    (void)state;
    struct election a = candidate("a"), b = candidate("b");
    json_t *lease = step(&a, NULL, NOW);
    assert_null(step(&b, lease, NOW + 10));
    json_t *released = election_release(lease, unix_ms);
    json_t *taken = step(&b, released, NOW + 20);
    assert_holder(taken, "b", 1);
    json_decref(lease);
    json_decref(released);
    json_decref(taken);
}

/* Other programs may have written a Lease with any duration and any text. */
static void strange_leases(void **state)
{
    (void)state;
    struct election b = candidate("b");
    json_t *lease =
        json_pack("{s:{s:s, s:i}}", "spec", "holderIdentity", "x", "leaseDurationSeconds", -7);
    assert_null(step(&b, lease, NOW));
    json_object_set_new(json_object_get(lease, "spec"), "leaseDurationSeconds",
                        json_integer(1LL << 60));
    assert_null(step(&b, lease, NOW + LEASE_MS));
    json_t *taken = step(&b, lease, NOW + 3600 * 1000);
    assert_holder(taken, "b", 1);
    json_decref(taken);
    json_object_clear(lease);
    taken = step(&b, lease, NOW);
    assert_holder(taken, "b", 1);
    json_decref(taken);
    json_decref(lease);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_makes_it_and_renews_it),
        cmocka_unit_test(another_waits_while_it_changes),
        cmocka_unit_test(a_holder_with_a_long_name_is_waited_for_once),
        cmocka_unit_test(who_leads_has_a_deadline),
        cmocka_unit_test(what_was_released_is_taken_at_once),
        cmocka_unit_test(strange_leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
