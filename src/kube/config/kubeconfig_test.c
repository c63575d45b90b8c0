/* Kubeconfigs: which values are read from them, which of several files counts, and the errors of
 * bad ones. */
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "kube/config/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>

static const char first[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: lab\n"
    "clusters:\n"
    "- name: lab\n"
    "  cluster: {server: 'https://10.0.0.1:6443/', certificate-authority-data: Q0E=}\n"
    "- name: open\n"
    "  cluster: {server: 'http://127.0.0.1:8001', proxy-url: 'http://proxy:3128'}\n"
    "users:\n"
    "- name: alice\n"
    "  user: {client-certificate: alice.crt, client-key: /keys/alice.key, token: ''}\n"
    "- name: bob\n"
    "  user: {token: secret, tokenFile: token}\n"
    "- name: carol\n"
    "  user: {exec: {command: aws}}\n"
    "contexts:\n"
    "- name: lab\n"
    "  context: {cluster: lab, user: alice, namespace: team}\n"
    "- name: open\n"
    "  context: {cluster: open, user: bob}\n"
    "- name: nobody\n"
    "  context: {cluster: open}\n"
    "- name: cloud\n"
    "  context: {cluster: lab, user: carol}\n"
    "- name: torn\n"
    "  context: {cluster: gone, user: bob}\n";

static const char second[] = "current-context: open\n"
                             "clusters: [{name: lab, cluster: {server: 'https://other'}}]\n"
                             "contexts: [{name: more, context: {cluster: lab, user: bob}}]\n";

struct scene {
    struct kubeconfig config;
    struct target target;
    struct muster_err err;
};

static void start(struct scene *s)
{
    *s = (struct scene){.err = MUSTER_ERR_INIT};
    assert_int_equal(kubeconfig_init(&s->config, &s->err), 0);
    assert_int_equal(kubeconfig_add(&s->config, first, "/c/one", "/c", &s->err), 0);
}

static void stop(struct scene *s)
{
    kubeconfig_done(&s->config);
    target_done(&s->target);
}

static void a_context_puts_cluster_and_user_together(void **state)
{
    (void)state;
    struct scene s;
    start(&s);
    assert_int_equal(kubeconfig_target(&s.config, NULL, &s.target, &s.err), 0);
    assert_string_equal(s.target.server, "https://10.0.0.1:6443/");
    assert_string_equal(s.target.namespace, "team");
    assert_string_equal(s.target.ca_pem, "CA");
    assert_string_equal(s.target.cert_file, "/c/alice.crt");
    assert_string_equal(s.target.key_file, "/keys/alice.key");
    assert_null(s.target.token);
    assert_false(s.target.insecure);
    target_done(&s.target);
    assert_int_equal(kubeconfig_target(&s.config, "open", &s.target, &s.err), 0);
    assert_string_equal(s.target.token, "secret");
    assert_string_equal(s.target.token_file, "/c/token");
    assert_string_equal(s.target.proxy, "http://proxy:3128");
    assert_null(s.target.namespace);
    target_done(&s.target);
    assert_int_equal(kubeconfig_target(&s.config, "nobody", &s.target, &s.err), 0);
    assert_null(s.target.token);
    stop(&s);
}

static void of_several_files_the_first_counts(void **state)
{
    (void)state;
    struct scene s;
    start(&s);
    assert_int_equal(kubeconfig_add(&s.config, second, "two", ".", &s.err), 0);
    assert_int_equal(kubeconfig_add(&s.config, "", "empty", ".", &s.err), 0);
    assert_int_equal(kubeconfig_target(&s.config, NULL, &s.target, &s.err), 0);
    assert_string_equal(s.target.server, "https://10.0.0.1:6443/");
    target_done(&s.target);
    assert_int_equal(kubeconfig_target(&s.config, "more", &s.target, &s.err), 0);
    assert_string_equal(s.target.server, "https://10.0.0.1:6443/");
    assert_string_equal(s.target.token, "secret");
    stop(&s);
}

static void bad(const char *text, const char *context, const char *said)
{
    struct scene s;
    start(&s);
    int r = text ? kubeconfig_add(&s.config, text, "/c/bad", "/c", &s.err) : 0;
    r = r < 0 ? r : kubeconfig_target(&s.config, context, &s.target, &s.err);
    assert_true(r < 0);
    if (!strstr(s.err.text, said) || strstr(s.err.text, "secret")) {
        fail_msg("\"%s\" does not say \"%s\"", s.err.text, said);
    }
    stop(&s);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    bad(NULL, "prod", "no context \"prod\" in /c/one (there are: lab, open, nobody");
    bad(NULL, "torn", "no cluster \"gone\"");
    bad(NULL, "cloud", "exec.apiVersion must be");
    bad("clusters: 7\n", NULL, "/c/bad: clusters is not a list");
    bad("users:\n- name: x\n", NULL, "/c/bad: users[0] needs name and user");
    bad("a: [b\n", NULL, "/c/bad:");
    bad("- 1\n", NULL, "/c/bad is no kubeconfig");
    bad("clusters: [{name: x, cluster: {server: 'https://x', certificate-authority-data: '%%'}}]\n"
        "contexts: [{name: x, context: {cluster: x}}]\n",
        "x", "certificate-authority-data: not base64");
}

static void a_missing_kubeconfig_is_said(void **state)
{
    (void)state;
    struct kubeconfig config;
    struct target target = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(kubeconfig_init(&config, &err), 0);
    assert_int_equal(kubeconfig_target(&config, NULL, &target, &err), MUSTER_ECONFIG);
    assert_non_null(strstr(err.text, "there is no kubeconfig"));
    assert_int_equal(kubeconfig_add(&config, "users: []\n", "/c/one", "/c", &err), 0);
    assert_int_equal(kubeconfig_target(&config, NULL, &target, &err), MUSTER_ECONFIG);
    assert_non_null(strstr(err.text, "/c/one names no current-context"));
    kubeconfig_done(&config);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void files_are_read_beside_it(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES], path[400];
    struct target t = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(folder);
    write_text(folder, "ca.crt", "CA");
    write_text(
        folder, "config",
        "current-context: x\n"
        "clusters: [{name: x, cluster: {server: 'https://x//', certificate-authority: ca.crt}}]\n"
        "users: [{name: half, user: {client-certificate: ca.crt}}]\n"
        "contexts: [{name: x, context: {cluster: x}}, {name: half, context: {cluster: x, user: half}}]\n");
    snprintf(path, sizeof path, "%s/none:%s/config", folder, folder);
    setenv("KUBECONFIG", path, 1);
    assert_int_equal(kubeconfig_load(NULL, NULL, &t, &err), 0);
    assert_string_equal(t.server, "https://x");
    assert_string_equal(t.ca_pem, "CA");
    assert_string_equal(t.namespace, "default");
    target_done(&t);
    assert_int_equal(kubeconfig_load(NULL, "half", &t, &err), MUSTER_ECONFIG);
    assert_int_equal(kubeconfig_load("/nonexistent", NULL, &t, &err), MUSTER_ENOENT);
    setenv("KUBECONFIG", "/nonexistent", 1);
    assert_int_equal(kubeconfig_load(NULL, NULL, &t, &err), MUSTER_ECONFIG);
    test_folder_remove(folder);
}

static void a_pod_finds_its_cluster(void **state)
{
    (void)state;
    char folder[TEST_FOLDER_BYTES];
    struct target t = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(folder);
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(target_in_cluster(folder, &t, &err), MUSTER_ENOENT);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_true(target_in_cluster(folder, &t, &err) < 0);
    write_text(folder, "ca.crt", "CA");
    write_text(folder, "namespace", "team\n");
    assert_int_equal(target_in_cluster(folder, &t, &err), 0);
    assert_string_equal(t.server, "https://[fd00::1]:443");
    assert_string_equal(t.namespace, "team");
    assert_string_equal(t.ca_pem, "CA");
    assert_non_null(strstr(t.token_file, "/token"));
    target_done(&t);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_puts_cluster_and_user_together),
        cmocka_unit_test(of_several_files_the_first_counts),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_missing_kubeconfig_is_said),
        cmocka_unit_test(files_are_read_beside_it),
        cmocka_unit_test(a_pod_finds_its_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
