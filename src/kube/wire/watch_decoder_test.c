/* The decoder: pieces of any size give the same events, and a line that is not an event is an
 * error. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "kube/wire/watch_decoder.h"

#define OBJECT(name, version)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
static const char stream[] = "{\"type\":\"ADDED\",\"object\":" OBJECT(
    "a",
    "5") "}\n"
         "\n"
         "{\"object\":" OBJECT(
             "a",
             "6") ",\"type\":\"MODIFIED\"}\n"
                  "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\",\"annotations\":"
                  "{\"k8s.io/initial-events-end\":\"true\"}}}}\n"
                  "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"
                  "{\"type\":\"DELETED\",\"object\":" OBJECT(
                      "a",
                      "10") "}\n"
                            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n"
                            "{\"type\":\"ADDED\",\"obj";

static void take_all(struct watch_decoder *d, char *seen, size_t size)
{
    struct watch_event event;
    struct muster_err err = MUSTER_ERR_INIT;
    int r;
    while ((r = watch_decoder_next(d, &event, &err)) > 0) {
        size_t used = strlen(seen);
        snprintf(seen + used, size - used, "%c%s%s ", "+~-be"[event.type], event.version,
                 event.initial_end ? "!" : "");
        json_decref(event.object);
    }
    assert_int_equal(r, 0);
}

static void pieces_of_any_size_give_the_same(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct watch_decoder d;
        char seen[100] = "";
        watch_decoder_init(&d, 1000, false);
        for (size_t at = 0; at < sizeof stream - 1; at += piece) {
            size_t left = sizeof stream - 1 - at;
            watch_decoder_feed(&d, stream + at, left < piece ? left : piece);
            take_all(&d, seen, sizeof seen);
        }
        assert_string_equal(seen, "+5 ~6 b8! b9 -10 e ");
        watch_decoder_done(&d);
    }
}

static int feed_line(const char *line, size_t max)
{
    struct watch_decoder d;
    struct watch_event event;
    struct muster_err err = MUSTER_ERR_INIT;
    watch_decoder_init(&d, max, false);
    watch_decoder_feed(&d, line, strlen(line));
    int r = watch_decoder_next(&d, &event, &err);
    if (r > 0) {
        json_decref(event.object);
    }
    assert_true((r < 0) == (*err.text != '\0'));
    watch_decoder_done(&d);
    return r;
}

static void what_is_no_event_ends_it(void **state)
{
    (void)state;
    assert_int_equal(feed_line("<html>\n", 100), MUSTER_EPROTO);
    assert_int_equal(feed_line("[]\n", 100), MUSTER_EPROTO);
    assert_int_equal(feed_line("{\"type\":\"ADDED\"}\n", 100), MUSTER_EPROTO);
    assert_int_equal(feed_line("{\"type\":\"ADDED\",\"object\":7}\n", 100), MUSTER_EPROTO);
    assert_int_equal(feed_line("{\"type\":\"GROWN\",\"object\":{}}\n", 100), MUSTER_EPROTO);
    assert_int_equal(feed_line("{\"type\":\"ADDED\",\"object\":{}}\n", 100), 1);
    assert_int_equal(feed_line("{\"type\":\"ADDED\",\"object\":{}}\n", 10), MUSTER_EPROTO);
    assert_int_equal(feed_line("{\"type\":\"ADDED\",\"object\":{}}", 100), 0);
}

static void a_reset_begins_a_new_answer(void **state)
{
    (void)state;
    struct watch_decoder d;
    char seen[100] = "";
    watch_decoder_init(&d, 64, false);
    watch_decoder_feed(&d, stream, 64);
    watch_decoder_feed(&d, stream, 64); /* too long */
    watch_decoder_reset(&d);
    watch_decoder_feed(&d, "{\"type\":\"ERROR\",\"object\":{}}\n", 30);
    take_all(&d, seen, sizeof seen);
    assert_string_equal(seen, "e ");
    watch_decoder_done(&d);
}

static void managers_may_be_left_out(void **state)
{
    (void)state;
    static const char line[] =
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"managedFields\":[{\"a\":1}]}}}\n";
    for (int without = 0; without < 2; without++) {
        struct watch_decoder d;
        struct watch_event event = {0};
        struct muster_err err = MUSTER_ERR_INIT;
        watch_decoder_init(&d, 2 * sizeof line, without);
        watch_decoder_reset(&d);
        watch_decoder_feed(&d, line, sizeof line - 1);
        watch_decoder_feed(&d, line, sizeof line - 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(watch_decoder_next(&d, &event, &err), 1);
            assert_int_equal(json_array_size(doc_at(event.object, "metadata.managedFields")),
                             without ? 0 : 1);
            json_decref(event.object);
        }
        watch_decoder_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_give_the_same),
        cmocka_unit_test(what_is_no_event_ends_it),
        cmocka_unit_test(a_reset_begins_a_new_answer),
        cmocka_unit_test(managers_may_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
