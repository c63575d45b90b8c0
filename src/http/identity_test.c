/* The certificate and the token are made once, can be read by their user only, and are refused when
 * they are damaged. */
#include "http/identity.h"

#include "base/cleanup.h"
#include "base/testing/test_folder.h"

#include <sys/stat.h>

static void an_identity_is_made_once_and_kept(void **state)
{
    const char *folder = *state;
    struct http_identity first, second;
    assert_int_equal(http_identity_load(folder, &first, NULL), 0);
    assert_int_equal(http_identity_load(folder, &second, NULL), 0);
    assert_string_equal(first.cert_pem, second.cert_pem);
    assert_string_equal(first.token, second.token);
    assert_int_equal(strlen(first.token), 64);
    static const char *const secrets[] = {"tls/key.pem", "token"};
    for (size_t i = 0; i < 2; i++) {
        muster_auto(free) char *path = file_join(folder, secrets[i]);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    http_identity_done(&second);
    http_identity_done(&first);
}

static void a_damaged_token_is_refused(void **state)
{
    const char *folder = *state;
    struct http_identity identity;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *token = file_join(folder, "token");
    assert_int_equal(file_write(token, "x\n", 2, 0600, NULL), 0);
    assert_int_equal(http_identity_load(folder, &identity, &err), MUSTER_ECONFIG);
    assert_non_null(strstr(err.text, token));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_identity_is_made_once_and_kept, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_token_is_refused, test_folder_set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
