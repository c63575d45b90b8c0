/* How a pod's container becomes the spec that the supervisor executes. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/testing/test_folder.h"
#include "daemon/machine/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The data that a test changes. */
struct scene {
    const char *job; /* NULL: a pod without a job */
    const char *pod; /* more members of its spec */
    const char *container;
    const char *gpus;
    bool hide_gpus;
    const char *environment; /* content of the environment's file; NULL: there is no file */
    size_t environment_bytes;
};

static int find_none(void *data, const char *resource, const char *namespace, const char *name,
                     json_t **ret, struct muster_err *err)
{
    (void)data;
    (void)namespace;
    (void)ret;
    return muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", resource, name);
}

static json_t *with(const char *format, const char *rest)
{
    muster_auto(free) char *text = NULL;
    assert_true(asprintf(&text, format, rest) > 0);
    return parse(text);
}

static int launch(const char *folder, const struct scene *s, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *job = s->job ? parse(s->job) : NULL;
    muster_auto(doc) json_t *pod =
        with("{'metadata': {'name': 'p', 'namespace': 'default', 'uid': 'u'}, 'spec': {%s}}",
             s->pod ? s->pod : "");
    muster_auto(doc) json_t *container =
        with("{'name': 'pytorch', 'image': 'i', %s}", s->container);
    muster_auto(free) char *path = file_join(folder, "environment");
    doc_set(pod, "spec.containers", json_pack("[O]", container));
    if (s->environment) {
        assert_int_equal(file_write(path, s->environment, s->environment_bytes, 0600, NULL), 0);
    }
    const struct launch l = {.job = job,
                             .pod = pod,
                             .container = container,
                             .gpus = s->gpus,
                             .hide_gpus = s->hide_gpus,
                             .volumes = {.home = folder, .folder = folder, .find = find_none},
                             .node_name = "node",
                             .environment_file = s->environment ? path : NULL};
    return launch_spec(&l, ret, err);
}

static json_t *spec_of(const char *folder, const struct scene *s)
{
    json_t *spec = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (launch(folder, s, &spec, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return spec;
}

static void expect(const json_t *spec, const char *path, const char *expected)
{
    const json_t *value = doc_at(spec, path);
    muster_auto(free) char *text = json_is_string(value) ? strdup(json_string_value(value))
                                   : value               ? doc_print(value)
                                                         : strdup("absent");
    assert_string_equal(text, expected);
}

#define RUN "'command': ['train', '$(RANK)', '$(NOBODY)', '$$(RANK)']"

static void words_are_expanded_and_the_environment_is_complete(void **state)
{
    const struct scene s = {.container = RUN ", 'env': [{'name': 'RANK', 'value': '3'}]"};
    muster_auto(doc) json_t *spec = spec_of(*state, &s);
    expect(spec, "argv", "[\"train\",\"3\",\"$(NOBODY)\",\"$(RANK)\"]");
    expect(spec, "env.RANK", "3");
    expect(spec, "env.MUSTER_POD", "p");
    expect(spec, "env.MUSTER_JOB", "");
    expect(spec, "podName", "p");
    expect(spec, "mounts", "[]");
    expect(spec, "environmentFile", "absent");
    expect(spec, "cwd", getenv("HOME") ? getenv("HOME") : "/");
}

static void gpus_are_given_or_hidden(void **state)
{
    const struct scene given = {.container = RUN, .gpus = "0,1", .hide_gpus = true};
    const struct scene hidden = {.container = RUN, .hide_gpus = true};
    const struct scene none = {
        .job =
            "{'metadata': {'name': 'j', 'uid': 'ju', 'annotations': {'muster.dev/gpu': 'none'}}}",
        .container = RUN};
    muster_auto(doc) json_t *with_gpus = spec_of(*state, &given);
    muster_auto(doc) json_t *without = spec_of(*state, &hidden);
    muster_auto(doc) json_t *of_job = spec_of(*state, &none);
    expect(with_gpus, "env.CUDA_VISIBLE_DEVICES", "0,1");
    expect(without, "env.CUDA_VISIBLE_DEVICES", "");
    expect(of_job, "env.CUDA_VISIBLE_DEVICES", "");
    expect(of_job, "env.MUSTER_JOB", "j");
    expect(of_job, "env.MUSTER_JOB_UID", "ju");
}

static void limits_are_bytes_and_thousandths(void **state)
{
    const struct scene s = {.container =
                                RUN ", 'resources': {'limits': {'memory': '1Gi', 'cpu': '250m'}}"};
    const struct scene whole = {.container = RUN ", 'resources': {'limits': {'cpu': 2}}"};
    muster_auto(doc) json_t *spec = spec_of(*state, &s);
    muster_auto(doc) json_t *of_whole = spec_of(*state, &whole);
    expect(spec, "limits.memoryBytes", "1073741824");
    expect(spec, "limits.cpuMillis", "250");
    expect(of_whole, "limits", "{\"cpuMillis\":2000}");
}

static void the_containers_user_comes_before_the_pods(void **state)
{
    const struct scene s = {.pod = "'securityContext': {'runAsUser': 7, 'runAsGroup': 8}",
                            .container =
                                RUN ", 'securityContext': {'runAsUser': 9}, 'workingDir': '/tmp'"};
    muster_auto(doc) json_t *spec = spec_of(*state, &s);
    expect(spec, "runAsUser", "9");
    expect(spec, "runAsGroup", "8");
    expect(spec, "cwd", "/tmp");
}

/* A variable that was given by name is in the file, so the spec leaves it out. Variables that a
 * launcher sets stay. */
static void what_was_given_by_name_wins_but_over_ours(void **state)
{
    static const char bytes[] = "SHELL_ONLY=s\0\0LEVEL=given\0RANK=given\0"; /* after "" : given */
    const struct scene s = {
        .container = "'command': ['x', '$(LEVEL)', '$(RANK)', '$(SHELL_ONLY)'], 'env': "
                     "[{'name': 'LEVEL', 'value': 'own'}, {'name': 'RANK', 'value': '3'}]",
        .environment = bytes,
        .environment_bytes = sizeof bytes - 1};
    muster_auto(doc) json_t *spec = spec_of(*state, &s);
    expect(spec, "env.LEVEL", "absent");
    expect(spec, "env.RANK", "3");
    expect(spec, "argv", "[\"x\",\"given\",\"3\",\"$(SHELL_ONLY)\"]");
    assert_non_null(strstr(doc_text(spec, "environmentFile", ""), "/environment"));
}

static void standard_input_is_one_ranks(void **state)
{
    static const char job[] =
        "{'metadata': {'name': 'j', 'annotations': {'muster.dev/stdin': '1'}}}";
    const struct scene one = {.job = job,
                              .container = RUN ", 'env': [{'name': 'RANK', 'value': '1'}]"};
    const struct scene zero = {.job = job,
                               .container = RUN ", 'env': [{'name': 'RANK', 'value': '0'}]"};
    muster_auto(doc) json_t *of_one = spec_of(*state, &one);
    muster_auto(doc) json_t *of_zero = spec_of(*state, &zero);
    expect(of_one, "stdin", "true");
    expect(of_zero, "stdin", "absent");
}

static void a_stall_is_the_jobs_or_a_minute(void **state)
{
    const struct scene usual = {.container = RUN};
    const struct scene own = {
        .job = "{'metadata': {'name': 'j', 'annotations': {'muster.dev/stall': '5s'}}}",
        .container = RUN};
    muster_auto(doc) json_t *of_usual = spec_of(*state, &usual);
    muster_auto(doc) json_t *of_own = spec_of(*state, &own);
    expect(of_usual, "stallMs", "60000");
    expect(of_own, "stallMs", "5000");
}

/* After ENOENT the launch is tried again, because the object may still be created. It is not tried
 * again without an environment file, because the file will not come back. */
static void what_is_missing_is_named(void **state)
{
    const struct scene map = {.container =
                                  RUN ", 'envFrom': [{'configMapRef': {'name': 'absent'}}]"};
    const struct scene volume = {.pod = "'volumes': [{'name': 'v', 'configMap': {'name': 'gone'}}]",
                                 .container =
                                     RUN ", 'volumeMounts': [{'name': 'v', 'mountPath': '/m'}]"};
    const struct scene none = {.container = "'command': []"};
    json_t *spec = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(launch(*state, &map, &spec, &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "absent"));
    assert_int_equal(launch(*state, &volume, &spec, &err), MUSTER_ENOENT);
    assert_non_null(strstr(err.text, "gone"));
    assert_true(launch(*state, &none, &spec, &err) < 0);
    assert_null(spec);
}

static void a_file_that_is_gone_or_damaged_is_no_environment(void **state)
{
    muster_auto(doc) json_t *pod = parse("{'metadata': {'name': 'p'}, 'spec': {}}");
    muster_auto(doc) json_t *container = parse("{'name': 'c', 'command': ['true']}");
    const struct launch l = {.pod = pod,
                             .container = container,
                             .volumes = {.home = *state, .folder = *state, .find = find_none},
                             .environment_file = "/no/such/file"};
    const struct scene damaged = {
        .container = RUN, .environment = "no equals sign", .environment_bytes = 14};
    json_t *spec = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(launch_spec(&l, &spec, &err), MUSTER_EDATA);
    assert_non_null(strstr(err.text, "the environment that the job was submitted with"));
    assert_int_equal(launch(*state, &damaged, &spec, &err), MUSTER_EDATA);
    assert_null(spec);
}

static int set_up(void **state)
{
    char *folder = malloc(TEST_FOLDER_BYTES);
    test_folder_make(folder);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    test_folder_remove(*state);
    free(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(words_are_expanded_and_the_environment_is_complete),
        TEST(gpus_are_given_or_hidden),
        TEST(limits_are_bytes_and_thousandths),
        TEST(the_containers_user_comes_before_the_pods),
        TEST(what_was_given_by_name_wins_but_over_ours),
        TEST(standard_input_is_one_ranks),
        TEST(a_stall_is_the_jobs_or_a_minute),
        TEST(what_is_missing_is_named),
        TEST(a_file_that_is_gone_or_damaged_is_no_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
