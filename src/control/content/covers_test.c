/* Checks how an object that a server keeps is compared with what a job asks for. */
#include "control/content/covers.h"

#include "base/doc.h"
#include "base/testing/test_doc.h"

static void what_differs_and_what_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *whole, *part;
        bool covers;
    } table[] = {
        {"{'a': 1, 'b': 2}", "{'a': 1}", true}, /* the server's default */
        {"{'a': 1}", "{'a': 1, 'b': 2}", false},
        {"{'a': 1}", "{'a': 2}", false},
        {"{'a': {'b': 1, 'c': 2}}", "{'a': {'b': 1}}", true},
        {"{'a': 1}", "{'a': {}}", false},
        {"{}", "{'a': {}}", false},
        {"{'a': [1, 2]}", "{'a': [1]}", false}, /* lists are compared item by item */
        {"{'a': [{'b': 1, 'c': 2}]}", "{'a': [{'b': 1}]}", true},
        {"{'a': [{'b': 1}]}", "{'a': [{'b': 2}]}", false},
        {"{'a': '500m'}", "{'a': 0.5}", true}, /* equal quantities */
        {"{'a': '1Gi'}", "{'a': '1024Mi'}", true},
        {"{'a': '2'}", "{'a': 2}", true},
        {"{'a': 'two'}", "{'a': 'Two'}", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *whole = parse(table[i].whole);
        json_t *part = parse(table[i].part);
        if (control_covers(whole, part) != table[i].covers) {
            fail_msg("%s covers %s: not %d", table[i].whole, table[i].part, table[i].covers);
        }
        json_decref(whole);
        json_decref(part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_differs_and_what_does_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
