/* Checks that a log file that is opened again is continued, and that one that is too long is put
 * aside. */
#include "base/log_file.h"

#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES_MAX = 10 };

static void append(const char *folder, const char *text)
{
    muster_auto(close) int fd = log_file_open(folder, "a.log", BYTES_MAX);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* `text` is NULL if there is no such file. */
static void expect(const char *folder, const char *name, const char *text)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *is = NULL;
    if (!text) {
        assert_false(file_exists(path));
        return;
    }
    assert_int_equal(file_read(path, 4096, &is, NULL, NULL), 0);
    assert_string_equal(is, text);
}

static void it_goes_on_until_it_is_too_long(void **state)
{
    const char *folder = *state;
    append(folder, "12345");
    append(folder, "67890");
    append(folder, "!");
    expect(folder, "a.log", "1234567890!");
    expect(folder, "a.log.old", NULL);
}

static void one_that_is_too_long_takes_the_place_of_the_one_before(void **state)
{
    const char *folder = *state;
    append(folder, "the first, of more bytes");
    append(folder, "the second, of more bytes");
    expect(folder, "a.log", "the second, of more bytes");
    expect(folder, "a.log.old", "the first, of more bytes");
    append(folder, "3");
    expect(folder, "a.log", "3");
    expect(folder, "a.log.old", "the second, of more bytes");
}

static void it_is_for_its_user_alone(void **state)
{
    const char *folder = *state;
    muster_auto(free) char *path = file_join(folder, "a.log");
    struct stat is;
    append(folder, "1");
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
}

/* A folder with the name of the old file cannot be replaced by the file. */
static void what_cannot_be_put_aside_stays(void **state)
{
    const char *folder = *state;
    muster_auto(free) char *old = file_join(folder, "a.log.old");
    assert_int_equal(mkdir(old, 0700), 0);
    append(folder, "more than ten bytes");
    append(folder, ", and more");
    expect(folder, "a.log", "more than ten bytes, and more");
}

static void what_cannot_be_opened_is_an_error(void **state)
{
    const char *folder = *state;
    muster_auto(free) char *path = file_join(folder, "a.log");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(log_file_open(folder, "a.log", 1 << 20), -1);
    assert_int_equal(errno, EISDIR);
}

int main(void)
{
#define IN_A_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, test_folder_set_up, test_folder_tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(it_goes_on_until_it_is_too_long),
        IN_A_FOLDER(one_that_is_too_long_takes_the_place_of_the_one_before),
        IN_A_FOLDER(it_is_for_its_user_alone),
        IN_A_FOLDER(what_cannot_be_put_aside_stays),
        IN_A_FOLDER(what_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
