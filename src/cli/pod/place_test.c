/* Checks the paths of a pod on this machine, and that files are copied from them. */
#include "cli/pod/place.h"

#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "cli/pod/copy.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[TEST_FOLDER_BYTES];

static int make_folder(void **state)
{
    (void)state;
    test_folder_make(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static char *under(const char *name)
{
    return file_join(folder, name);
}

static void put(const char *name, const char *text)
{
    char *path = under(name);
    assert_int_equal(file_write(path, text, strlen(text), 0640, NULL), 0);
    free(path);
}

static void make(const char *name)
{
    char *path = under(name);
    assert_int_equal(file_mkdir(path, 0700, NULL), 0);
    free(path);
}

static void paths_go_through_the_deepest_mount(void **state)
{
    (void)state;
    json_t *place = json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s}]}", "cwd", "/work",
                              "mounts", "mountPath", "/data", "hostPath", "/v/data", "mountPath",
                              "/data/deep/", "hostPath", "/v/deep", "mountPath", "/part",
                              "hostPath", "/v/all", "subPath", "rank-0");
    static const char *const cases[][2] = {
        {"/data", "/v/data"},
        {"/data/x/y", "/v/data/x/y"},
        {"/data/deep", "/v/deep"},
        {"/data/deep/x", "/v/deep/x"},
        {"/data/deeper", "/v/data/deeper"},
        {"/part", "/v/all/rank-0"},
        {"/part/x", "/v/all/rank-0/x"},
        {"/database", "/database"},
        {"model.pt", "/work/model.pt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = place_resolve(place, cases[i][0]);
        assert_string_equal(path, cases[i][1]);
        free(path);
    }
    json_decref(place);
}

static void relative_path_is_looked_for_in_the_mounts_first(void **state)
{
    (void)state;
    make("mount");
    put("mount/model.pt", "weights");
    char *mount = under("mount");
    json_t *place = json_pack("{s:s, s:[{s:s, s:s}]}", "cwd", "/work", "mounts", "mountPath",
                              "/results", "hostPath", mount);
    char *found = place_resolve(place, "model.pt");
    char *expected = under("mount/model.pt");
    assert_string_equal(found, expected);
    free(found);
    free(expected);
    free(mount);
    json_decref(place);
}

static void trees_are_copied_with_links_and_modes(void **state)
{
    (void)state;
    struct stat info;
    char target[64];
    make("from/sub");
    put("from/sub/file", "text");
    char *from = under("from");
    char *to = under("to/here");
    char *link = under("from/link");
    char *copied_link = under("to/here/link");
    char *copied = under("to/here/sub/file");
    assert_int_equal(symlink("sub/file", link), 0);
    assert_int_equal(copy_tree(from, to, NULL), 0);
    assert_int_equal(copy_tree(from, to, NULL), 0); /* again, over the existing files */
    assert_int_equal(stat(copied, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(readlink(copied_link, target, sizeof target), strlen("sub/file"));
    free(from);
    free(to);
    free(link);
    free(copied_link);
    free(copied);
}

static void missing_source_is_named(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(copy_tree("/no/such/file", folder, &err), MUSTER_ENOENT);
    assert_string_equal(err.text, "cannot read /no/such/file: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_go_through_the_deepest_mount),
        cmocka_unit_test(relative_path_is_looked_for_in_the_mounts_first),
        cmocka_unit_test(trees_are_copied_with_links_and_modes),
        cmocka_unit_test(missing_source_is_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
