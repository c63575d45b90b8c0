/* Checks tables as `get` prints them. */
#include "cli/show/table.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"

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

/* The rows of a watch keep the column widths of the first list, and the headers are printed
 * once. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_stand_below_each_other),
        cmocka_unit_test(later_rows_stay_in_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
