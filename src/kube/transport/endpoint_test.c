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

/* The files in memory have a limit, as all have (ulimit -f). */
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
    assert_true(kube_endpoint_token_refused(endpoint, 1000000));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_kept_is_asked_for_again),
    };
    (void)signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
