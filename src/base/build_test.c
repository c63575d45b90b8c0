/* Checks that a document is built from pieces, and that the whole fails if one piece fails. */
#include "base/build.h"
#include "base/doc.h"
#include "base/testing/test.h"

static void pieces_become_a_document(void **state)
{
    (void)state;
    struct build b = {0};
    json_t *doc = json_object();
    build_text(&b, doc, "kind", "Pod");
    build_text(&b, doc, "missing", NULL);
    build_int(&b, build_object_at(&b, doc, "spec"), "n", 3);
    build_add(&b, build_array_at(&b, doc, "list"), json_true());
    build_add(&b, build_array_at(&b, doc, "list"), json_false());
    doc = build_end(&b, doc);
    char *text = doc_print(doc);
    assert_string_equal(text, "{\"kind\":\"Pod\",\"spec\":{\"n\":3},\"list\":[true,false]}");
    free(text);
    json_decref(doc);
}

static void one_failed_piece_spoils_the_whole(void **state)
{
    (void)state;
    struct build b = {0};
    json_t *doc = json_object();
    build_set(&b, doc, "value", NULL);
    build_text(&b, doc, "after", "text");
    assert_null(build_object_at(&b, doc, "spec"));
    build_text(&b, build_object_at(&b, doc, "spec"), "key", "text");
    assert_null(build_end(&b, doc));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_become_a_document),
        cmocka_unit_test(one_failed_piece_spoils_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
