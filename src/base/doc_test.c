/* Paths into documents, and text that must be refused. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/test.h"

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
    struct muster_err err = {0};
    assert_int_equal(doc_parse("{\"a\":1,\"a\":2}", 13, &doc, &err), MUSTER_EDATA);
    assert_non_null(strstr(err.text, "duplicate"));
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    assert_int_equal(doc_parse(deep, sizeof deep, &doc, &err), MUSTER_ETOOBIG);
    assert_int_equal(doc_parse("{} x", 4, &doc, &err), MUSTER_EDATA);
    assert_null(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_reach_into_objects_and_arrays),
        cmocka_unit_test(setting_makes_the_objects_on_the_way),
        cmocka_unit_test(hostile_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
