/* A table of selectors, and whether the labels {a: b, env: prod, empty: ""} match them. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "store/selector.h"

static const struct row {
    const char *text;
    int fits; /* 1, 0; -1: cannot be read */
} rows[] = {
    {NULL, 1},
    {"", 1},
    {"a=b", 1},
    {"a==b", 1},
    {" a = b ", 1},
    {"a=c", 0},
    {"a!=c", 1},
    {"a!=b", 0},
    {"nope!=b", 1},
    {"a", 1},
    {"nope", 0},
    {"!nope", 1},
    {"!a", 0},
    {"empty=", 1},
    {"a=", 0},
    {"env in (dev, prod)", 1},
    {"env in (dev)", 0},
    {"env notin (dev)", 1},
    {"nope notin (x)", 1},
    {"env notin (prod,dev)", 0},
    {"a=b,env in (prod),!nope", 1},
    {"a=b,env=dev", 0},
    {"inner", 0},
    {"a=b,", -1},
    {",a=b", -1},
    {"a in b", -1},
    {"a in (b", -1},
    {"=b", -1},
    {"a b", -1},
    {"!", -1},
};

static void label_selectors_fit_as_the_table_says(void **state)
{
    (void)state;
    muster_auto(doc) json_t *object = json_pack("{s:{s:{s:s, s:s, s:s}}}", "metadata", "labels",
                                                "a", "b", "env", "prod", "empty", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selector selector;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = selector_parse_labels(rows[i].text, &selector, &err);
        int fits = r < 0 ? -1 : selector_match_labels(&selector, object);
        if (fits != rows[i].fits) {
            fail_msg("%s: %d, not %d (%s)", rows[i].text, fits, rows[i].fits, err.text);
        }
        if (r == 0) {
            selector_done(&selector);
        }
    }
}

static void field_selectors_compare_paths(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct selector selector;
    muster_auto(doc) json_t *object =
        json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "a", "status", "phase", "Running");
    assert_int_equal(selector_parse_fields("metadata.name=a,status.phase!=Failed", &selector, &err),
                     0);
    assert_true(selector_match_fields(&selector, object));
    selector_done(&selector);
    assert_int_equal(selector_parse_fields("spec.nodeName=", &selector, &err), 0);
    assert_true(selector_match_fields(&selector, object));
    selector_done(&selector);
    static const char *const refused[] = {"a in (b)", "a..b=c", ".a=b", "a.=b", "a"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(selector_parse_fields(refused[i], &selector, &err), MUSTER_EINVAL);
    }
}

/* Objects that the sieve lets pass are checked again; those that it rejects must not match. */
static void the_sieve_holds_back_only_what_cannot_match(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        bool may;
    } sieved[] = {
        {"metadata.name=a-1", true},
        {"metadata.name=other", false},
        {"metadata.name!=other", true},
        {"spec.nodeName=", true},
        {"note=b\"c", true},
        {"metadata.name=a-1,note=nobody", false},
    };
    muster_auto(doc) json_t *object =
        json_pack("{s:{s:s}, s:s}", "metadata", "name", "a-1", "note", "b\"c");
    muster_auto(free) char *text = doc_print(object);
    for (size_t i = 0; i < sizeof sieved / sizeof sieved[0]; i++) {
        struct selector selector;
        assert_int_equal(selector_parse_fields(sieved[i].selector, &selector, NULL), 0);
        assert_true(sieved[i].may || !selector_match_fields(&selector, object));
        if (selector_may_match_text(&selector, text) != sieved[i].may) {
            fail_msg("%s", sieved[i].selector);
        }
        selector_done(&selector);
    }
}

static void a_selector_is_bounded(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct selector selector;
    char text[SELECTOR_TEXT_BYTES_MAX + 2];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(selector_parse_labels(text, &selector, &err), MUSTER_EINVAL);
    char many[4 * SELECTOR_REQUIREMENTS_MAX];
    size_t used = 0;
    for (int i = 0; i <= SELECTOR_REQUIREMENTS_MAX; i++) {
        many[used++] = i ? ',' : 'a';
        many[used++] = 'a';
    }
    many[used] = '\0';
    assert_int_equal(selector_parse_labels(many, &selector, &err), MUSTER_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_selectors_fit_as_the_table_says),
        cmocka_unit_test(field_selectors_compare_paths),
        cmocka_unit_test(the_sieve_holds_back_only_what_cannot_match),
        cmocka_unit_test(a_selector_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
