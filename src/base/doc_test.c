/* Checks paths into documents, and which texts are refused. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <stdlib.h>

static void paths_reach_into_objects_and_arrays(void **state)
{
    (void)state;
    static const char text[] =
        "{\"spec\":{\"n\":3,\"on\":true,\"none\":null,\"list\":[{\"name\":\"a\"}]}}";
    muster_auto(doc) json_t *doc = NULL;
    assert_int_equal(doc_parse(text, strlen(text), &doc, NULL), 0);
    assert_int_equal(doc_int(doc, "spec.n", 0), 3);
    assert_true(doc_bool(doc, "spec.on", false));
    assert_string_equal(doc_text(doc, "spec.list.0.name", ""), "a");
    assert_null(doc_at(doc, "spec.none"));
    assert_null(doc_at(doc, "spec.n.deeper"));
    assert_null(doc_at(doc, "spec.list.x"));
    assert_string_equal(doc_text(doc, "spec.n", "other type"), "other type");
}

static void setting_makes_the_objects_on_the_way(void **state)
{
    (void)state;
    muster_auto(doc) json_t *doc = json_object();
    assert_int_equal(doc_set_text(doc, "metadata.name", "a"), 0);
    assert_int_equal(doc_set_int(doc, "spec.n", 1), 0);
    muster_auto(free) char *text = doc_print(doc);
    assert_string_equal(text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1}}");
}

static void hostile_text_is_refused(void **state)
{
    (void)state;
    json_t *doc = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(doc_parse("{\"a\":1,\"a\":2}", 13, &doc, &err), MUSTER_EDATA);
    assert_non_null(strstr(err.text, "duplicate"));
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    assert_int_equal(doc_parse(deep, sizeof deep, &doc, &err), MUSTER_ETOOBIG);
    assert_int_equal(doc_parse("{} x", 4, &doc, &err), MUSTER_EDATA);
    assert_null(doc);
}

static long until_failure; /* allocations until one fails; below 0: none fails */

static void *scarce_malloc(size_t size)
{
    return until_failure >= 0 && until_failure-- == 0 ? NULL : malloc(size);
}

/* Returns whether allocation k was reached. */
static bool parse_with_failure(const char *text, long k)
{
    muster_auto(doc) json_t *doc = NULL;
    until_failure = k;
    int r = doc_parse(text, strlen(text), &doc, NULL);
    bool reached = until_failure < 0;
    until_failure = -1;
    muster_auto(free) char *got = doc ? doc_print(doc) : NULL;
    assert_int_equal(r, reached ? MUSTER_ENOMEM : 0);
    if (!reached) {
        assert_string_equal(got, text);
    }
    return reached;
}

/* Nor is a token cut off when memory is short, although it is read into a buffer that grows. */
static void lack_of_memory_is_not_taken_for_damage(void **state)
{
    (void)state;
    static const char text[] =
        "{\"0123456789abcdef0123456789abcdef0123456789\":\"0123456789abcdef0123456789abcdef\","
        "\"list\":[1,2.5,123456789012345678,null,true]}";
    json_malloc_t given_malloc;
    json_free_t given_free;
    json_get_alloc_funcs(&given_malloc, &given_free);
    json_set_alloc_funcs(scarce_malloc, free);
    long k = 0;
    while (parse_with_failure(text, k)) {
        k++;
    }
    json_malloc_t malloc_after;
    json_get_alloc_funcs(&malloc_after, &given_free);
    assert_ptr_equal(malloc_after, scarce_malloc);
    json_set_alloc_funcs(given_malloc, free);
    assert_in_range(k, 10, 1000);
}

static void the_first_element_with_a_text_is_found(void **state)
{
    (void)state;
    muster_auto(doc) json_t *list =
        parse("[1, {'m': {'name': 7}}, {'m': {'name': 'a'}, 'n': 1}, {'m': {'name': 'a'}}]");
    assert_ptr_equal(doc_find(list, "m.name", "a"), json_array_get(list, 2));
    assert_null(doc_find(list, "m.name", "b"));
    assert_null(doc_find(list, "m.name", ""));
    assert_null(doc_find(NULL, "m.name", "a"));
    assert_null(doc_find(json_array_get(list, 2), "m.name", "a"));
}

static int by_n(const json_t *a, const json_t *b)
{
    return (int)(doc_int(a, "n", 0) - doc_int(b, "n", 0));
}

static void a_sorted_array_is_another_one(void **state)
{
    (void)state;
    muster_auto(doc) json_t *list = parse("[{'n': 3}, {'n': 1}, {'n': 2}]");
    muster_auto(doc) json_t *sorted = doc_sorted(list, by_n);
    muster_auto(doc) json_t *expected = parse("[{'n': 1}, {'n': 2}, {'n': 3}]");
    assert_true(json_equal(sorted, expected));
    assert_int_equal(doc_int(list, "0.n", 0), 3);
    muster_auto(doc) json_t *none = doc_sorted(NULL, by_n);
    assert_int_equal(json_array_size(none), 0);
}

static void versions_are_compared_as_numbers(void **state)
{
    (void)state;
    muster_auto(doc) json_t *older = parse("{'metadata': {'resourceVersion': '9'}}");
    muster_auto(doc) json_t *newer = parse("{'metadata': {'resourceVersion': '10'}}");
    assert_true(doc_compare_versions(older, newer) < 0);
    assert_true(doc_compare_versions(newer, older) > 0);
    assert_int_equal(doc_compare_versions(newer, newer), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_reach_into_objects_and_arrays),
        cmocka_unit_test(setting_makes_the_objects_on_the_way),
        cmocka_unit_test(hostile_text_is_refused),
        cmocka_unit_test(lack_of_memory_is_not_taken_for_damage),
        cmocka_unit_test(the_first_element_with_a_text_is_found),
        cmocka_unit_test(a_sorted_array_is_another_one),
        cmocka_unit_test(versions_are_compared_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
