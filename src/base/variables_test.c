/* Lists of environment variables: which bytes are a list, what is refused, and which list wins. */
#include "base/variables.h"

#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LITERAL(text) (text), sizeof(text) - 1

static void bytes_come_back_in_two_parts(void **state)
{
    (void)state;
    struct variables v;
    assert_int_equal(
        variables_parse(LITERAL("A=1\0BASH_FUNC_x%%=() { :; }\0B=\xff\xfe\0\0A=2\0"), &v, NULL), 0);
    assert_string_equal(v.shell[0], "A=1");
    assert_string_equal(v.shell[1], "BASH_FUNC_x%%=() { :; }");
    assert_string_equal(v.shell[2], "B=\xff\xfe");
    assert_null(v.shell[3]);
    assert_string_equal(v.given[0], "A=2");
    assert_null(v.given[1]);
    assert_string_equal(variables_value(v.shell, "B"), "\xff\xfe");
    assert_null(variables_value(v.shell, "BASH_FUNC_x"));
    variables_done(&v);
}

static void one_part_and_none_are_lists(void **state)
{
    (void)state;
    struct variables v;
    assert_int_equal(variables_parse(LITERAL("A=1\0"), &v, NULL), 0);
    assert_null(v.given[0]);
    variables_done(&v);
    assert_int_equal(variables_parse("", 0, &v, NULL), 0);
    assert_null(v.shell[0]);
    variables_done(&v);
    assert_int_equal(variables_parse(LITERAL("\0A=1\0"), &v, NULL), 0);
    assert_null(v.shell[0]);
    assert_string_equal(v.given[0], "A=1");
    variables_done(&v);
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    struct variables v;
    assert_int_equal(variables_parse(LITERAL("A=1"), &v, NULL), MUSTER_EDATA);
    assert_int_equal(variables_parse(LITERAL("A\0"), &v, NULL), MUSTER_EDATA);
    assert_int_equal(variables_parse(LITERAL("=1\0"), &v, NULL), MUSTER_EDATA);
    assert_int_equal(variables_parse(LITERAL("A=1\0\0B=2\0\0"), &v, NULL), MUSTER_EDATA);
    char *large = calloc(1, VARIABLES_BYTES_MAX + 1);
    memset(large, 'a', VARIABLE_BYTES_MAX);
    large[1] = '=';
    assert_int_equal(variables_parse(large, VARIABLE_BYTES_MAX + 1, &v, NULL), MUSTER_ETOOBIG);
    large[VARIABLE_BYTES_MAX - 1] = '\0'; /* the NUL byte counts, too */
    assert_int_equal(variables_parse(large, VARIABLE_BYTES_MAX, &v, NULL), 0);
    variables_done(&v);
    assert_int_equal(variables_parse(large, VARIABLES_BYTES_MAX + 1, &v, NULL), MUSTER_ETOOBIG);
    free(large);
}

static void the_first_list_wins_and_order_stays(void **state)
{
    (void)state;
    char *mine[] = {"B=mine", "ZZ=1", NULL};
    char *theirs[] = {"A=1", "B=theirs", "odd", "B2=2", "A=again", NULL};
    char *const *const lists[] = {mine, NULL, theirs};
    char **merged = variables_merge(lists, 3);
    const char *expected[] = {"B=mine", "ZZ=1", "A=1", "B2=2"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(merged[i], expected[i]);
    }
    assert_null(merged[4]);
    free(merged);
}

static void only_a_file_of_ours_is_read(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES], path[256], link[256];
    struct variables v;
    test_folder_make(folder);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(variables_read(path, &v, NULL), MUSTER_ENOENT);
    assert_int_equal(file_write(path, LITERAL("A=1\0"), 0600, NULL), 0);
    assert_int_equal(variables_read(path, &v, NULL), 0);
    assert_string_equal(v.shell[0], "A=1");
    variables_done(&v);
    assert_int_equal(symlink(path, link), 0);
    assert_true(variables_read(link, &v, NULL) < 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(variables_read(path, &v, NULL), MUSTER_EDATA);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back_in_two_parts),
        cmocka_unit_test(one_part_and_none_are_lists),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(the_first_list_wins_and_order_stays),
        cmocka_unit_test(only_a_file_of_ours_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
