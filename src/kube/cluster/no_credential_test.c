/* A cluster whose exec plugin fails: the failure is reported, and the plugin is run again at longer
 * and longer intervals. */
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "base/text.h"
#include "kube/cluster/kube_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 512, TEXT_BYTES = 512, TIMEOUT_MS = 300 };

#define V1 "client.authentication.k8s.io/v1"

static const struct cluster_resource pods = {"", "v1", "pods", "Pod", true};

struct told {
    int count;
    int code;
    char message[TEXT_BYTES];
};

struct scene {
    char folder[TEST_FOLDER_BYTES];
    uv_loop_t loop;
    struct cluster *cluster;
};

static void write_plugin(const struct scene *s, const char *script)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/plugin", s->folder);
    assert_int_equal(file_write(path, script, strlen(script), 0700, NULL), 0);
}

static void start(struct scene *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    test_folder_make(s->folder);
    write_plugin(s, "#!/bin/sh\nexit 3\n");
    assert_int_equal(uv_loop_init(&s->loop), 0);
    struct target target = {
        .server = strdup("http://127.0.0.1:1"), /* no server listens there */
        .exec_folder = strdup(s->folder),
        .exec = json_pack("{s:s, s:s, s:s}", "apiVersion", V1, "command", "./plugin",
                          "interactiveMode", "Never"),
    };
    assert_int_equal(kube_cluster_open(&s->loop, &target, NULL, &s->cluster, &err), 0);
}

static void stop(struct scene *s)
{
    kube_cluster_close(s->cluster);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    test_folder_remove(s->folder);
}

static void hear(struct told *told, int code, const char *message)
{
    told->count++;
    told->code = code;
    text_copy(told->message, sizeof told->message, message);
}

static void on_news(void *arg, const struct cluster_change *change)
{
    assert_int_equal(change->news, CLUSTER_TROUBLE);
    hear(arg, change->code, change->message);
}

static void on_answer(void *arg, const struct cluster_answer *answer)
{
    hear(arg, answer->code, answer->message);
    assert_false(answer->unsure);
}

static void run_until(struct scene *s, const struct told *told, int count)
{
    for (int64_t end = 0; told->count < count;) {
        assert_true(test_turn(&end));
        uv_run(&s->loop, UV_RUN_NOWAIT);
    }
}

static void a_watch_tells_it_and_goes_on(void **state)
{
    (void)state;
    struct scene s;
    struct told told = {0};
    struct cluster_watch *watch = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_scope scope = {.resource = &pods};
    start(&s);
    assert_int_equal(s.cluster->backend->watch(s.cluster, &scope, on_news, &told, &watch, &err), 0);
    run_until(&s, &told, 2);
    assert_int_equal(told.code, MUSTER_EUNAUTH);
    assert_non_null(strstr(told.message, "the user's exec plugin ./plugin: it ended with exit"));
    write_plugin(&s, "#!/bin/sh\necho '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
                     "\"status\":{\"token\":\"secret\"}}'\n");
    while (told.code == MUSTER_EUNAUTH) {
        run_until(&s, &told, told.count + 1);
    }
    assert_int_equal(told.code, MUSTER_EUNAVAIL);
    s.cluster->backend->unwatch(watch);
    stop(&s);
}

static void a_request_says_why_it_was_not_sent(void **state)
{
    (void)state;
    struct scene s;
    struct told told = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_request request = {
        .verb = CLUSTER_LIST, .resource = &pods, .timeout_ms = TIMEOUT_MS};
    start(&s);
    assert_int_equal(s.cluster->backend->send(s.cluster, &request, on_answer, &told, NULL, &err),
                     0);
    run_until(&s, &told, 1);
    assert_int_equal(told.code, MUSTER_EUNAUTH);
    assert_non_null(strstr(told.message, "exit status 3"));
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_tells_it_and_goes_on),
        cmocka_unit_test(a_request_says_why_it_was_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
