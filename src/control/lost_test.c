/* Checks pods whose node is lost: which are replaced, by force, and when; and which are not,
 * because their containers may still run. */
#include "control/projection/node.h"
#include "control/scene.h"

enum { LIMIT_MS = 60000 };

static json_t *add_on_node(struct scene *s, const char *phase, const char *node, bool terminating)
{
    json_t *pod = add_pod(s, "Worker", 0, phase);
    if (node) {
        doc_set_text(pod, "spec.nodeName", node);
    }
    if (terminating) {
        doc_set_text(pod, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
    }
    return pod;
}

/* Opens a scene with a job that has started, and that has one Worker. */
static void open_on_node(struct scene *s, const struct control_node *node, int64_t lost_after_ms)
{
    open_scene(s, make_job(false, 1, "Never", "{}"));
    doc_set_text(s->job, "status.startTime", "2026-01-01T00:00:00Z");
    s->node = *node;
    s->lost_after_ms = lost_after_ms;
}

#define TAINTED .out_of_service = true, .silent_ms = -1, .since = ""
#define SILENT(ms) .silent_ms = (ms), .since = "t"
#define ANSWERS .silent_ms = -1, .since = "t"

static const struct {
    const char *what;
    struct control_node node;
    int64_t lost_after_ms;
    const char *phase, *on;
    bool terminating, lost;
} table[] = {
    {"the taint", {"n", TAINTED}, 0, "Running", "n", false, true},
    {"the taint, and it is on its way out", {"n", TAINTED}, 0, "Running", "n", true, true},
    {"the taint, and it had not started", {"n", TAINTED}, 0, "Pending", "n", false, false},
    {"nor had it, and it was evicted", {"n", TAINTED}, 0, "Pending", "n", true, true},
    {"the taint of another node", {"m", TAINTED}, 0, "Running", "n", true, false},
    {"no node yet", {"n", TAINTED}, LIMIT_MS, "Pending", NULL, false, false},
    {"it has ended by itself", {"n", TAINTED}, LIMIT_MS, "Succeeded", "n", false, false},
    {"it has ended, and is on its way out", {"n", TAINTED}, 0, "Failed", "n", true, true},
    {"no limit", {"n", SILENT(LIMIT_MS * 99)}, 0, "Running", "n", true, false},
    {"before the limit", {"n", SILENT(LIMIT_MS - 1)}, LIMIT_MS, "Running", "n", true, false},
    {"at the limit", {"n", SILENT(LIMIT_MS)}, LIMIT_MS, "Running", "n", false, true},
    {"at the limit, on its way out", {"n", SILENT(LIMIT_MS)}, LIMIT_MS, "Running", "n", true, true},
    {"it answers, and is not ready", {"n", ANSWERS}, LIMIT_MS, "Running", "n", true, false},
    {"the node is back", {NULL}, LIMIT_MS, "Running", "n", true, false},
};

/* A lost pod is deleted by force, once, with an event that has the reason; the new pod is created
 * when the old one is gone. */
static void only_what_is_lost_goes_by_force(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct scene s;
        open_on_node(&s, &table[i].node, table[i].lost_after_ms);
        add_on_node(&s, table[i].phase, table[i].on, table[i].terminating);
        step(&s);
        bool lost = count(&s, "delete pod mnist-worker-0 by force") == 1;
        if (lost != table[i].lost || count(&s, "delete pod") != table[i].lost ||
            count(&s, "event Warning NodeLost") != table[i].lost || count(&s, "create pod") > 0) {
            fail_msg("%s:\n%s", table[i].what, trace(&s));
        }
        close_scene(&s);
    }
}

/* No retry is counted, and a job that is never restarted continues. */
static void it_is_made_anew_when_it_is_gone_and_nothing_is_counted(void **state)
{
    (void)state;
    struct scene s;
    open_on_node(&s, &(struct control_node){"n", TAINTED}, 0);
    add_on_node(&s, "Running", "n", false);
    step(&s);
    json_array_clear(s.pods);
    step(&s);
    assert_int_equal(count(&s, "create pod mnist-worker-0"), 1);
    assert_null(doc_at(s.job, "status.counters.failures"));
    assert_null(doc_find(doc_at(s.job, "status.conditions"), "type", "Failed"));
    close_scene(&s);
}

static void a_silence_is_looked_at_when_its_time_is_over(void **state)
{
    (void)state;
    struct scene s;
    open_on_node(&s, &(struct control_node){"n", SILENT(20000)}, LIMIT_MS);
    add_on_node(&s, "Running", "n", true);
    s.now_s = 100;
    step(&s);
    assert_int_equal(count(&s, "wake 140"), 1);
    close_scene(&s);
}

/* Scale-down or a restart of all ranks would also delete the pod; it is deleted only once. */
static void what_goes_anyway_goes_once(void **state)
{
    (void)state;
    struct scene s;
    open_on_node(&s, &(struct control_node){"n", TAINTED}, 0);
    json_t *pod = add_pod(&s, "Worker", 1, "Running");
    doc_set_text(pod, "spec.nodeName", "n");
    step(&s);
    assert_int_equal(count(&s, "delete pod"), 1);
    assert_int_equal(count(&s, "delete pod mnist-worker-1 by force"), 1);
    close_scene(&s);
}

/* Pods of a job that is over or suspended are left to the cluster, because no step waits for
 * them. */
static void a_job_that_is_over_forces_nothing(void **state)
{
    (void)state;
    static const char *const conditions[] = {"Succeeded", "Failed"};
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        open_on_node(&s, &(struct control_node){"n", TAINTED}, 0);
        set_condition(&s, conditions[i], "2026-01-01T00:00:00Z");
        add_on_node(&s, "Running", "n", true);
        step(&s);
        assert_int_equal(count(&s, "delete pod"), 0);
        close_scene(&s);
    }
}

#define NODE(ready, more)                                                                          \
    "{'status': {'conditions': [{'type': 'DiskPressure', 'status': 'Unknown'}, "                   \
    "{'type': 'Ready', 'status': '" ready "', 'lastTransitionTime': 't'}]}" more "}"
#define TAINT(key) ", 'spec': {'taints': [{'key': 'node.kubernetes.io/" key "'}]}"

/* The reason must still hold: the taint, or a silence that began at t. */
static void the_node_is_looked_at_before_a_pod_is_forced_out(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        bool by_taint, by_silence;
    } nodes[] = {
        {NODE("True", ""), false, false},
        {NODE("True", TAINT("out-of-service")), false, false}, /* the node is back */
        {NODE("Unknown", TAINT("out-of-service")), true, true},
        {NODE("False", TAINT("out-of-service")), true, false},
        {NODE("Unknown", TAINT("unreachable")), false, true}, /* the taint was removed */
        {NODE("False", ""), false, false},
        {"{'status': {'conditions': [{'type': 'Ready', 'status': 'Unknown', 'lastTransitionTime':"
         " 'u'}]}}",
         false, false}, /* it was back in between */
        {"{'spec': 3, 'status': []}", false, false},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        json_t *node = parse(nodes[i].node);
        assert_int_equal(control_node_is_still_lost(node, NULL), nodes[i].by_taint);
        assert_int_equal(control_node_is_still_lost(node, "t"), nodes[i].by_silence);
        json_decref(node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_lost_goes_by_force),
        cmocka_unit_test(it_is_made_anew_when_it_is_gone_and_nothing_is_counted),
        cmocka_unit_test(a_silence_is_looked_at_when_its_time_is_over),
        cmocka_unit_test(what_goes_anyway_goes_once),
        cmocka_unit_test(a_job_that_is_over_forces_nothing),
        cmocka_unit_test(the_node_is_looked_at_before_a_pod_is_forced_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
