/* Checks that the file is found from which an object was read, by kind, name and namespace. */
#include "cli/submit/sources.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <string.h>

#define MAP(more) "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: same\n" more

static void keep(struct sources **list, const char *path, const char *text)
{
    struct job_file file = {0};
    struct job_problems problems;
    job_problems_init(&problems, 10);
    assert_int_equal(job_file_read(text, strlen(text), &file, &problems, NULL), 0);
    assert_int_equal(problems.errors, 0);
    assert_int_equal(sources_keep(list, path, &file), 0);
    job_problems_done(&problems);
    job_file_done(&file);
}

static void assert_found(const struct sources *list, const char *object_text, const char *path,
                         int line)
{
    muster_auto(doc) json_t *object = parse_yaml(object_text);
    struct yaml_place place = {0, 0};
    const char *found = sources_find(list, object, "metadata.name", &place);
    assert_string_equal(found, path);
    assert_int_equal(place.line, line);
}

static void one_name_in_two_namespaces_is_told_apart(void **state)
{
    (void)state;
    struct sources *list = NULL;
    keep(&list, "two.yaml", MAP("  namespace: a\n") "---\n" MAP("  namespace: b\n"));
    assert_found(list, MAP("  namespace: a\n"), "two.yaml", 4);
    assert_found(list, MAP("  namespace: b\n"), "two.yaml", 10);
    sources_free(list);
}

static void a_namespace_that_was_filled_in_is_none_of_the_file(void **state)
{
    (void)state;
    struct sources *list = NULL;
    keep(&list, "a.yaml", MAP("  namespace: a\n"));
    keep(&list, "-", MAP(""));
    assert_found(list, MAP("  namespace: default\n"), "standard input", 4);
    assert_found(list, MAP(""), "standard input", 4);
    assert_found(list, MAP("  namespace: a\n"), "a.yaml", 4);
    sources_free(list);
}

static void a_namespace_of_the_command_replaces_the_file_s(void **state)
{
    (void)state;
    struct sources *list = NULL;
    keep(&list, "a.yaml", MAP("  namespace: a\n"));
    assert_found(list, MAP("  namespace: c\n"), "a.yaml", 4);
    sources_free(list);
}

static void what_no_file_holds_is_not_found(void **state)
{
    (void)state;
    struct sources *list = NULL;
    struct yaml_place place = {7, 7};
    muster_auto(doc) json_t *other = parse_yaml("kind: Secret\nmetadata: {name: same}\n");
    assert_null(sources_find(list, other, "", &place));
    keep(&list, "a.yaml", MAP(""));
    assert_null(sources_find(list, other, "", &place));
    assert_int_equal(place.line, 7);
    sources_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_name_in_two_namespaces_is_told_apart),
        cmocka_unit_test(a_namespace_that_was_filled_in_is_none_of_the_file),
        cmocka_unit_test(a_namespace_of_the_command_replaces_the_file_s),
        cmocka_unit_test(what_no_file_holds_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
