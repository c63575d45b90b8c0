/* Flags, in the forms that Go programs accept. */
#include "operator/options.h"

#include "base/testing/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct muster_err err;

/* Reads words separated by blanks. */
static int read_line(const char *line, struct operator_options *ret)
{
    static char text[1024];
    char *argv[16] = {"operator"};
    int argc = 1;
    (void)snprintf(text, sizeof text, "%s", line);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) && argc < 16;) {
        argv[argc++] = word;
    }
    return operator_options_read(argc, argv, ret, &err);
}

static void defaults_are_upstream_s(void **state)
{
    (void)state;
    struct operator_options o;
    unsetenv("KUBEFLOW_NAMESPACE");
    assert_int_equal(read_line("", &o), 0);
    assert_int_equal(o.qps, 20);
    assert_int_equal(o.burst, 30);
    assert_string_equal(o.namespace, "");
    assert_null(o.metrics_address);
    assert_true(o.logs_json);
    assert_false(o.leader_elect);
    setenv("KUBEFLOW_NAMESPACE", "team", 1);
    assert_int_equal(read_line("", &o), 0);
    assert_string_equal(o.namespace, "team");
    assert_int_equal(read_line("--namespace=mine", &o), 0);
    assert_string_equal(o.namespace, "mine");
    unsetenv("KUBEFLOW_NAMESPACE");
}

static void one_dash_or_two_and_both_kinds_of_values(void **state)
{
    (void)state;
    struct operator_options o;
    assert_int_equal(
        read_line("-kube-api-qps 100 --kube-api-burst=200 --kubeconfig /a=b -context c "
                  "--zap-log-level debug --zap-encoder=console "
                  "--enable-scheme=pytorchjob --enable-scheme PyTorchJob",
                  &o),
        0);
    assert_int_equal(o.qps, 100);
    assert_int_equal(o.burst, 200);
    assert_string_equal(o.kubeconfig, "/a=b");
    assert_string_equal(o.context, "c");
    assert_string_equal(o.log_level, "debug");
    assert_false(o.logs_json);
    assert_int_equal(read_line("--leader-elect -leader-election-id mine", &o), 0);
    assert_true(o.leader_elect);
    assert_string_equal(o.lease, "mine");
    assert_int_equal(read_line("--leader-elect=false", &o), 0);
    assert_false(o.leader_elect);
}

static void a_gang_has_its_scheduler(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum control_gang_kind kind;
    } table[] = {
        {"", CONTROL_GANG_NONE},
        {"--gang-scheduler-name=", CONTROL_GANG_NONE},
        {"--gang-scheduler-name none", CONTROL_GANG_NONE},
        {"--gang-scheduler-name=volcano", CONTROL_GANG_VOLCANO},
        {"--gang-scheduler-name=scheduler-plugins-scheduler", CONTROL_GANG_PLUGINS},
    };
    struct operator_options o;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(read_line(table[i].line, &o), 0);
        assert_int_equal(o.gang.kind, table[i].kind);
    }
    assert_string_equal(o.gang.scheduler, "scheduler-plugins-scheduler");
}

static void mistakes_name_the_flag(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"--no-such", "--no-such"},
        {"--kube-api-qsp=5", "--kube-api-qsp; did you mean --kube-api-qps?"},
        {"word", "word"},
        {"--kube-api-qps", "--kube-api-qps"},
        {"--kube-api-qps=0", "--kube-api-qps"},
        {"--kube-api-qps=10x", "--kube-api-qps"},
        {"--kube-api-burst=", "--kube-api-burst"},
        {"--leader-elect=maybe", "true or false"},
        {"--lost-nodes=0", "ignore, tainted or a number of seconds"},
        {"--lost-nodes=5m", "ignore, tainted or a number of seconds"},
        {"--zap-log-level=loud", "debug|info|error"},
        {"--enable-scheme=tfjob --enable-scheme=pytorchjob", "tfjob"},
        {"--job-label-selector team=a", "--job-label-selector=team=a: "},
        {"--zap-log-level=0", "debug|info|error"},
        {"--webhook-server-port", "--webhook-server-port needs a value"},
        {"--webhook-server-port=x", "--webhook-server-port: a number"},
        {"--webhook-certificate-life=9s", "--webhook-certificate-life: 10s to"},
    };
    struct operator_options o;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        err = (struct muster_err)MUSTER_ERR_INIT;
        assert_int_equal(read_line(lines[i][0], &o), MUSTER_EINVAL);
        assert_non_null(strstr(err.text, lines[i][1]));
    }
}

/* All arguments of the training-operator 1.9 are accepted, as a Deployment may have them. */
static void a_deployment_keeps_its_arguments(void **state)
{
    (void)state;
    struct operator_options o;
    assert_int_equal(
        read_line(
            "--metrics-bind-address=:8080 --health-probe-bind-address=:8081 "
            "--leader-elect=false --leader-election-id=1ca428e5.training-operator.kubeflow.org "
            "--enable-scheme=pytorchjob --namespace= --kube-api-qps=20 --kube-api-burst=30 "
            "--controller-threads=1 --gang-scheduler-name= --job-label-selector= "
            "--zap-log-level=2 --zap-encoder=json",
            &o),
        0);
    assert_int_equal(o.unused_count, 0);
    assert_string_equal(o.log_level, "debug");
    assert_int_equal(
        read_line(
            "--pytorch-init-container-image=alpine:3.10 "
            "--pytorch-init-container-template-file=/etc/config/initContainer.yaml "
            "--pytorch-init-container-max-tries 100 --mpi-kubectl-delivery-image=a:b "
            "--zap-devel --zap-stacktrace-level=panic --zap-time-encoding=epoch --zap-log-level=panic "
            "--gang-scheduler-name=none",
            &o),
        0);
    assert_int_equal(o.unused_count, 7);
    assert_non_null(strstr(o.unused[0].why, "no init container"));
    assert_string_equal(o.log_level, "error");
}

static void webhooks_are_served_where_a_port_is_given(void **state)
{
    (void)state;
    struct operator_options o;
    assert_int_equal(read_line("", &o), 0);
    assert_false(o.hooks.on);
    assert_int_equal(
        read_line("--webhook-server-port=9443 --webhook-service-name=training-operator "
                  "--webhook-secret-name=training-operator-webhook-cert",
                  &o),
        0);
    assert_true(o.hooks.on);
    assert_int_equal(o.hooks.port, 9443);
    assert_string_equal(o.hooks.service, "training-operator");
    assert_string_equal(o.hooks.secret, "training-operator-webhook-cert");
    assert_true(o.hooks.life_ms == INT64_C(90) * 24 * 3600 * 1000);
}

static void addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "8080", "a:", ":65536", ":-1", ":1x", "1234567890123456:1"};
    char host[OPERATOR_HOST_BYTES];
    int port = -1;
    assert_int_equal(operator_address_read("m", ":8080", host, &port, &err), 0);
    assert_string_equal(host, "0.0.0.0");
    assert_int_equal(port, 8080);
    assert_int_equal(operator_address_read("m", "127.0.0.1:0", host, &port, &err), 0);
    assert_string_equal(host, "127.0.0.1");
    assert_int_equal(port, 0);
    assert_int_equal(operator_address_read("m", "0", host, &port, &err), 0);
    assert_string_equal(host, "");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(operator_address_read("m", bad[i], host, &port, &err), MUSTER_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_upstream_s),
        cmocka_unit_test(one_dash_or_two_and_both_kinds_of_values),
        cmocka_unit_test(a_gang_has_its_scheduler),
        cmocka_unit_test(mistakes_name_the_flag),
        cmocka_unit_test(a_deployment_keeps_its_arguments),
        cmocka_unit_test(webhooks_are_served_where_a_port_is_given),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
