/* Tables and ages. */
#include "cli/table.h"

#include "base/doc.h"
#include "base/test.h"
#include "cli/age.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    struct muster_err err = {0};
    if (doc_parse(text, strlen(text), &doc, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return doc;
}

static const char pods[] =
    "{\"columnDefinitions\": [{\"name\": \"Name\"}, {\"name\": \"Restarts\"},"
    " {\"name\": \"IP\", \"priority\": 1}, {\"name\": \"Age\"}],"
    " \"rows\": [{\"cells\": [\"m\u00fcller-master-0\", 0, \"127.0.0.1\", \"17m\"],"
    "   \"object\": {\"metadata\": {\"namespace\": \"team\"}}},"
    "  {\"cells\": [\"b\", 12, null, \"3s\"],"
    "   \"object\": {\"metadata\": {\"namespace\": \"default\"}}}]}";

static void print(struct table table, const char *text, const char *expected)
{
    struct buf out;
    json_t *data = parse(text);
    buf_init(&out, 1 << 16);
    table_print(&table, data, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
    json_decref(data);
}

static void columns_stand_below_each_other(void **state)
{
    (void)state;
    print((struct table){.headers = true}, pods,
          "NAME              RESTARTS   AGE\n"
          "m\u00fcller-master-0   0          17m\n"
          "b                 12         3s\n");
    print((struct table){.headers = true, .wide = true, .namespace = true}, pods,
          "NAMESPACE   NAME              RESTARTS   IP          AGE\n"
          "team        m\u00fcller-master-0   0          127.0.0.1   17m\n"
          "default     b                 12         <none>      3s\n");
    print((struct table){0}, "{\"columnDefinitions\": [{\"name\": \"Name\"}], \"rows\": []}", "");
}

/* The rows of a watch keep the columns of the first list; headers come once. */
static void later_rows_stay_in_line(void **state)
{
    (void)state;
    struct table table = {.headers = true};
    struct buf out;
    json_t *first = parse(pods);
    json_t *next = parse("{\"columnDefinitions\": [{\"name\": \"Name\"}, {\"name\": \"Restarts\"},"
                         " {\"name\": \"IP\", \"priority\": 1}, {\"name\": \"Age\"}],"
                         " \"rows\": [{\"cells\": [\"b\", 13, null, \"9s\"]}]}");
    buf_init(&out, 1 << 16);
    table_print(&table, first, &out);
    buf_clear(&out);
    table_print(&table, next, &out);
    assert_string_equal(buf_str(&out), "b                 13         9s\n");
    buf_done(&out);
    json_decref(first);
    json_decref(next);
}

static void ages_read_as_kubectl_has_them(void **state)
{
    (void)state;
    static const struct {
        int64_t s;
        const char *text;
    } cases[] = {{-5, "0s"},     {0, "0s"},        {119, "119s"}, {120, "2m"},      {187, "3m7s"},
                 {600, "10m"},   {10799, "179m"},  {10800, "3h"}, {18720, "5h12m"}, {28800, "8h"},
                 {172800, "2d"}, {176400, "2d1h"}, {691200, "8d"}};
    char text[AGE_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(age_text(cases[i].s * 1000, text), cases[i].text);
    }
    assert_string_equal(age_since("nonsense", 0, text), "<unknown>");
    assert_string_equal(age_words(830, text), "0.8 s");
    assert_string_equal(age_words(125000, text), "2 min 5 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_stand_below_each_other),
        cmocka_unit_test(later_rows_stay_in_line),
        cmocka_unit_test(ages_read_as_kubectl_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
