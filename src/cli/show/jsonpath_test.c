/* Checks templates: test/data/jsonpath.json has what kubectl 1.32 prints for each, or null for an
 * error; test/system/test_output_forms.py compares it with a real kubectl. */
#include "cli/show/jsonpath.h"

#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "cli/show/custom_columns.h"

#include <stdio.h>

enum { FILE_BYTES_MAX = 1 << 20, OUTPUT_BYTES_MAX = 1 << 20 };

static json_t *read_table(void)
{
    char path[4096];
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(path, sizeof path, "%s/test/data/jsonpath.json", source ? source : ".");
    char *text = NULL;
    size_t bytes = 0;
    json_t *table = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (file_read(path, FILE_BYTES_MAX, &text, &bytes, &err) < 0 ||
        doc_parse(text, bytes, &table, &err) < 0) {
        fail_msg("%s: %s", path, err.text);
    }
    free(text);
    return table;
}

/* Prints the document by the template; if the result is negative, *err has the error. */
static int print(const char *template, const json_t *doc, struct buf *out, struct muster_err *err)
{
    struct jsonpath *path = NULL;
    *err = (struct muster_err)MUSTER_ERR_INIT;
    int r = jsonpath_parse(template, &path, err);
    r = r < 0 ? r : jsonpath_print(path, doc, out, err);
    jsonpath_free(path);
    return r;
}

static void templates_give_what_kubectl_gives(void **state)
{
    (void)state;
    json_t *table = read_table();
    const json_t *doc = json_object_get(table, "document");
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(table, "cases"), i, row) {
        const char *template = json_string_value(json_array_get(row, 0));
        const char *expected = json_string_value(json_array_get(row, 1));
        struct buf out;
        struct muster_err err = MUSTER_ERR_INIT;
        buf_init(&out, OUTPUT_BYTES_MAX);
        int r = print(template, doc, &out, &err);
        if ((r < 0) != !expected || (expected && strcmp(buf_str(&out), expected) != 0)) {
            fail_msg("%s\ngot      %s%s\nexpected %s", template, buf_str(&out), err.text,
                     expected ? expected : "an error");
        }
        assert_true(r == 0 || (err.text[0] && out.used == 0));
        buf_done(&out);
    }
    assert_in_range(i, 150, 1000);
    json_decref(table);
}

static void mistakes_are_named_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *template;
        const char *says;
    } cases[] = {
        {"{.a", "at character 1: the { is not closed"},
        {"text {.a}{", "at character 10: the { is not closed"},
        {"{.a[}", "at character 4: the bracket is not closed"},
        {"{.a[x]}", "at character 5: this is no index"},
        {"{.a[99999999999999999999]}", "at character 5: this is no index"},
        {"{.a[?(@.b==\"c\"].d}", "at character 4: the filter is not closed"},
        {"{.a[?(@.b==#)]}", "at character 12: this sign has no meaning"},
        {"{metadata.name}", "at character 2: unknown word; a field begins with a dot"},
        {"{\"a}", "at character 2: the quote is not closed"},
        {"{\"\\q\"}", "at character 3: no such escape"},
        {"{....a}", "at character 4: one .. after another"},
        {"{.a,.b}", "at character 4: this sign has no meaning"},
        {"{1.2.3}", "at character 2: this is no number"},
        {"{end}", "{end} without {range}"},
        {"{.l[9]}", "array index out of bounds: index 9, length 2"},
        {"{.t[0]}", "[ ] is for lists; this is text"},
        {"{.l[?(@.x=5)]}", "a filter has no operator =; =="},
        {"{.l[?(@.x==\"5\")]}", "a filter cannot compare a number with text by =="},
    };
    json_t *doc = parse("{'l': [{'x': 5}, {'x': 6}], 't': 'text'}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out;
        struct muster_err err = MUSTER_ERR_INIT;
        buf_init(&out, OUTPUT_BYTES_MAX);
        assert_true(print(cases[i].template, doc, &out, &err) < 0);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s: %s", cases[i].template, err.text);
        }
        buf_done(&out);
    }
    json_decref(doc);
}

/* A template must not use up the stack or the machine's time. */
static void what_is_too_much_is_refused(void **state)
{
    (void)state;
    struct buf template;
    struct buf out;
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *doc = parse("{'l': [1, 2, 3, 4, 5, 6, 7, 8]}");
    buf_init(&template, 1 << 20);
    buf_init(&out, OUTPUT_BYTES_MAX);
    for (int i = 0; i < 12; i++) {
        buf_text(&template, "{range $.l[*]}{range @..*}");
    }
    buf_text(&template, "x");
    (void)print(buf_str(&template), doc, &out, &err);
    buf_clear(&template);
    for (int i = 0; i < 100; i++) {
        buf_text(&template, i ? "[?(@" : "{.l[?(@");
    }
    assert_true(print(buf_str(&template), doc, &out, &err) < 0);
    buf_clear(&template);
    for (int i = 0; i < 5000; i++) {
        buf_text(&template, "{.l}");
    }
    assert_int_equal(print(buf_str(&template), doc, &out, &err), MUSTER_ETOOBIG);
    buf_done(&template);
    buf_done(&out);
    json_decref(doc);
}

static void rows_of_columns(const char *spec, const json_t *doc, bool headers, const char *expected)
{
    struct custom_columns *columns = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf out;
    buf_init(&out, OUTPUT_BYTES_MAX);
    if (custom_columns_parse(spec, &columns, &err) < 0) {
        fail_msg("%s: %s", spec, err.text);
    }
    if (!headers) {
        custom_columns_without_headers(columns);
    }
    assert_int_equal(custom_columns_print(columns, doc, &out, &err), 0);
    assert_string_equal(buf_str(&out), expected);
    custom_columns_free(columns);
    buf_done(&out);
}

static void columns_stand_as_kubectls(void **state)
{
    (void)state;
    json_t *list = parse("{'items': [{'a': 'one', 'n': 1.5, 'm': {'y': 1, 'x': [1, null]}}, "
                         "{'a': 'longer-than', 'l': [{'k': 'p'}, {'k': 'q'}]}]}");
    rows_of_columns("A:.a,N:.n,M:m,L:{.l[*].k}", list, true,
                    "A             N        M                      L\n"
                    "one           1.5      map[x:[1 <nil>] y:1]   <none>\n"
                    "longer-than   <none>   <none>                 p,q\n");
    rows_of_columns("A:", list, false, "<none>\n<none>\n");
    rows_of_columns("A:{a}", list, false, "one\nlonger-than\n");
    rows_of_columns("Q:.l[?(@.k==\"p,q\")].k,B:.a",
                    json_array_get(json_object_get(list, "items"), 1), true,
                    "Q        B\n<none>   longer-than\n");
    json_decref(list);
}

static void wrong_columns_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *says;
    } cases[] = {
        {"NAME", "'NAME' must be HEADER:FIELD"}, {"A:.a,", "'' must be HEADER:FIELD"},
        {"A:.a,B:{}", "B: '{}' is not a field"}, {"A:{.a}{.b}", "A: '{.a}{.b}' is not a field"},
        {"A:.a[", "A: jsonpath: at character"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct custom_columns *columns = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(custom_columns_parse(cases[i].spec, &columns, &err), MUSTER_EINVAL);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s: %s", cases[i].spec, err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_give_what_kubectl_gives),
        cmocka_unit_test(mistakes_are_named_at_their_place),
        cmocka_unit_test(what_is_too_much_is_refused),
        cmocka_unit_test(columns_stand_as_kubectls),
        cmocka_unit_test(wrong_columns_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
