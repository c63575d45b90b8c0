/* managedFields are left out, and nothing else, whatever lies around them. */
#include "base/testing/test.h"
#include "kube/wire/managers.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void assert_becomes(const char *text, const char *wanted)
{
    char json[512];
    snprintf(json, sizeof json, "%s#", text); /* no terminator: only the length counts */
    size_t bytes = wire_drop_managers(json, strlen(text));
    assert_int_equal(bytes, strlen(wanted));
    assert_memory_equal(json, wanted, bytes);
    assert_int_equal(json[strlen(text)], '#');
}

static void their_arrays_are_emptied(void **state)
{
    (void)state;
    assert_becomes(
        "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"f:a\":{\"k:[1]\":[[]]}}],\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":\"u\"}}");
    assert_becomes("{\"managedFields\":[]}", "{\"managedFields\":[]}");
    assert_becomes("[{\"managedFields\":[1]},{\"managedFields\":[2],\"a\":[3]}]",
                   "[{\"managedFields\":[]},{\"managedFields\":[],\"a\":[3]}]");
}

/* `k:{"name":"x"}` is a key of managedFields, with its quotes behind backslashes. */
static void strings_in_them_may_have_brackets_and_quotes(void **state)
{
    (void)state;
    assert_becomes("{\"managedFields\":[{\"k:{\\\"name\\\":\\\"]\\\"}\":\"]\\\\\"}],\"b\":1}",
                   "{\"managedFields\":[],\"b\":1}");
}

static void texts_that_speak_of_them_stay(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":\"managedFields\",\"b\":[1]}",
        "{\"a\":\"x \\\"managedFields\\\":[1] y\"}",
        "{\"managedFields\":\"of an annotation\"}",
        "{\"managedFields\":null,\"a\":[1]}",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_becomes(texts[i], texts[i]);
    }
}

/* Whatever part of an answer has arrived, its text does not become longer; a part that is cut off
 * stays as it is. */
static void what_is_cut_off_stays(void **state)
{
    (void)state;
    static const char text[] = "{\"managedFields\":[{\"a\\\"\":[\"]\"]}],\"b\":[1]}";
    const size_t first_whole = sizeof "{\"managedFields\":[{\"a\\\"\":[\"]\"]}]" - 1;
    for (size_t bytes = 0; bytes < sizeof text; bytes++) {
        char json[sizeof text];
        memcpy(json, text, sizeof text);
        size_t left = wire_drop_managers(json, bytes);
        if (bytes < first_whole) {
            assert_int_equal(left, bytes);
            assert_memory_equal(json, text, sizeof text);
        } else {
            assert_true(left < bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_arrays_are_emptied),
        cmocka_unit_test(strings_in_them_may_have_brackets_and_quotes),
        cmocka_unit_test(texts_that_speak_of_them_stay),
        cmocka_unit_test(what_is_cut_off_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
