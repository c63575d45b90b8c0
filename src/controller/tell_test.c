/* Checks events that come faster than they may be sent. */
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "controller/internal.h"

#include <stdlib.h>
#include <string.h>

enum { BURST = 8000, LONG_BYTES = 1 << 20 };

/* A cluster that takes requests, and answers them when the test wants it. */
static struct {
    struct cluster cluster; /* must be the first member */
    struct {
        cluster_done_fn *done;
        void *arg;
        enum cluster_verb verb;
        char name[64];
    } * requests;
    size_t count, said;
    bool repeated; /* copied to the answers */
    char sentence[256];
} world;

static int take_request(struct cluster *cluster, const struct cluster_request *q,
                        cluster_done_fn *done, void *arg, struct cluster_call **ret,
                        struct muster_err *err)
{
    (void)cluster, (void)ret, (void)err;
    world.requests = realloc(world.requests, (world.count + 1) * sizeof *world.requests);
    assert_non_null(world.requests);
    world.requests[world.count].done = done;
    world.requests[world.count].arg = arg;
    world.requests[world.count].verb = q->verb;
    (void)snprintf(world.requests[world.count++].name, 64, "%s/%s", q->namespace, q->name);
    return 0;
}

static void cancel(struct cluster_call *call)
{
    (void)call;
}

static int take_watch(struct cluster *cluster, const struct cluster_scope *scope,
                      cluster_watch_fn *fn, void *arg, struct cluster_watch **ret,
                      struct muster_err *err)
{
    (void)cluster, (void)scope, (void)fn, (void)arg, (void)err;
    *ret = (struct cluster_watch *)&world;
    return 0;
}

static void drop_watch(struct cluster_watch *watch)
{
    (void)watch;
}

static int64_t now(void *arg)
{
    (void)arg;
    return 1767225600000;
}

static void call_at(void *arg, int64_t at_ms)
{
    (void)arg, (void)at_ms;
}

static void say(void *arg, const char *what, const char *key, const char *sentence)
{
    (void)arg, (void)what, (void)key;
    world.said++;
    (void)snprintf(world.sentence, sizeof world.sentence, "%s", sentence);
}

static struct driver *make_driver(void)
{
    static const struct cluster_backend backend = {take_request, cancel, take_watch, drop_watch};
    const struct driver_options options = {.cluster = &world.cluster,
                                           .clock = {now, now, call_at, NULL},
                                           .namespace = "",
                                           .labels = "",
                                           .say = say};
    struct driver *driver = NULL;
    world.cluster.backend = &backend;
    assert_int_equal(driver_new(&options, &driver, NULL), 0);
    return driver;
}

static void tell(struct driver *driver, size_t count, char *message)
{
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
                        "{'name': 'j', 'namespace': 'n', 'uid': 'u'}}");
    char text[] = "SuccessfulCreatePod";
    const struct control_effect event = {
        .verb = CONTROL_RECORD_EVENT, .name = text, .text = message};
    for (size_t i = 0; i < count; i++) {
        driver_tell(driver, job, &event);
    }
    json_decref(job);
}

/* Answers all waiting requests with this code, once. */
static void answer(int code, json_t *object)
{
    const struct cluster_answer answer = {.code = code,
                                          .reason = "",
                                          .message = "refused",
                                          .repeated = world.repeated,
                                          .object = object};
    size_t count = world.count;
    for (size_t i = 0; i < count; i++) {
        world.requests[i].done(world.requests[i].arg, &answer);
    }
    world.count -= count;
    memmove(world.requests, world.requests + count, world.count * sizeof *world.requests);
}

static void leave(struct driver *driver)
{
    driver_free(driver);
    free(world.requests);
    memset(&world, 0, sizeof world);
}

/* A thousand jobs have four events each at the same time. */
static void a_burst_of_thousands_waits(void **state)
{
    (void)state;
    struct driver *driver = make_driver();
    char message[] = "Created pod: training-of-a-large-model-worker-0";
    tell(driver, BURST, message);
    assert_int_equal(world.count, BURST);
    assert_int_equal(driver_numbers(driver).events_left_out, 0);
    answer(0, NULL);
    assert_int_equal(driver->events, 0);
    assert_int_equal(driver->event_bytes, 0);
    assert_int_equal(world.said, 0);
    leave(driver);
}

/* Events beyond the limit are left out and counted, and this is reported once in a burst. */
static void what_is_too_much_is_left_out(void **state)
{
    (void)state;
    struct driver *driver = make_driver();
    char *message = malloc(LONG_BYTES + 1);
    memset(message, 'm', LONG_BYTES);
    message[LONG_BYTES] = '\0';
    for (int burst = 1; burst <= 2; burst++) {
        tell(driver, 40, message);
        assert_in_range(world.count, 30, 32); /* the limit is 32 MiB */
        assert_int_equal(driver->event_bytes <= DRIVER_EVENTS_BYTES_MAX, 1);
        assert_int_equal(driver_numbers(driver).events_left_out,
                         (40 - world.count) * (size_t)burst);
        assert_int_equal(world.said, burst);
        assert_non_null(strstr(world.sentence, "left out"));
        answer(0, NULL);
        assert_int_equal(driver->event_bytes, 0);
    }
    free(message);
    leave(driver);
}

/* If the same event exists, it is read and its count is increased; each of these requests takes the
 * place of the one before. */
static void the_same_again_is_counted(void **state)
{
    (void)state;
    struct driver *driver = make_driver();
    char message[] = "Created pod: a", first[64];
    tell(driver, 1, message);
    (void)snprintf(first, sizeof first, "%s", world.requests[0].name);
    assert_memory_equal(first, "n/j.", 4);
    size_t bytes = driver->event_bytes;
    answer(MUSTER_EEXIST, NULL);
    assert_int_equal(world.requests[0].verb, CLUSTER_GET);
    assert_string_equal(world.requests[0].name, first);
    assert_int_equal(driver->event_bytes, bytes);
    json_t *old = parse("{'count': 1}");
    answer(0, old);
    json_decref(old);
    assert_int_equal(world.requests[0].verb, CLUSTER_PATCH);
    assert_string_equal(world.requests[0].name, first);
    answer(MUSTER_EPERM, NULL);
    assert_string_equal(world.sentence, "refused");
    assert_int_equal(world.count, 0);
    assert_int_equal(driver->events, 0);
    leave(driver);
}

/* The creation was sent twice, and the second time the name was taken: the existing event may be
 * from the first time. */
static void an_event_that_was_sent_twice_counts_once(void **state)
{
    (void)state;
    static const struct {
        const char *there;
        size_t patches;
    } cases[] = {
        {"{'count': 1, 'firstTimestamp': '2026-01-01T00:00:00Z'}", 0},
        {"{'count': 2, 'firstTimestamp': '2026-01-01T00:00:00Z'}", 1},
        {"{'count': 1, 'firstTimestamp': '2025-12-31T23:59:59Z'}", 1},
        {"{'count': 1}", 1},
    };
    struct driver *driver = make_driver();
    char message[] = "Created pod: a";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *there = parse(cases[i].there);
        tell(driver, 1, message);
        world.repeated = true;
        answer(MUSTER_EEXIST, NULL);
        world.repeated = false;
        answer(0, there);
        assert_int_equal(world.count, cases[i].patches);
        answer(0, NULL);
        assert_int_equal(driver->events, 0);
        json_decref(there);
    }
    leave(driver);
}

/* Without the permission to write events, each loss would be reported; only the first one is. When
 * the permission is back, the next loss is reported. */
static void that_events_are_forbidden_is_said_once(void **state)
{
    (void)state;
    struct driver *driver = make_driver();
    char message[] = "Created pod: a";
    for (int lost = 1; lost <= 2; lost++) {
        tell(driver, 3, message);
        answer(MUSTER_EPERM, NULL);
        tell(driver, 3, message);
        answer(MUSTER_EPERM, NULL);
        assert_int_equal(world.said, lost);
        tell(driver, 1, message);
        answer(0, NULL);
    }
    leave(driver);
}

/* A job whose name has the full length is refused, and an event must report why. */
static void an_event_has_a_name_that_is_one(void **state)
{
    (void)state;
    char job[254] = "";
    memset(job, 'j', sizeof job - 1);
    for (size_t odd = 200; odd < sizeof job - 1; odd++) {
        job[odd] = odd % 2 ? '-' : 'j';
        json_t *about = json_pack("{s:{s:s}}", "metadata", "name", job);
        const struct event_note note = {about, "muster", true, "PyTorchJobInvalid", "too long", 0};
        char *name = event_name(&note);
        assert_non_null(name);
        assert_true(strlen(name) < sizeof job);
        const char *dot = strrchr(name, '.');
        assert_true(dot > name && dot[-1] == 'j' && strlen(dot) == 17);
        free(name);
        json_decref(about);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_of_thousands_waits),
        cmocka_unit_test(what_is_too_much_is_left_out),
        cmocka_unit_test(the_same_again_is_counted),
        cmocka_unit_test(an_event_that_was_sent_twice_counts_once),
        cmocka_unit_test(that_events_are_forbidden_is_said_once),
        cmocka_unit_test(an_event_has_a_name_that_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
