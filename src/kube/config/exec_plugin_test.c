/* Exec plugins: which input they get, what they may print, and how they fail. */
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/time/clock.h"
#include "kube/config/exec_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS = 20000, SHORT_MS = 100, BYTES = 4096, PATH_BYTES = 512 };

#define V1 "client.authentication.k8s.io/v1"

struct scene {
    char folder[TEST_FOLDER_BYTES];
    struct target target;
    struct exec_credential credential;
    struct muster_err err;
};

/* Starts a scene whose plugin is this shell script, called with two arguments. */
static void start(struct scene *s, const char *script)
{
    char path[PATH_BYTES];
    *s = (struct scene){.err = MUSTER_ERR_INIT};
    test_folder_make(s->folder);
    snprintf(path, sizeof path, "%s/plugin", s->folder);
    assert_int_equal(file_write(path, script, strlen(script), 0700, &s->err), 0);
    s->target.server = strdup("https://cluster");
    s->target.ca_pem = strdup("CA");
    s->target.exec_folder = strdup(s->folder);
    s->target.exec = json_pack("{s:s, s:s, s:s, s:s, s:b, s:[s, s], s:[{s:s, s:s}]}", "apiVersion",
                               V1, "command", "./plugin", "interactiveMode", "Never", "installHint",
                               "install it", "provideClusterInfo", 1, "args", "a b", "c", "env",
                               "name", "OF_FILE", "value", "x y");
    assert_int_equal(exec_plugin_check(s->target.exec, &s->err), 0);
}

static void stop(struct scene *s)
{
    exec_credential_done(&s->credential);
    target_done(&s->target);
    test_folder_remove(s->folder);
}

static void read_back(const struct scene *s, const char *name, char ret[BYTES])
{
    char path[PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    assert_int_equal(file_read(path, BYTES - 1, &text, &bytes, NULL), 0);
    snprintf(ret, BYTES, "%s", text);
    free(text);
}

static void it_is_given_what_the_file_says(void **state)
{
    (void)state;
    struct scene s;
    char seen[BYTES];
    start(&s, "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n"
              "printf %s \"$KUBERNETES_EXEC_INFO\" >info\n"
              "printf '%s|%s|%s|' \"$1\" \"$2\" \"$OF_FILE\" >words\ncat >>words\n"
              "echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
              "{\"token\":\"secret\",\"expirationTimestamp\":\"1970-01-01T00:00:02Z\"}}'\n");
    assert_int_equal(exec_plugin_run(&s.target, LIMIT_MS, &s.credential, &s.err), 0);
    assert_string_equal(s.credential.token, "secret");
    assert_null(s.credential.cert_pem);
    assert_int_equal(s.credential.expires_unix_ms, 2000);
    read_back(&s, "words", seen);
    assert_string_equal(seen, "a b|c|x y|"); /* and it has nothing on its standard input */
    read_back(&s, "info", seen);
    assert_string_equal(seen, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":"
                              "{\"interactive\":false,\"cluster\":{\"server\":\"https://cluster\","
                              "\"certificate-authority-data\":\"Q0E=\"}}}");
    stop(&s);
}

struct bad {
    const char *script, *said;
    int64_t limit_ms;
    int code;
};

static void failures_are_told_without_what_it_printed(void **state)
{
    static const struct bad list[] = {
        {"#!/bin/sh\necho secret\nexit 3\n", "ended with exit status 3", LIMIT_MS, MUSTER_EUNAUTH},
        {"#!/bin/sh\necho secret\nkill -9 $$\n", "killed by signal 9", LIMIT_MS, MUSTER_EUNAUTH},
        {"#!/nowhere\n", "cannot be started; install it", LIMIT_MS, MUSTER_EUNAUTH},
        {"#!/bin/sh\necho secret\n", "it printed no JSON", LIMIT_MS, MUSTER_EUNAUTH},
        {"#!/bin/sh\necho secret\nexec sleep 1000\n", "took too long", SHORT_MS, MUSTER_ETIMEDOUT},
        {"#!/bin/sh\nexec >&-\nexec sleep 1000\n", "took too long", SHORT_MS, MUSTER_ETIMEDOUT},
        {"#!/bin/sh\nexec yes secret\n", "printed more than", LIMIT_MS, MUSTER_ETOOBIG},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct scene s;
        start(&s, list[i].script);
        int r = exec_plugin_run(&s.target, list[i].limit_ms, &s.credential, &s.err);
        assert_int_equal(r, list[i].code);
        assert_non_null(strstr(s.err.text, "the user's exec plugin ./plugin"));
        if (!strstr(s.err.text, list[i].said) || strstr(s.err.text, "secret")) {
            fail_msg("\"%s\" does not say \"%s\"", s.err.text, list[i].said);
        }
        stop(&s);
    }
}

#define IS(status) "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"

static void what_is_no_credential_is_refused(void **state)
{
    static const char *const list[][2] = {
        {"[]", "no ExecCredential"},
        {"{\"apiVersion\":\"" V1
         "beta1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}",
         "no ExecCredential of " V1},
        {IS(""), "neither a token nor a certificate"},
        {IS("\"clientCertificateData\":\"c\""), "without its key"},
        {IS("\"token\":\"secret\",\"clientKeyData\":\"secret\""), "without its certificate"},
        {IS("\"token\":\"secret\",\"expirationTimestamp\":\"soon\""), "is no time"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct exec_credential c = {0};
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(exec_credential_read(list[i][0], strlen(list[i][0]), V1, &c, &err),
                         MUSTER_EUNAUTH);
        if (!strstr(err.text, list[i][1]) || strstr(err.text, "secret")) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, list[i][1]);
        }
    }
}

static void without_an_expiry_it_lasts(void **state)
{
    (void)state;
    struct exec_credential c = {0};
    const char *text = IS("\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"");
    assert_int_equal(exec_credential_read(text, strlen(text), V1, &c, NULL), 0);
    assert_string_equal(c.cert_pem, "c");
    assert_string_equal(c.key_pem, "k");
    assert_true(c.expires_unix_ms == INT64_MAX);
    exec_credential_done(&c);
}

static void what_cannot_be_run_is_refused_before(void **state)
{
    static const char *const list[][2] = {
        {"{\"apiVersion\":\"" V1 "\"}", "names no command"},
        {"{\"command\":\"x\",\"apiVersion\":\"" V1 "alpha1\"}", "must be " V1 " or v1beta1"},
        {"{\"command\":\"x\",\"apiVersion\":\"" V1 "\"}", "exec.interactiveMode must be"},
        {"{\"command\":\"x\",\"apiVersion\":\"" V1 "beta1\",\"interactiveMode\":\"Maybe\"}",
         "exec.interactiveMode must be"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        json_t *exec = json_loads(list[i][0], 0, NULL);
        assert_true(exec_plugin_check(exec, &err) < 0);
        if (!strstr(err.text, list[i][1])) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, list[i][1]);
        }
        json_decref(exec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_given_what_the_file_says),
        cmocka_unit_test(failures_are_told_without_what_it_printed),
        cmocka_unit_test(what_is_no_credential_is_refused),
        cmocka_unit_test(without_an_expiry_it_lasts),
        cmocka_unit_test(what_cannot_be_run_is_refused_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
