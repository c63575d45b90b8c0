/* Checks where the API's socket is, and that its folder and the home belong to this user alone. */
#include "base/home.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEEP = 100 };

/* Sets a home whose socket does not fit into a socket's address. */
static void set_deep_home(const char *folder)
{
    char name[DEEP + 1];
    memset(name, 'd', DEEP);
    name[DEEP] = '\0';
    muster_auto(free) char *deep = file_join(folder, name);
    assert_int_equal(setenv("MUSTER_HOME", deep, 1), 0);
}

static void a_deep_home_has_its_socket_in_a_folder_of_ours_alone(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES];
    struct home home;
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(folder);
    set_deep_home(folder);
    assert_int_equal(home_open(&home, &err), 0);
    assert_memory_equal(home.socket, "/tmp/muster-", 12);
    muster_auto(free) char *beside = strndup(home.socket, strlen(home.socket) - sizeof "api.sock");
    home_done(&home);
    assert_int_equal(chmod(beside, 0777), 0);
    assert_int_equal(home_open(&home, &err), MUSTER_ECREATE);
    assert_non_null(strstr(err.text, beside));
    assert_int_equal(rmdir(beside), 0);
    test_folder_remove(folder);
}

static void a_path_that_the_store_cannot_take_is_refused(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES], name[DEEP + 1];
    struct home home;
    struct muster_err err = MUSTER_ERR_INIT;
    memset(name, 'd', DEEP);
    name[DEEP] = '\0';
    test_folder_make(folder);
    muster_auto(free) char *path = strdup(folder);
    while (strlen(path) <= HOME_PATH_BYTES_MAX) {
        char *deeper = file_join(path, name);
        free(path);
        path = deeper;
    }
    assert_int_equal(setenv("MUSTER_HOME", path, 1), 0);
    assert_int_equal(home_open(&home, &err), MUSTER_ECREATE);
    assert_non_null(strstr(err.text, "set MUSTER_HOME to a shorter one"));
    test_folder_remove(folder);
}

/* Runs without HOME as a user that has no entry in passwd; only root can become such a user. */
static int homes_of_nobody(void)
{
    enum { NOBODY_KNOWN = 54321 };
    char folder[64];
    struct home home;
    struct muster_err err = MUSTER_ERR_INIT;
    unsetenv("MUSTER_HOME");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    if (setresuid(NOBODY_KNOWN, NOBODY_KNOWN, NOBODY_KNOWN) < 0) {
        return 1;
    }
    (void)snprintf(folder, sizeof folder, "/tmp/muster-home-%d", NOBODY_KNOWN);
    if (home_open(&home, &err) != 0 || strcmp(home.path, folder) != 0) {
        return 2;
    }
    home_done(&home);
    if (chmod(folder, 0770) < 0 || home_open(&home, &err) != MUSTER_ECREATE ||
        !strstr(err.text, folder)) {
        return 3;
    }
    if (rmdir(folder) < 0 || symlink("/tmp", folder) < 0 ||
        home_open(&home, &err) != MUSTER_ECREATE) {
        return 4;
    }
    return unlink(folder) < 0 ? 5 : 0;
}

static void a_home_in_tmp_is_ours_alone(void **state)
{
    (void)state;
    int status = -1;
    if (geteuid() != 0) {
        skip();
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(homes_of_nobody());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_home_in_tmp_is_ours_alone),
        cmocka_unit_test(a_path_that_the_store_cannot_take_is_refused),
        cmocka_unit_test(a_deep_home_has_its_socket_in_a_folder_of_ours_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
