/* hostPath volumes: each type with each kind of file that exists, and the files that are made. */
#include "process/machine/host_path.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <stdlib.h>
#include <sys/stat.h>

static char folder[TEST_FOLDER_BYTES];

static int set_up(void **state)
{
    (void)state;
    test_folder_make(folder);
    muster_auto(free) char *file = file_join(folder, "file");
    muster_auto(free) char *inner = file_join(folder, "dir");
    assert_int_equal(file_write(file, "x", 1, 0600, NULL), 0);
    return file_mkdir(inner, 0700, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static const char *fault_of(const char *name, const char *type)
{
    const char *hint = NULL;
    muster_auto(free) char *path = file_join(folder, name);
    const char *fault = host_path_fault(path, type, &hint);
    return fault ? fault : "fine";
}

static void each_type_wants_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type, *fault;
    } cases[] = {
        {"dir", "", "fine"},
        {"file", "", "fine"},
        {"none", "", "does not exist on this machine"},
        {"file/under", "", "does not exist on this machine"},
        {"dir", "Directory", "fine"},
        {"file", "Directory", "is not a directory"},
        {"none", "Directory", "does not exist on this machine"},
        {"none/deep", "DirectoryOrCreate", "fine"},
        {"dir", "DirectoryOrCreate", "fine"},
        {"file", "DirectoryOrCreate", "is not a directory"},
        {"file", "File", "fine"},
        {"dir", "File", "is not a file"},
        {"none", "File", "does not exist on this machine"},
        {"none", "FileOrCreate", "fine"},
        {"none/deep", "FileOrCreate", "is in a directory that does not exist on this machine"},
        {"dir", "FileOrCreate", "is not a file"},
        {"file", "Socket", "is not a socket"},
        {"file", "CharDevice", "is not a character device"},
        {"file", "BlockDevice", "is not a block device"},
        {"none", "Socket", "does not exist on this machine"},
        {"dir", "directory", "has an unknown type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(fault_of(cases[i].name, cases[i].type), cases[i].fault);
    }
}

static void the_hint_fits_the_type(void **state)
{
    (void)state;
    const char *hint = NULL;
    (void)host_path_fault("/no/such", "", &hint);
    assert_string_equal(hint, "type: DirectoryOrCreate makes the directory");
    (void)host_path_fault("/no/such", "File", &hint);
    assert_string_equal(hint, "make the file, or correct the path");
    (void)host_path_fault("/no/such", "Socket", &hint);
    assert_null(hint);
    (void)host_path_fault("/", "Directory", &hint);
    assert_null(hint);
}

static void or_create_makes_it(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct stat info;
    muster_auto(free) char *deep = file_join(folder, "a/b");
    muster_auto(free) char *file = file_join(folder, "a/b/c");
    assert_int_equal(host_path_prepare(deep, "Directory", &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "a/b does not exist on this machine; type: "));
    assert_int_equal(host_path_prepare(deep, "DirectoryOrCreate", &err), 0);
    assert_int_equal(host_path_prepare(file, "FileOrCreate", &err), 0);
    assert_int_equal(stat(file, &info), 0);
    assert_true(S_ISREG(info.st_mode) && info.st_size == 0);
    assert_int_equal(file_write(file, "kept", 4, 0600, NULL), 0);
    assert_int_equal(host_path_prepare(file, "FileOrCreate", &err), 0);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_size, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_type_wants_its_own, set_up, tear_down),
        cmocka_unit_test(the_hint_fits_the_type),
        cmocka_unit_test_setup_teardown(or_create_makes_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
