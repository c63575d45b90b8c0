/* Checks a step while it is carried out: phases and their barriers, looks, refusals, and what the
 * flow waits for. */
#include "base/testing/test_doc.h"
#include "controller/flow.h"

static bool without_memory;

int __real_expect_sent(struct expectations *x, enum control_resource resource, const char *name);
int __wrap_expect_sent(struct expectations *x, enum control_resource resource, const char *name);

int __wrap_expect_sent(struct expectations *x, enum control_resource resource, const char *name)
{
    return without_memory ? MUSTER_ENOMEM : __real_expect_sent(x, resource, name);
}

static struct control_effect effect(enum control_verb verb, enum control_resource resource,
                                    const char *name)
{
    return (struct control_effect){.verb = verb,
                                   .resource = resource,
                                   .name = name ? strdup(name) : NULL,
                                   .uid = verb == CONTROL_DELETE ? strdup("u") : NULL};
}

static void open_flow(struct flow *f, const struct control_effect *effects, size_t count)
{
    json_t *job = parse("{'metadata': {'name': 'j', 'namespace': 'n', 'uid': 'job',"
                        " 'resourceVersion': '7'}}");
    struct control_effects fx = {.list = calloc(count, sizeof *effects), .count = count};
    memcpy(fx.list, effects, count * sizeof *effects);
    assert_int_equal(flow_init(f, job, &fx), 0);
    json_decref(job);
}

#define OPEN(f, ...)                                                                               \
    do {                                                                                           \
        const struct control_effect effects_[] = {__VA_ARGS__};                                    \
        open_flow(f, effects_, sizeof effects_ / sizeof effects_[0]);                              \
    } while (0)

/* Checks what the flow does until it waits: "send 0", "look 1", "job", "tell 2", "wait", "end". */
static void expect(struct flow *f, const char *done)
{
    static const char *const words[] = {
        [FLOW_WAIT] = "wait",     [FLOW_SEND] = "send", [FLOW_LOOK] = "look",
        [FLOW_LOOK_JOB] = "job",  [FLOW_TELL] = "tell", [FLOW_END] = "end",
        [FLOW_LOOK_NODE] = "node"};
    struct buf text;
    enum flow_do what;
    buf_init(&text, 1000);
    do {
        size_t item = 0;
        what = flow_next(f, &item);
        bool numbered =
            what == FLOW_SEND || what == FLOW_LOOK || what == FLOW_TELL || what == FLOW_LOOK_NODE;
        buf_format(&text, numbered ? "%s %zu " : "%s", words[what], item);
        buf_text(&text, what == FLOW_LOOK_JOB ? " " : "");
    } while (what != FLOW_WAIT && what != FLOW_END);
    assert_string_equal(buf_str(&text), done);
    buf_done(&text);
}

static enum flow_told answer(struct flow *f, size_t item, int code, const char *object)
{
    json_t *doc = object ? parse(object) : NULL;
    const struct flow_answer got = {.code = code, .object = doc};
    enum flow_told told = flow_answered(f, item, &got);
    json_decref(doc);
    return told;
}

#define OBJECT "{'metadata': {'resourceVersion': '9'}}"

static void phases_follow_each_other(void **state)
{
    (void)state;
    struct flow f;
    OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL),
         effect(CONTROL_RECORD_EVENT, CONTROL_JOB, "Any"), effect(CONTROL_DELETE, CONTROL_POD, "a"),
         effect(CONTROL_CREATE, CONTROL_POD, "b"), effect(CONTROL_CREATE, CONTROL_SERVICE, "b"));
    expect(&f, "send 0 wait");
    answer(&f, 0, 0, "{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '8'}}");
    expect(&f, "tell 1 send 2 wait");
    answer(&f, 2, 0, NULL);
    expect(&f, "send 3 send 4 wait");
    answer(&f, 4, 0, OBJECT);
    expect(&f, "wait");
    answer(&f, 3, 0, OBJECT);
    expect(&f, "end");
    assert_int_equal(f.outcome, FLOW_OK);
    flow_done(&f);
}

static void the_next_step_waits_until_all_is_shown(void **state)
{
    (void)state;
    struct flow f;
    OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL),
         effect(CONTROL_DELETE, CONTROL_POD, "a"), effect(CONTROL_CREATE, CONTROL_POD, "b"));
    expect(&f, "send 0 wait");
    expect_shown(&f.expected, CONTROL_JOB, "j", "job", "8", false); /* shown before the answer */
    answer(&f, 0, 0, "{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '8'}}");
    expect(&f, "send 1 wait");
    answer(&f, 1, 0, NULL);
    expect(&f, "send 2 wait");
    answer(&f, 2, 0, OBJECT);
    expect(&f, "end");
    assert_false(expect_is_met(&f.expected));
    expect_shown(&f.expected, CONTROL_POD, "a", "u", "10", true);
    assert_false(expect_is_met(&f.expected));
    expect_shown(&f.expected, CONTROL_POD, "b", "v", "8", false); /* an older version */
    assert_false(expect_is_met(&f.expected));
    expect_listed(&f.expected, CONTROL_POD, "11");
    assert_true(expect_is_met(&f.expected));
    flow_done(&f);
}

static void a_creation_that_nothing_vouches_for_looks_first(void **state)
{
    (void)state;
    static const struct {
        const char *job; /* its present state */
        const char *then;
        enum flow_outcome outcome;
    } table[] = {
        {"{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '7'}}", "send 0 wait",
         FLOW_OK},
        {"{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '8'}}", "end", FLOW_AGAIN}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct flow f;
        OPEN(&f, effect(CONTROL_CREATE, CONTROL_POD, "a"));
        expect(&f, "job wait");
        json_t *job = parse(table[i].job);
        flow_looked_at_job(&f, &(struct flow_answer){.object = job});
        json_decref(job);
        expect(&f, table[i].then);
        assert_int_equal(f.outcome, table[i].outcome);
        flow_done(&f);
    }
}

/* The answer to the creation is AlreadyExists, so the flow looks at the object. */
static void a_name_that_is_taken_is_looked_at(void **state)
{
    (void)state;
    static const struct {
        enum control_resource resource;
        const char *object; /* NULL: it has been deleted since */
        enum flow_told told;
        enum flow_outcome outcome;
        const char *then;
    } table[] = {
        {CONTROL_POD,
         "{'metadata': {'resourceVersion': '9', 'ownerReferences': [{'uid': 'job', 'controller': true}]}}",
         FLOW_SILENT, FLOW_OK, "tell 2 end"},
        {CONTROL_POD,
         "{'metadata': {'resourceVersion': '9', 'deletionTimestamp': 't', 'ownerReferences': [{'uid': "
         "'job', 'controller': true}]}}",
         FLOW_SILENT, FLOW_AGAIN, "end"},
        {CONTROL_POD,
         "{'metadata': {'resourceVersion': '9', 'ownerReferences': [{'uid': 'job'}, {'uid': 'x'}]}}",
         FLOW_STRANGER, FLOW_FAILED, "end"},
        {CONTROL_POD, NULL, FLOW_SILENT, FLOW_AGAIN, "end"},
        {CONTROL_CLAIM, OBJECT, FLOW_SILENT, FLOW_OK, "tell 2 end"}, /* no matter who created it */
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct flow f;
        struct control_effect success = effect(CONTROL_RECORD_EVENT, CONTROL_JOB, "Created");
        success.of_previous = true;
        OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL),
             effect(CONTROL_CREATE, table[i].resource, "a"), success);
        expect(&f, "send 0 wait");
        answer(&f, 0, 0, "{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '8'}}");
        expect(&f, "send 1 wait");
        assert_int_equal(answer(&f, 1, MUSTER_EEXIST, NULL), FLOW_SILENT);
        expect(&f, "look 1 wait");
        json_t *object = table[i].object ? parse(table[i].object) : NULL;
        const struct flow_answer got = {.code = object ? 0 : MUSTER_ENOENT, .object = object};
        assert_int_equal(flow_looked(&f, 1, &got), table[i].told);
        json_decref(object);
        expect(&f, table[i].then);
        assert_int_equal(f.outcome, table[i].outcome);
        flow_done(&f);
    }
}

/* If the result existed before the request was sent, it has already been reported. */
static void what_was_shown_before_it_was_sent_is_not_told(void **state)
{
    (void)state;
    for (int shown = 0; shown < 2; shown++) {
        struct flow f;
        struct control_effect success = effect(CONTROL_RECORD_EVENT, CONTROL_JOB, "Deleted");
        success.of_previous = true;
        OPEN(&f, effect(CONTROL_DELETE, CONTROL_POD, "a"), success);
        expect(&f, "send 0 wait");
        const struct flow_answer got = {.is_shown = shown, .was_shown = shown};
        assert_int_equal(flow_answered(&f, 0, &got), FLOW_SILENT);
        assert_true(flow_is_done(&f, 0));
        expect(&f, shown ? "end" : "tell 1 end");
        assert_int_equal(f.outcome, FLOW_OK);
        flow_done(&f);
    }
}

/* The answers of requests in progress are awaited, and nothing more is sent. */
static void the_first_failure_ends_it(void **state)
{
    (void)state;
    struct flow f;
    OPEN(&f, effect(CONTROL_DELETE, CONTROL_POD, "a"), effect(CONTROL_DELETE, CONTROL_POD, "b"),
         effect(CONTROL_CREATE, CONTROL_POD, "c"));
    expect(&f, "send 0 send 1 wait");
    assert_int_equal(answer(&f, 0, MUSTER_EPERM, NULL), FLOW_REFUSED);
    expect(&f, "wait");
    answer(&f, 1, MUSTER_ENOENT, NULL); /* it is already deleted, which is as good */
    expect(&f, "end");
    assert_int_equal(f.outcome, FLOW_FAILED);
    assert_int_equal(f.code, MUSTER_EPERM);
    flow_done(&f);
}

/* One creation is sent alone; if it succeeds, the others follow. */
static void after_a_failure_one_creation_goes_first(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct flow f;
        OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL),
             effect(CONTROL_CREATE, CONTROL_POD, "a"), effect(CONTROL_CREATE, CONTROL_POD, "b"),
             effect(CONTROL_CREATE, CONTROL_POD, "c"));
        f.careful = true;
        expect(&f, "send 0 wait");
        answer(&f, 0, 0, "{'metadata': {'name': 'j', 'uid': 'job', 'resourceVersion': '8'}}");
        expect(&f, "send 1 wait");
        answer(&f, 1, full ? MUSTER_EPERM : 0, full ? NULL : OBJECT);
        expect(&f, full ? "end" : "send 2 send 3 wait");
        flow_done(&f);
    }
}

/* A server's reason is reported, also for a write that may have been carried out; a status that the
 * server forbids would be visible nowhere else. */
static void what_a_server_refuses_is_told(void **state)
{
    (void)state;
    static const struct {
        enum control_verb verb;
        struct flow_answer answer;
        enum flow_told told;
    } table[] = {
        {CONTROL_CREATE, {.code = MUSTER_EPERM}, FLOW_REFUSED},
        {CONTROL_CREATE, {.code = MUSTER_EUNAVAIL, .unsure = true}, FLOW_SILENT},
        {CONTROL_CREATE,
         {.code = MUSTER_EUNAVAIL, .unsure = true, .explained = true},
         FLOW_REFUSED},
        {CONTROL_DELETE, {.code = MUSTER_ETIMEDOUT, .unsure = true}, FLOW_SILENT},
        {CONTROL_UPDATE_STATUS, {.code = MUSTER_EPERM}, FLOW_REFUSED},
        {CONTROL_UPDATE_STATUS, {.code = MUSTER_ECONFLICT}, FLOW_SILENT},
        {CONTROL_UPDATE_STATUS, {.code = MUSTER_EUNAVAIL}, FLOW_SILENT},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct flow f;
        OPEN(&f, effect(table[i].verb, CONTROL_POD, "a"));
        f.vouched = true;
        expect(&f, "send 0 wait");
        assert_int_equal(flow_answered(&f, 0, &table[i].answer), table[i].told);
        expect(&f, "end");
        flow_done(&f);
    }
}

static void a_conflict_is_no_failure(void **state)
{
    (void)state;
    struct flow f;
    OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL),
         effect(CONTROL_RECORD_EVENT, CONTROL_JOB, "Any"),
         effect(CONTROL_CREATE, CONTROL_POD, "c"));
    expect(&f, "send 0 wait");
    assert_int_equal(answer(&f, 0, MUSTER_ECONFLICT, NULL), FLOW_SILENT);
    expect(&f, "end"); /* the event is not sent */
    assert_int_equal(f.outcome, FLOW_AGAIN);
    flow_done(&f);
}

/* If the flow did not end, its job would never get a step again. */
static void without_memory_it_ends(void **state)
{
    (void)state;
    struct flow f;
    OPEN(&f, effect(CONTROL_UPDATE_STATUS, CONTROL_JOB, NULL));
    without_memory = true;
    expect(&f, "end");
    without_memory = false;
    assert_int_equal(f.outcome, FLOW_FAILED);
    assert_int_equal(f.code, MUSTER_ENOMEM);
    flow_done(&f);
    OPEN(&f, effect(CONTROL_DELETE, CONTROL_POD, "a"), effect(CONTROL_DELETE, CONTROL_POD, "b"));
    size_t item = 0;
    assert_int_equal(flow_next(&f, &item), FLOW_SEND);
    without_memory = true;
    expect(&f, "wait"); /* for the request in progress */
    without_memory = false;
    assert_int_equal(answer(&f, item, 0, NULL), FLOW_SILENT);
    expect(&f, "end");
    assert_int_equal(f.outcome, FLOW_FAILED);
    flow_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_follow_each_other),
        cmocka_unit_test(the_next_step_waits_until_all_is_shown),
        cmocka_unit_test(a_creation_that_nothing_vouches_for_looks_first),
        cmocka_unit_test(a_name_that_is_taken_is_looked_at),
        cmocka_unit_test(what_was_shown_before_it_was_sent_is_not_told),
        cmocka_unit_test(the_first_failure_ends_it),
        cmocka_unit_test(after_a_failure_one_creation_goes_first),
        cmocka_unit_test(what_a_server_refuses_is_told),
        cmocka_unit_test(a_conflict_is_no_failure),
        cmocka_unit_test(without_memory_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
