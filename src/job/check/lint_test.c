/* Golden tables: every file of test/data/lint and test/data/jobs, and everything that lint reports
 * about it.
 *
 * FILE.yaml is compared with FILE.expected beside it; if there is no such file, lint must report
 * nothing. MUSTER_UPDATE=1 writes the expected files again: read the diff before you commit it.
 */
#include "base/file.h"
#include "base/testing/test.h"
#include "job/file/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES_MAX = 1 << 20, FILES_MAX = 256 };

static char *lint(const char *path, const char *shown)
{
    char *text = NULL;
    size_t bytes = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    if (file_read(path, TEXT_BYTES_MAX, &text, &bytes, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct job_file file = {0};
    struct job_problems problems;
    struct buf out;
    job_problems_init(&problems, 100);
    problems.advice = true;
    buf_init(&out, TEXT_BYTES_MAX);
    int r = job_file_read(text, bytes, &file, &problems, &err);
    if (r != 0) {
        buf_format(&out, "%s: %s\n", shown, err.text);
    }
    job_problems_print(&problems, shown, &out);
    job_problems_done(&problems);
    job_file_done(&file);
    free(text);
    char *printed = buf_steal(&out);
    assert_non_null(printed);
    return printed;
}

static char *read_expected(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    if (!file_exists(path) || file_read(path, TEXT_BYTES_MAX, &text, &bytes, NULL) != 0) {
        return strdup("");
    }
    return text;
}

static void update(const char *path, const char *actual)
{
    if (*actual) {
        assert_int_equal(file_write(path, actual, strlen(actual), 0644, NULL), 0);
    } else {
        (void)remove(path);
    }
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static void compare(const char *folder, const char *name)
{
    char path[4096], expected_path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t stem = strlen(path) - (ends_with(name, ".yaml") ? strlen(".yaml") : strlen(".json"));
    snprintf(expected_path, sizeof expected_path, "%.*s.expected", (int)stem, path);
    char *actual = lint(path, name);
    if (getenv("MUSTER_UPDATE")) {
        update(expected_path, actual);
    }
    char *expected = read_expected(expected_path);
    if (strcmp(actual, expected) != 0) {
        fail_msg("%s\n--- expected\n%s--- lint says\n%s", path, expected, actual);
    }
    free(actual);
    free(expected);
}

static int compare_folder(const char *name)
{
    char folder[2048];
    const char *source = getenv("MUSTER_SOURCE");
    snprintf(folder, sizeof folder, "%s/test/data/%s", source ? source : ".", name);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (ends_with(entry->d_name, ".yaml") || ends_with(entry->d_name, ".json")) {
            compare(folder, entry->d_name);
            count++;
        }
    }
    closedir(dir);
    return count;
}

static void broken_files_are_explained(void **state)
{
    (void)state;
    assert_true(compare_folder("lint") >= 10);
}

static void jobs_of_the_field_are_read(void **state)
{
    (void)state;
    assert_true(compare_folder("jobs") >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_files_are_explained),
        cmocka_unit_test(jobs_of_the_field_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
