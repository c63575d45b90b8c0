/* Checks which advice the texts of programs and of the kubelet lead to. */
#include "cli/follow/hints.h"

#include "base/testing/test.h"

static void a_port_in_use_is_recognised(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "OSError: [Errno 98] Address already in use",
        "PermissionError: no\nOSError: [Errno 98] error while attempting to bind on address "
        "('127.0.0.1', 7777): address already in use",
        "bind: Address already in use",
        "listen tcp :8080: bind: address already in use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
        "network address. port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address "
        "already in use",
        "[E socket.cpp:481] The server socket has failed to bind to [::]:29500 (errno: 98 - "
        "Address already in use).",
        "RuntimeError: [/gloo/transport/tcp/pair.cc:186] bind: Address already in use",
        "Error: listen EADDRINUSE: address already in use :::3000",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *hint = hint_of_line(texts[i], (struct hint_job){0});
        assert_non_null(hint);
        assert_non_null(strstr(hint, "RANK"));
        assert_non_null(strstr(hint, "--network private gives this job"));
    }
}

/* All ranks of a job share its private network, so another private network does not help. */
static void a_private_network_is_not_advised_twice(void **state)
{
    (void)state;
    const char *hint = hint_of_line("OSError: [Errno 98] Address already in use",
                                    (struct hint_job){.private = true});
    assert_non_null(hint);
    assert_null(strstr(hint, "--network"));
}

static void a_script_for_ranks_in_an_elastic_job_is_recognised(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
        "variable RANK expected, but not set",
        "KeyError: 'WORLD_SIZE'",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *hint = hint_of_line(texts[i], (struct hint_job){.elastic = true});
        assert_non_null(hint);
        assert_non_null(strstr(hint, "muster run -n N"));
        assert_null(hint_of_line(texts[i], (struct hint_job){0}));
    }
}

static void other_texts_have_no_hint(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "RuntimeError: CUDA error: out of memory",
        "OSError: [Errno 28] No space left on device",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "the address of the master is in the environment",
        "loss 98",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_null(hint_of_line(texts[i], (struct hint_job){0}));
    }
}

static void what_is_waited_for_is_made_by_a_command(void **state)
{
    (void)state;
    static const struct {
        const char *message, *namespace, *command;
    } cases[] = {
        {"configmap \"settings\" not found", "default",
         "kubectl create configmap settings --from-literal=KEY=VALUE"},
        {"secret \"token\" not found", "team",
         "kubectl create secret generic token --from-literal=KEY=VALUE -n team"},
        {"couldn't find key lr in ConfigMap default/settings", "default",
         "kubectl patch configmap settings --type merge -p '{\"data\": {\"lr\": \"VALUE\"}}'"},
        {"couldn't find key pass in Secret team/token", "team",
         "kubectl patch secret token -n team --type merge -p '{\"stringData\": {\"pass\": "
         "\"VALUE\"}}'"},
        {"volume conf: there is no configmap \"settings\" in namespace default", "default",
         "kubectl create configmap settings --from-literal=KEY=VALUE"},
        {"volume conf: configmap settings has no key lr", "default",
         "kubectl patch configmap settings --type merge -p '{\"data\": {\"lr\": \"VALUE\"}}'"},
        {"volume data: there is no persistentvolumeclaim \"data\" in namespace default", "default",
         "muster create -f FILE, with a PersistentVolumeClaim data in it"},
        {"back-off 10s restarting failed container", "default", ""},
        {"no space left on device", "default", ""},
        {"", "default", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hint[1024];
        hint_of_waiting(cases[i].message, cases[i].namespace, hint, sizeof hint);
        assert_string_equal(hint, cases[i].command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_in_use_is_recognised),
        cmocka_unit_test(a_private_network_is_not_advised_twice),
        cmocka_unit_test(a_script_for_ranks_in_an_elastic_job_is_recognised),
        cmocka_unit_test(other_texts_have_no_hint),
        cmocka_unit_test(what_is_waited_for_is_made_by_a_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
