/* Environment, command and quantities: what a container sees. */
#include "pod/fixture.h"
#include "pod/resolve_env.h"

static json_t *pod_object(void)
{
    return parse(
        "{'metadata': {'name': 'mnist-worker-1', 'namespace': 'team', 'uid': 'u-1', 'labels': "
        "{'training.kubeflow.org/replica-index': '1'}, 'annotations': {'why': 'because'}}, "
        "'spec': {'containers': [{'name': 'other', 'resources': {'limits': {'cpu': 2}}}]}}");
}

struct sight {
    json_t *pod;
    json_t *maps;
    json_t *secrets;
    struct pod_sources sources;
};

static void open_sight(struct sight *s)
{
    s->pod = pod_object();
    s->maps = parse("{'conf': {'metadata': {'name': 'conf'}, 'data': {'lr': '0.1', '1bad': 'x', "
                    "'host': 'a'}, 'binaryData': {'bin': 'aGk='}}}");
    s->secrets = parse("{'key': {'metadata': {'name': 'key'}, 'data': {'user': 'YWRtaW4=', 'zero': "
                       "'AA==', 'bad': '!'}, 'stringData': {'plain': 'text'}}}");
    s->sources = (struct pod_sources){.config_maps = s->maps,
                                      .secrets = s->secrets,
                                      .node_name = "laptop",
                                      .host_ip = "10.0.0.1",
                                      .pod_ip = "10.0.0.2",
                                      .node_cpu_milli = 8000,
                                      .node_memory_bytes = 1LL << 34};
}

static void close_sight(struct sight *s)
{
    json_decref(s->pod);
    json_decref(s->maps);
    json_decref(s->secrets);
}

/* Compares the environment of a container, as compact JSON with ' for ". */
static void check_env(const char *container, const char *expected)
{
    struct sight s;
    open_sight(&s);
    json_t *spec = parse(container);
    json_t *env = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (pod_environment(s.pod, spec, &s.sources, &env, &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_t *wanted = parse(expected);
    char *got_text = doc_print(env);
    char *wanted_text = doc_print(wanted);
    assert_string_equal(got_text, wanted_text);
    free(got_text);
    free(wanted_text);
    json_decref(wanted);
    json_decref(env);
    json_decref(spec);
    close_sight(&s);
}

static void check_refusal(const char *container, int code, const char *message)
{
    struct sight s;
    open_sight(&s);
    json_t *spec = parse(container);
    json_t *env = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(pod_environment(s.pod, spec, &s.sources, &env, &err), code);
    assert_string_equal(err.text, message);
    assert_null(env);
    json_decref(spec);
    close_sight(&s);
}

static void variables_may_use_those_before_them(void **state)
{
    (void)state;
    check_env("{'env': [{'name': 'A', 'value': '$(B)'}, {'name': 'B', 'value': 'b'}, {'name': 'C', "
              "'value': '$(B)-$$(B)-$(A)-$(NONE)-$5'}, {'name': 'B', 'value': 'again'}]}",
              "{'A': '$(B)', 'B': 'again', 'C': 'b-$(B)-$(B)-$(NONE)-$5'}");
}

/* Paths contain quotes, so these containers are built, not parsed. */
static void check_field(const char *path, const char *expected)
{
    struct sight s;
    open_sight(&s);
    json_t *spec = json_pack("{s:[{s:s, s:{s:{s:s}}}]}", "env", "name", "X", "valueFrom",
                             "fieldRef", "fieldPath", path);
    json_t *env = NULL;
    assert_int_equal(pod_environment(s.pod, spec, &s.sources, &env, NULL), 0);
    assert_string_equal(doc_text(env, "X", "(none)"), expected);
    json_decref(env);
    json_decref(spec);
    close_sight(&s);
}

static void fields_of_the_pod(void **state)
{
    (void)state;
    check_field("metadata.name", "mnist-worker-1");
    check_field("metadata.namespace", "team");
    check_field("metadata.uid", "u-1");
    check_field("metadata.labels['training.kubeflow.org/replica-index']", "1");
    check_field("metadata.labels['none']", "");
    check_field("metadata.annotations['why']", "because");
    check_field("spec.nodeName", "laptop");
    check_field("spec.serviceAccountName", "default");
    check_field("status.hostIP", "10.0.0.1");
    check_field("status.podIP", "10.0.0.2");
}

static void values_from_maps_and_secrets(void **state)
{
    (void)state;
    check_env("{'envFrom': [{'prefix': 'C_', 'configMapRef': {'name': 'conf'}}, {'secretRef': "
              "{'name': 'none', 'optional': true}}], 'env': [{'name': 'USER', 'valueFrom': "
              "{'secretKeyRef': {'name': 'key', 'key': 'user'}}}, {'name': 'P', 'valueFrom': "
              "{'secretKeyRef': {'name': 'key', 'key': 'plain'}}}, {'name': 'GONE', 'valueFrom': "
              "{'configMapKeyRef': {'name': 'conf', 'key': 'none', 'optional': true}}}]}",
              "{'C_bin': 'hi', 'C_lr': '0.1', 'C_1bad': 'x', 'C_host': 'a', 'USER': 'admin', 'P': "
              "'text'}");
}

static void keys_that_are_no_names_are_skipped(void **state)
{
    (void)state;
    check_env("{'envFrom': [{'configMapRef': {'name': 'conf'}}]}",
              "{'bin': 'hi', 'lr': '0.1', 'host': 'a'}");
}

static void resources_in_units_of_the_divisor(void **state)
{
    (void)state;
    check_env(
        "{'resources': {'limits': {'cpu': '1500m', 'memory': '1Gi'}, 'requests': {'cpu': 1}}, 'env': "
        "[{'name': 'CPU', 'valueFrom': {'resourceFieldRef': {'resource': 'limits.cpu'}}}, {'name': "
        "'MILLI', 'valueFrom': {'resourceFieldRef': {'resource': 'limits.cpu', 'divisor': '1m'}}}, "
        "{'name': 'MEM', 'valueFrom': {'resourceFieldRef': {'resource': 'limits.memory', 'divisor': "
        "'1Mi'}}}, {'name': 'REQ', 'valueFrom': {'resourceFieldRef': {'resource': 'requests.cpu'}}}, "
        "{'name': 'OTHER', 'valueFrom': {'resourceFieldRef': {'containerName': 'other', 'resource': "
        "'limits.cpu'}}}, {'name': 'NODE', 'valueFrom': {'resourceFieldRef': {'containerName': "
        "'other', 'resource': 'limits.memory', 'divisor': '1Gi'}}}]}",
        "{'CPU': '2', 'MILLI': '1500', 'MEM': '1024', 'REQ': '1', 'OTHER': '2', 'NODE': '16'}");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    check_refusal("{'env': [{'name': 'A', 'valueFrom': {'configMapKeyRef': {'name': 'none', 'key': "
                  "'k'}}}]}",
                  MUSTER_ENOENT, "configmap \"none\" not found");
    check_refusal(
        "{'env': [{'name': 'A', 'valueFrom': {'secretKeyRef': {'name': 'key', 'key': 'k'}}}]}",
        MUSTER_ENOENT, "couldn't find key k in Secret team/key");
    check_refusal("{'envFrom': [{'secretRef': {'name': 'none'}}]}", MUSTER_ENOENT,
                  "secret \"none\" not found");
    check_refusal("{'env': [{'name': 'A=B', 'value': 'x'}]}", MUSTER_EDATA,
                  "env: \"A=B\" is not a valid variable name");
    check_refusal("{'env': [{'name': 'A', 'valueFrom': {'fieldRef': {'fieldPath': 'spec.x'}}}]}",
                  MUSTER_EDATA, "fieldRef: no such field of a pod: spec.x");
    check_refusal("{'env': [{'name': 'A', 'valueFrom': {'secretKeyRef': {'name': 'key', 'key': "
                  "'zero'}}}]}",
                  MUSTER_EDATA, "key zero of secret key is not text in base64");
    check_refusal("{'env': [{'name': 'A', 'valueFrom': {'secretKeyRef': {'name': 'key', 'key': "
                  "'bad'}}}]}",
                  MUSTER_EDATA, "key bad of secret key is not text in base64");
}

static void check_command(const char *container, const char *entrypoint, const char *expected)
{
    json_t *spec = parse(container);
    json_t *entry = entrypoint ? parse(entrypoint) : NULL;
    json_t *env = parse("{'RANK': '1', 'WORLD_SIZE': '4'}");
    json_t *words = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = pod_command(spec, entry, env, &words, &err);
    if (expected) {
        json_t *wanted = parse(expected);
        assert_int_equal(r, 0);
        assert_true(json_equal(words, wanted));
        json_decref(wanted);
    } else {
        assert_int_equal(r, MUSTER_EDATA);
        assert_non_null(strstr(err.text, "entrypoint of image mnist"));
    }
    json_decref(words);
    json_decref(env);
    json_decref(entry);
    json_decref(spec);
}

static void a_command_replaces_the_entrypoint(void **state)
{
    (void)state;
    check_command("{'command': ['run', '--rank=$(RANK)'], 'args': ['$(WORLD_SIZE)', '$$(RANK)', "
                  "'$(NOPE)', '$(', '$']}",
                  "['other']", "['run', '--rank=1', '4', '$(RANK)', '$(NOPE)', '$(', '$']");
    check_command("{'args': ['--rank', '$(RANK)']}", "['python3', '$(RANK)']",
                  "['python3', '$(RANK)', '--rank', '1']");
    check_command("{'name': 'pytorch', 'image': 'mnist', 'args': ['x']}", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_may_use_those_before_them),
        cmocka_unit_test(fields_of_the_pod),
        cmocka_unit_test(values_from_maps_and_secrets),
        cmocka_unit_test(keys_that_are_no_names_are_skipped),
        cmocka_unit_test(resources_in_units_of_the_divisor),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_command_replaces_the_entrypoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
