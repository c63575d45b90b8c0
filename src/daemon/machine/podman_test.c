/* The words of `podman run`, for a container with every field that matters. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "daemon/machine/podman.h"

#include <stdlib.h>

static void everything_becomes_a_flag(void **state)
{
    (void)state;
    muster_auto(doc) json_t *container =
        parse("{\"name\":\"pytorch\",\"image\":\"team/mnist\",\"workingDir\":\"/w\"}");
    muster_auto(doc) json_t *env = parse("{\"RANK\":\"1\",\"PATH\":\"/in\"}");
    muster_auto(doc) json_t *outer = parse("{}");
    char *shell[] = {"PATH=/bin", "LANG=C", "WANDB_MODE=offline", "API_KEY=old", NULL};
    char *given[] = {"API_KEY=secret", "HOME=/root", "RANK=7", NULL};
    muster_auto(doc) json_t *command = parse("[\"python\",\"t.py\"]");
    muster_auto(doc) json_t *args = parse("[\"--x\"]");
    muster_auto(doc) json_t *mounts =
        parse("[{\"hostPath\":\"/v\",\"mountPath\":\"/data\",\"readOnly\":true}]");
    muster_auto(doc) json_t *limits = parse("{\"memoryBytes\":1048576,\"cpuMillis\":1500}");
    muster_auto(doc) json_t *services = parse("{'namespace':'team','names':['a-master-0']}");
    const struct podman_container c = {.container = container,
                                       .env = env,
                                       .shell = shell,
                                       .given = given,
                                       .command = command,
                                       .args = args,
                                       .mounts = mounts,
                                       .limits = limits,
                                       .services = services,
                                       .host_ipc = true,
                                       .name = "muster-1",
                                       .auth_file = "/a.json",
                                       .flags = "--ulimit 'nofile=1:1'"};
    muster_auto(doc) json_t *words = NULL;
    assert_int_equal(podman_words(&c, outer, &words, NULL), 0);
    muster_auto(free) char *text = doc_print(words);
    assert_string_equal(
        text,
        "[\"podman\",\"run\",\"--rm\",\"--replace\",\"--network=host\",\"--ipc=host\",\"--log-driver=passthrough\","
        "\"--name=muster-1\",\"--pull=always\",\"--authfile=/a.json\",\"--workdir=/w\",\"--env=RANK\","
        "\"--env=PATH=/in\",\"--env=API_KEY\",\"--env=HOME=/root\",\"--env=WANDB_MODE\","
        "\"--volume=/v:/data:ro\",\"--memory=1048576b\",\"--cpus=1.500\","
        "\"--add-host=a-master-0:127.0.0.1\",\"--add-host=a-master-0.team:127.0.0.1\","
        "\"--add-host=a-master-0.team.svc:127.0.0.1\",\"--add-host=a-master-0.team.svc.cluster.local:127.0.0.1\","
        "\"--ulimit\",\"nofile=1:1\",\"--entrypoint=python\",\"team/mnist\",\"t.py\",\"--x\"]");
    assert_string_equal(doc_text(outer, "RANK", ""), "1");
    assert_null(doc_at(outer, "PATH"));
    assert_string_equal(doc_text(outer, "HOME", ""), getenv("HOME")); /* for podman itself */
}

static void without_a_command_the_image_decides(void **state)
{
    (void)state;
    static const struct {
        const char *container, *pull;
    } table[] = {
        {"{\"image\":\"a:1.0\"}", "--pull=missing"},
        {"{\"image\":\"host:5000/a\"}", "--pull=always"},
        {"{\"image\":\"a:latest\"}", "--pull=always"},
        {"{\"image\":\"a:latest\",\"imagePullPolicy\":\"Never\"}", "--pull=never"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        muster_auto(doc) json_t *container = parse(table[i].container);
        const struct podman_container c = {.container = container, .name = "n"};
        muster_auto(doc) json_t *words = NULL;
        muster_auto(doc) json_t *outer = json_object();
        assert_int_equal(podman_words(&c, outer, &words, NULL), 0);
        assert_string_equal(json_string_value(json_array_get(words, 8)), table[i].pull);
        assert_string_equal(json_string_value(json_array_get(words, json_array_size(words) - 1)),
                            doc_text(container, "image", ""));
    }
}

static void a_command_in_a_container_that_runs(void **state)
{
    (void)state;
    muster_auto(doc) json_t *command = parse("[\"sh\",\"-c\",\"ls\"]");
    muster_auto(doc) json_t *quiet = podman_exec_words("muster-1-c", false, false, command);
    muster_auto(doc) json_t *shell = podman_exec_words("muster-1-c", true, true, command);
    muster_auto(free) char *first = doc_print(quiet);
    muster_auto(free) char *second = doc_print(shell);
    assert_string_equal(first, "[\"podman\",\"exec\",\"muster-1-c\",\"sh\",\"-c\",\"ls\"]");
    assert_string_equal(second, "[\"podman\",\"exec\",\"--interactive\",\"--tty\",\"muster-1-c\","
                                "\"sh\",\"-c\",\"ls\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_becomes_a_flag),
        cmocka_unit_test(without_a_command_the_image_decides),
        cmocka_unit_test(a_command_in_a_container_that_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
