/* Checks which fields `apply` removes, and which ones it leaves. */
#include "cli/submit/last_applied.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <stdlib.h>

static void expect(const char *last_text, const char *current_text, const char *wanted_text,
                   const char *expected)
{
    muster_auto(doc) json_t *last = last_text ? parse_yaml(last_text) : NULL;
    muster_auto(doc) json_t *current = parse_yaml(current_text);
    muster_auto(doc) json_t *wanted = parse_yaml(wanted_text);
    muster_auto(doc) json_t *patch = last_applied_patch(last, current, wanted);
    muster_auto(free) char *text = doc_print(patch);
    assert_string_equal(text, expected);
}

static void what_the_file_no_longer_says_goes(void **state)
{
    (void)state;
    expect("{\"a\":1,\"b\":{\"c\":1,\"d\":2}}", "{\"a\":1,\"b\":{\"c\":1,\"d\":2,\"e\":3}}",
           "{\"b\":{\"c\":1}}", "{\"a\":null,\"b\":{\"d\":null}}");
    expect("{\"a\":1}", "{}", "{}", "{}"); /* somebody has already removed it */
}

static void what_others_added_stays(void **state)
{
    (void)state;
    expect("{\"a\":1}", "{\"a\":1,\"status\":{\"x\":1}}", "{\"a\":1}", "{}");
    expect(NULL, "{\"a\":1,\"b\":2}", "{\"a\":1}", "{}"); /* never applied: nothing is removed */
}

static void what_the_file_says_wins(void **state)
{
    (void)state;
    expect("{\"a\":1}", "{\"a\":9}", "{\"a\":1}", "{\"a\":1}");
    expect(NULL, "{\"l\":[1,2]}", "{\"l\":[1]}", "{\"l\":[1]}");
    expect(NULL, "{\"a\":{\"b\":1}}", "{\"a\":3}", "{\"a\":3}");
    expect(NULL, "{}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}");
}

static void the_annotation_is_as_kubectl_writes_it(void **state)
{
    (void)state;
    muster_auto(doc) json_t *object = parse_yaml(
        "{\"kind\":\"K\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"annotations\":"
        "{\"" LAST_APPLIED_ANNOTATION
        "\":\"old\"}},\"data\":{\"b\":\"<&>\",\"a\":[{\"z\":1,\"y\":2}]}}");
    muster_auto(free) char *text = last_applied_print(object);
    assert_string_equal(text, "{\"apiVersion\":\"v1\",\"data\":{\"a\":[{\"y\":2,\"z\":1}],"
                              "\"b\":\"\\u003c\\u0026\\u003e\"},\"kind\":\"K\",\"metadata\":"
                              "{\"annotations\":{},\"name\":\"n\"}}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_no_longer_says_goes),
        cmocka_unit_test(what_others_added_stays),
        cmocka_unit_test(what_the_file_says_wins),
        cmocka_unit_test(the_annotation_is_as_kubectl_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
