/* Whether a definition of PyTorchJobs has room for counters. */
#include "operator/definition.h"

#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <stdio.h>

#define OTHER "{'name': 'v1beta1', 'schema': {'openAPIV3Schema': {'type': 'object'}}}, "
#define ANY "'x-kubernetes-preserve-unknown-fields': true"

static void a_field_is_kept_where_it_is_named_or_any_is(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        bool kept;
    } table[] = {
        {"'properties': {'spec': {}, 'status': {'properties': {'startTime': {}}}}", false},
        {"'properties': {'spec': {" ANY "}}", false},
        {"'properties': {'status': {'properties': {'counters': {" ANY "}}}}", true},
        {"'properties': {'status': {'properties': {'counters': {}}}}", true},
        {"'properties': {'status': {" ANY "}}", true},
        {"'properties': {'status': {'properties': {'startTime': {}}}}, " ANY, true},
        {ANY, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{'spec': {'versions': [" OTHER "{'name': 'v1', 'schema': "
                       "{'openAPIV3Schema': {'type': 'object', %s}}}]}}",
                       table[i].schema);
        json_t *definition = parse(text);
        assert_int_equal(definition_keeps_counters(definition), table[i].kept);
        json_decref(definition);
    }
}

static void what_says_nothing_is_not_complained_of(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{'spec': {'versions': [{'name': 'v1'}]}}",
                                        "{'spec': {'versions': [{'name': 'v2'}]}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *definition = parse(texts[i]);
        assert_true(definition_keeps_counters(definition));
        json_decref(definition);
    }
    assert_true(definition_keeps_counters(NULL));
}

static void restart_rules_came_with_1_35(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool has;
    } table[] = {{"{'major': '1', 'minor': '35'}", true},
                 {"{'major': '1', 'minor': '36+'}", true},
                 {"{'major': '2', 'minor': '0'}", true},
                 {"{'major': '1', 'minor': '34'}", false},
                 {"{'major': '1', 'minor': ''}", false},
                 {"{'minor': 36}", false},
                 {"{}", false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *version = parse(table[i].version);
        assert_int_equal(version_has_restart_rules(version), table[i].has);
        json_decref(version);
    }
    assert_false(version_has_restart_rules(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_kept_where_it_is_named_or_any_is),
        cmocka_unit_test(what_says_nothing_is_not_complained_of),
        cmocka_unit_test(restart_rules_came_with_1_35),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
