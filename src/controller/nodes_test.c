/* Checks nodes that do not answer: what is kept of them, and how long they have been silent. */
#include "base/testing/test_doc.h"
#include "controller/nodes.h"

#include <stdlib.h>

static json_t *make_node(const char *name, const char *ready, const char *since, bool tainted)
{
    json_t *node =
        json_pack("{s:{s:s}, s:{s:[{s:s, s:s, s:s}]}}", "metadata", "name", name, "status",
                  "conditions", "type", "Ready", "status", ready, "lastTransitionTime", since);
    if (tainted) {
        doc_set(node, "spec.taints", parse("[{'key': 'node.kubernetes.io/out-of-service'}]"));
    }
    return node;
}

static bool put(struct nodes *nodes, const char *name, const char *ready, const char *since,
                bool tainted, int64_t now_ms)
{
    json_t *node = make_node(name, ready, since, tainted);
    bool changed = nodes_put(nodes, node, now_ms);
    json_decref(node);
    return changed;
}

/* Returns silent_ms of the only node; -2 if there is none. */
static int64_t silent_ms(const struct nodes *nodes, int64_t now_ms)
{
    size_t count;
    struct control_node *list = nodes_view(nodes, now_ms, &count);
    int64_t ms = count == 1 ? list[0].silent_ms : -2;
    free(list);
    return ms;
}

static void a_silence_is_counted_from_when_it_was_first_seen(void **state)
{
    (void)state;
    struct nodes nodes = {0};
    assert_false(put(&nodes, "n", "True", "1", false, 100));
    assert_int_equal(silent_ms(&nodes, 100), -2);
    assert_true(put(&nodes, "n", "Unknown", "2", false, 1000));
    assert_false(put(&nodes, "n", "Unknown", "2", false, 5000)); /* the same state, shown again */
    assert_int_equal(silent_ms(&nodes, 6000), 5000);
    assert_true(put(&nodes, "n", "Unknown", "2", true, 7000)); /* the same silence, with a taint */
    assert_int_equal(silent_ms(&nodes, 8000), 7000);
    assert_true(put(&nodes, "n", "Unknown", "3", true, 9000)); /* it was back between the views */
    assert_int_equal(silent_ms(&nodes, 9500), 500);
    assert_true(put(&nodes, "n", "False", "4", true, 10000));
    assert_int_equal(silent_ms(&nodes, 10000), -1);
    assert_true(put(&nodes, "n", "True", "5", true, 11000));
    assert_int_equal(silent_ms(&nodes, 11000), -2);
    nodes_done(&nodes);
}

static void what_a_listing_has_not_is_forgotten(void **state)
{
    (void)state;
    struct nodes nodes = {0};
    put(&nodes, "a", "Unknown", "1", false, 0);
    put(&nodes, "b", "Unknown", "1", false, 0);
    nodes_begin(&nodes);
    assert_false(put(&nodes, "b", "Unknown", "1", false, 0));
    assert_true(nodes_synced(&nodes));
    assert_int_equal(silent_ms(&nodes, 10), 10); /* of node b */
    json_t *node = make_node("b", "Unknown", "1", false);
    assert_true(nodes_remove(&nodes, node));
    assert_false(nodes_remove(&nodes, node));
    json_decref(node);
    assert_false(nodes_synced(&nodes));
    nodes_done(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silence_is_counted_from_when_it_was_first_seen),
        cmocka_unit_test(what_a_listing_has_not_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
