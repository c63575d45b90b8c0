/* An endpoint whose exec plugin gives a certificate that cannot be kept. */
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "kube/transport/endpoint.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PATH_BYTES = 512 };

#define V1 "client.authentication.k8s.io/v1"

static const char plugin[] =
    "#!/bin/sh\n"
    "echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
    "{\"clientCertificateData\":\"certificate\",\"clientKeyData\":\"key\"}}'\n";

static struct kube_endpoint *open_endpoint(const char *folder)
{
    char path[PATH_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    struct kube_endpoint *endpoint = NULL;
    snprintf(path, sizeof path, "%s/plugin", folder);
    assert_int_equal(file_write(path, plugin, strlen(plugin), 0700, &err), 0);
    struct target target = {
        .server = strdup("https://cluster"),
        .exec_folder = strdup(folder),
        .exec = json_pack("{s:s, s:s, s:s}", "apiVersion", V1, "command", "./plugin",
                          "interactiveMode", "Never"),
    };
    assert_int_equal(kube_endpoint_open(&target, &endpoint, &err), 0);
    return endpoint;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

/* The size limit of files (ulimit -f) also holds for files in memory, so that they cannot be
 * written. */
static void what_was_not_kept_is_asked_for_again(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(folder);
    CURL *easy = curl_easy_init();
    struct kube_endpoint *endpoint = open_endpoint(folder);
    size_t before = count_descriptors();
    limit_files(strlen("certificate"));
    assert_int_equal(kube_endpoint_apply(endpoint, easy, "/", &err), 0); /* both just fit */
    size_t kept = count_descriptors();
    assert_int_equal(kept, before + 2);
    assert_true(kube_endpoint_token_refused(endpoint, 1000000, 1000000));
    limit_files(1);
    assert_int_equal(kube_endpoint_apply(endpoint, easy, "/", &err), MUSTER_EOS);
    assert_int_equal(kube_endpoint_apply(endpoint, easy, "/", &err), MUSTER_EOS);
    assert_int_equal(count_descriptors(), kept);
    limit_files(RLIM_INFINITY);
    assert_int_equal(kube_endpoint_apply(endpoint, easy, "/", &err), 0);
    kube_endpoint_close(endpoint);
    assert_int_equal(count_descriptors(), before);
    curl_easy_cleanup(easy);
    test_folder_remove(folder);
}

/* Checks that the endpoint uses the token `shown` at this time. */
static void expect_token(struct kube_endpoint *endpoint, int64_t now_ms, const char *shown)
{
    struct curl_slist *headers = NULL;
    assert_int_equal(kube_endpoint_authorize(endpoint, now_ms, &headers, NULL), 0);
    assert_non_null(headers);
    assert_string_equal(headers->data + strlen("Authorization: Bearer "), shown);
    curl_slist_free_all(headers);
}

/* Three requests were in progress with the old token, and each of them is sent once more. */
static void of_many_that_are_refused_each_has_the_next_token(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES], path[PATH_BYTES];
    struct muster_err err = MUSTER_ERR_INIT;
    struct kube_endpoint *endpoint = NULL;
    test_folder_make(folder);
    snprintf(path, sizeof path, "%s/token", folder);
    assert_int_equal(file_write(path, "old", 3, 0600, &err), 0);
    struct target target = {.server = strdup("https://cluster"), .token_file = strdup(path)};
    assert_int_equal(kube_endpoint_open(&target, &endpoint, &err), 0);
    expect_token(endpoint, 10000, "old");
    assert_int_equal(file_write(path, "new", 3, 0600, &err), 0);
    expect_token(endpoint, 20000, "old"); /* the file is read once a minute */
    assert_true(kube_endpoint_token_refused(endpoint, 20000, 20010));
    expect_token(endpoint, 20011, "new");
    assert_true(kube_endpoint_token_refused(endpoint, 20000, 20012));
    expect_token(endpoint, 20013, "new");
    assert_true(kube_endpoint_token_refused(endpoint, 20000, 20014));
    assert_false(kube_endpoint_token_refused(endpoint, 20013, 20015)); /* the new one, too */
    expect_token(endpoint, 20016, "new");
    kube_endpoint_close(endpoint);
    test_folder_remove(folder);
}

/* An exec plugin is run once for all requests that are refused. */
static void of_many_that_are_refused_one_asks_the_plugin(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES];
    test_folder_make(folder);
    struct kube_endpoint *endpoint = open_endpoint(folder);
    assert_true(kube_endpoint_token_refused(endpoint, 20000, 20010));
    assert_true(kube_endpoint_token_refused(endpoint, 20001, 20012));
    assert_false(kube_endpoint_token_refused(endpoint, 20011, 20013));
    assert_true(kube_endpoint_token_refused(endpoint, 20011, 21010));
    kube_endpoint_close(endpoint);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_kept_is_asked_for_again),
        cmocka_unit_test(of_many_that_are_refused_each_has_the_next_token),
        cmocka_unit_test(of_many_that_are_refused_one_asks_the_plugin),
    };
    (void)signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
