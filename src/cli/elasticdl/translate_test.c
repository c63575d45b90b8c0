/* Checks which job each command line of `elasticdl train` becomes (NAME.yaml in
 * test/data/elasticdl), which command lines are refused, and why. MUSTER_UPDATE=1 writes these
 * files again; read the diff then. "Defect N" is a number in the list of ElasticDL's defects in
 * docs/elasticdl.md. */
#include "cli/elasticdl/translate.h"

#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/yaml/yaml.h"
#include "cli/command/commands.h"
#include "job/file/file.h"

#include <stdlib.h>

enum { WORDS_MAX = 32 };
#define SEED_COMMAND                                                                               \
    "python -m model_zoo.mnist.mnist_pytorch --batch_size 64 --num_epochs 1 "                      \
    "--training_data=/data/mnist_png/training --validation_data=/data/mnist_png/testing"

/* Stands for a file of --cluster_spec: it replaces all tolerations of the workers. */
static int set_tolerations(const char *file, json_t *job, struct muster_err *err)
{
    json_t *spec = doc_at(job, "spec.pytorchReplicaSpecs.Worker.template.spec");
    json_t *tolerations = json_pack("[{s:s, s:s}]", "key", file, "operator", "Exists");
    if (strcmp(file, "broken.py") == 0) {
        json_decref(tolerations);
        return muster_fail(err, MUSTER_EINVAL, "%s is broken", file);
    }
    return doc_set(spec, "tolerations", tolerations);
}

static const struct translate_site here = {
    "/opt/muster/bin/muster", "/home/u/muster/jobs/$(MUSTER_JOB_UID)", NULL, set_tolerations};
static const struct translate_site cluster = {NULL, NULL, "0123456789abcdef", set_tolerations};

struct translated {
    int r;
    struct muster_err err;
    json_t *secret, *job;
};

/* words[0] is the verb. */
static struct translated translate(const char *const *words, const struct translate_site *site)
{
    struct translated t = {.err = MUSTER_ERR_INIT};
    struct args args = {0};
    char *argv[WORDS_MAX];
    int argc = 0;
    for (; words[argc + 1]; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc + 1];
    }
    cli_tool_choose("/usr/bin/elasticdl");
    const struct cli_command *command = cli_command_find(words[0]);
    assert_non_null(command);
    t.r = args_parse(command, argc, argv, &args, &t.err);
    t.r = t.r < 0 ? t.r : translate_objects(&args, site, &t.secret, &t.job, &t.err);
    args_done(&args);
    return t;
}

static void done(struct translated *t)
{
    json_decref(t->secret);
    json_decref(t->job);
}

/* Prints the objects as a file; lint must find no error in it. */
static char *print(const struct translated *t)
{
    char *job = yaml_print(t->job);
    char *secret = t->secret ? yaml_print(t->secret) : strdup("");
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s%s\n", secret, t->secret ? "\n---\n" : "", job) > 0);
    free(job);
    free(secret);
    struct job_problems problems;
    struct job_file file = {0};
    job_problems_init(&problems, 20);
    assert_int_equal(job_file_read(text, strlen(text), &file, &problems, NULL), 0);
    for (size_t i = 0; i < problems.count; i++) {
        if (problems.list[i].severity == JOB_ERROR) {
            fail_msg("%s: %s", problems.list[i].path, problems.list[i].message);
        }
    }
    job_problems_done(&problems);
    job_file_done(&file);
    return text;
}

static void compare(const char *name, const char *text)
{
    const char *source = getenv("MUSTER_SOURCE");
    char path[512];
    assert_non_null(source);
    snprintf(path, sizeof path, "%s/test/data/elasticdl/%s.yaml", source, name);
    if (getenv("MUSTER_UPDATE")) {
        assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), 0);
        return;
    }
    char *kept = NULL;
    size_t bytes = 0;
    assert_int_equal(file_read(path, 1 << 20, &kept, &bytes, NULL), 0);
    assert_string_equal(text, kept);
    free(kept);
}

#define SEED                                                                                       \
    "train", "--image_name=elasticdl/elasticdl:v1.0.0", "--worker_image=elasticdl:mnist_pytorch",  \
        "--job_command=" SEED_COMMAND, "--num_minibatches_per_task=2", "--num_workers=2",          \
        "--master_resource_request=cpu=0.2,memory=1024Mi",                                         \
        "--master_resource_limit=cpu=1,memory=2048Mi",                                             \
        "--worker_resource_request=cpu=0.3,memory=1024Mi",                                         \
        "--worker_resource_limit=cpu=1,memory=2048Mi",                                             \
        "--envs=USE_TORCH=true,HOROVOD_GLOO_TIMEOUT_SECONDS=60,PYTHONUNBUFFERED=true",             \
        "--job_name=test-mnist-allreduce", "--image_pull_policy=Never",                            \
        "--volume=host_path=/home/u/data,mount_path=/data",                                        \
        "--distribution_strategy=AllreduceStrategy", NULL
#define J(...) "train", "--job_name=j", "--job_command=x", __VA_ARGS__, NULL

static void command_lines_become_jobs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct translate_site *site;
        const char *words[WORDS_MAX];
    } table[] = {
        {"seed", &here, {SEED}},
        {"seed-cluster", &cluster, {SEED}},
        {"least", &here, {"train", "--job_name", "j", "--job_command", "x", NULL}},
        {"dashes",
         &here,
         {"train", "--job-name", "j", "--job-command=x", "--num-workers", "3", NULL}},
        {"quotes",
         &here,
         {"train", "--job_name=j", /* defect 18 */
          "--job_command=python -c 'print(\"a b\", \"$HOME\", \"$(date)\")' | tee $$.log", NULL}},
        {"envs", &here, {J("--envs=A=b=c,URL=http://x/?q=1&r=2,LIST=1,2,3,USE_TORCH=0")}},
        {"volumes",
         &here,
         {J("--volume=host_path=/a,mount_path=/b;host_path=/a,mount_path=/c,sub_path=d;"
            "claim_name=data,mount_path=/e")}},
        {"checkpoints",
         &cluster,
         {J("--volume=claim_name=data,mount_path=/data", "--checkpoint_dir=/data/$(job)/x",
            "--checkpoint_steps=100", "--keep_checkpoint_max=3")}},
        {"journal-volume", &cluster, {J("--journal_volume=claim_name=journals,sub_path=elastic")}},
        {"set-aside", &here, {J("--set_aside")}},
        {"max-step", &cluster, {J("--max_step=100")}},
        {"micro-batches-per-worker", &here, {J("--micro_batches_per_worker=3")}},
        {"gpus", &here, {J("--worker_resource_request=cpu=4,memory=16Gi,gpu=1")}},
        {"limits",
         &cluster,
         {J("--worker_resource_limit=cpu=2", "--master_resource_request=cpu=1")}},
        {"priority", &cluster, {J("--worker_pod_priority=high", "--master_pod_priority=low")}},
        {"priority-up", &cluster, {J("--worker_pod_priority=0.5", "--num_workers=3")}},
        {"priority-down", &cluster, {J("--worker_pod_priority=high=0.5", "--num_workers=3")}},
        {"priority-none", &cluster, {J("--worker_pod_priority=0", "--num_workers=3")}},
        {"relaunch", &here, {J("--relaunch_on_worker_failure=3", "--num_workers=4")}},
        {"never-relaunch", &here, {J("--aux_params=disable_relaunch=true")}},
        {"on-failure", &here, {J("--restart_policy=OnFailure", "--namespace=team")}},
        {"cluster-spec",
         &cluster,
         {J("--cluster_spec_json={\"pod_spec\":{\"labels\":{\"team\":\"a\"},\"tolerations\":[{\"key\":"
            "\"gpu\",\"operator\":\"Exists\"}]},\"worker_pod_spec\":{\"env\":[{\"name\":\"B\",\"value\":"
            "\"2\"}],\"annotations\":{\"n\":\"v\"}}}")}},
        {"cluster-spec-base64",
         &cluster,
         {J("--cluster_spec_json=eyJwb2Rfc3BlYyI6IHsibGFiZWxzIjogeyJ0ZWFtIjogImEifX19")}},
        {"cluster-spec-file", /* in any order of the flags */
         &cluster,
         {J("--cluster_spec_json={\"pod_spec\":{\"tolerations\":[{\"key\":\"gpu\",\"operator\":"
            "\"Exists\"}]}}",
            "--cluster_spec=pool.py")}},
        {"evaluate",
         &here,
         {"evaluate", "--job_name=j", "--job_command=x", "--validation_data=/data/test",
          "--checkpoint_dir_for_init=/model", NULL}},
        {"predict",
         &here,
         {"predict", "--job_name=j", "--job_command=x", "--prediction_data=/data/$(new)",
          "--checkpoint_dir_for_init=/model", NULL}},
        {"defaults-of-others",
         &here, /* defaults of flags that muster does not have */
         {J("--num_ps_pods=0", "--use_async=False", "--grads_to_wait", "1", "--max_step=0",
            "--need_tf_config", "false", "--model_def=", "--ps_is_critical=true")}},
        {"booleans",
         &here,
         {J("--need_task_manager", "--relaunch_timeout_worker", "Yes", "--need_pod_manager=t")}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct translated t = translate(table[i].words, table[i].site);
        if (t.r < 0) {
            fail_msg("%s: %s", table[i].name, t.err.text);
        }
        char *text = print(&t);
        compare(table[i].name, text);
        free(text);
        done(&t);
    }
}

/* On a cluster only the Secret has the token; a job for this machine has none. */
static void a_token_is_in_the_secret_alone(void **state)
{
    (void)state;
    static const char *const words[] = {SEED};
    struct translated on_cluster = translate(words, &cluster);
    struct translated local = translate(words, &here);
    char *job = doc_print(on_cluster.job);
    char *secret = doc_print(on_cluster.secret);
    assert_null(strstr(job, cluster.token));
    assert_non_null(strstr(secret, cluster.token));
    assert_null(local.secret);
    char *own = doc_print(local.job);
    assert_null(strstr(own, "TOKEN"));
    free(job);
    free(secret);
    free(own);
    done(&on_cluster);
    done(&local);
}

#define LONG "a123456789a123456789a123456789a123456789a123456"

static void command_lines_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        const char *words[WORDS_MAX];
    } table[] = {
        /* Defect 17: unknown flags were ignored. */
        {"unknown option --wrokers; did you mean --num_workers? (elasticdl train --help)",
         {J("--wrokers=9")}},
        {"unknown option --job_nam; did you mean --job_name?", {J("--job_nam=x")}},
        {"unknown option --job-comand; did you mean --job_command?", {J("--job-comand", "x")}},
        {"unknown option --zzzzzzzzzzzzzzz (elasticdl", {J("--zzzzzzzzzzzzzzz")}},
        {"unknown option -n", {J("-n", "3")}},
        {"--job_name needs a value", {"train", "--job_name", NULL}},
        {"--job_name is required", {"train", "--job_command=x", NULL}},
        {"--job_name is required", {"train", "--job_command=x", "--job_name=", NULL}},
        {"--job_command is required", {"train", "--job_name=j", NULL}},
        {"--job_command is required", {"train", "--job_name=j", "--job_command=  ", NULL}},
        {"perhaps my-job", {"train", "--job_name=My_Job", "--job_command=x", NULL}},
        {"--job_name '../x'", {"train", "--job_name=../x", "--job_command=x", NULL}},
        {"--job_name 'a b'", {"train", "--job_name=a b", "--job_command=x", NULL}},
        {"too long", {"train", "--job_name=" LONG, "--job_command=x", NULL}},
        {"is not valid UTF-8", {"train", "--job_name=j", "--job_command=\xff\xfe", NULL}},
        {"is not valid UTF-8", {J("--envs=A=\x80")}},
        {"--num_workers must be a number from 1 to 10000, not '0'", {J("--num_workers=0")}},
        {"not '-1'", {J("--num_workers=-1")}},
        {"not '2x'", {J("--num_workers=2x")}},
        {"not '99999999999999999999'", {J("--num_workers=99999999999999999999")}},
        {"not ''", {J("--num_workers=")}},
        {"has no parameter servers", {J("--distribution_strategy=ParameterServerStrategy")}},
        {"--num_workers=1 trains in one process", {J("--distribution_strategy=Local")}},
        {"must be AllreduceStrategy, not 'AllReduceStrategy'; is it misspelt?",
         {J("--distribution_strategy=AllReduceStrategy")}},
        {"--num_ps_pods is not for muster: it belongs to ParameterServerStrategy",
         {J("--num_ps_pods=2")}},
        {"--ps_resource_request is not for muster", {J("--ps_resource_request", "cpu=2")}},
        {"--use_async is not for muster", {J("--use_async")}},
        {"--use_async is not for muster", {J("--use-async=true")}},
        {"runs a program of yours: --job_command", {J("--model_def=mnist.py")}},
        {"--checkpoint_dir is required with", {J("--checkpoint_steps=5")}},
        {"--checkpoint_dir is required with", {J("--keep_checkpoint_max=5")}},
        {"--checkpoint_steps", {J("--checkpoint_dir=/x", "--checkpoint_steps=often")}},
        {"--journal_volume: needs one of host_path and claim_name",
         {J("--journal_volume=sub_path=x")}},
        {"--journal_volume: unknown key 'claimname'; did you mean claim_name",
         {J("--journal_volume=claimname=c")}},
        {"--journal_volume: leave mount_path out",
         {J("--journal_volume=claim_name=c,mount_path=/m")}},
        {"--journal_volume: one volume, without ;: 'claim_name=c;host_path=/d'",
         {J("--journal_volume=claim_name=c;host_path=/d")}},
        {"TensorFlow's estimators", {J("--need_tf_config")}},
        {"HOROVOD_GLOO_TIMEOUT_SECONDS must be a number of seconds",
         {J("--envs=HOROVOD_GLOO_TIMEOUT_SECONDS=soon")}},
        {"must be true or false, not 'perhaps'", {J("--force_use_kube_config_file=perhaps")}},
        {"--max_step must be a number from 0 to 2147483647, not '-1'", {J("--max_step=-1")}},
        {"--max_step is for training",
         {"evaluate", "--job_name=j", "--job_command=x", "--validation_data=/d",
          "--checkpoint_dir_for_init=/m", "--max_step=5", NULL}},
        {"--micro_batches_per_worker must be a number from 0 to 2147483647, not 'each'",
         {J("--micro_batches_per_worker=each")}},
        {"--micro_batches_per_worker is for training",
         {"evaluate", "--job_name=j", "--job_command=x", "--validation_data=/d",
          "--checkpoint_dir_for_init=/m", "--micro_batches_per_worker=1", NULL}},
        {"must be one of Always|IfNotPresent|Never, not 'never'", {J("--image_pull_policy=never")}},
        {"--restart_policy must be one of", {J("--restart_policy=ExitCode")}},
        {"must be true or false, not 'maybe'", {J("--need_task_manager=maybe")}},
        {"or a share of the workers from 0 to 1", {J("--worker_pod_priority=1.5")}},
        {"or a share of the workers from 0 to 1", {J("--worker_pod_priority=-0.5")}},
        {"or a share of the workers from 0 to 1", {J("--worker_pod_priority=high=nan")}},
        {"or a share of the workers from 0 to 1", {J("--worker_pod_priority=high=half")}},
        {"--worker_pod_priority", {J("--worker_pod_priority=low=0.5")}},
        {"the coordinator is one pod", {J("--master_pod_priority=0.5")}},
        {"--master_pod_priority", {J("--master_pod_priority=High Class")}},
        {"--log_level must be one of", {J("--log_level=LOUD")}},
        {"--cluster_spec_json must be a JSON object", {J("--cluster_spec_json=[1]")}},
        {"--cluster_spec_json is no JSON object", {J("--cluster_spec_json={\"a\":")}},
        {"broken.py is broken", {J("--cluster_spec=broken.py")}},
        {"did you mean worker_pod_spec", {J("--cluster_spec_json={\"worker_pod_spek\":{}}")}},
        {"did you mean labels", {J("--cluster_spec_json={\"pod_spec\":{\"label\":{}}}")}},
        {"must be a list", {J("--cluster_spec_json={\"pod_spec\":{\"env\":{}}}")}},
        {"--envs: RANK is set by muster", {J("--envs=RANK=0")}},
        {"--volume: needs a mount_path", {J("--volume=host_path=/d")}},
        {"--worker_resource_limit: unknown resource 'cpus'; did you mean cpu",
         {J("--worker_resource_limit=cpus=1")}},
        {"--validation_data is required", {"evaluate", "--job_name=j", "--job_command=x", NULL}},
        {"--checkpoint_dir_for_init is required",
         {"predict", "--job_name=j", "--job_command=x", "--prediction_data=d", NULL}},
        {"--validation_data is not for muster", {J("--validation_data=d")}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct translated t = translate(table[i].words, &here);
        assert_int_equal(t.r, MUSTER_EINVAL);
        if (!strstr(t.err.text, table[i].says)) {
            fail_msg("'%s' does not say '%s'", t.err.text, table[i].says);
        }
        done(&t);
    }
}

static void checkpoints_of_a_cluster_are_on_a_volume(void **state)
{
    (void)state;
    static const char *const refused[][WORDS_MAX] = {
        {J("--checkpoint_dir=/data/x")},
        {J("--checkpoint_dir=/database", "--volume=claim_name=c,mount_path=/data")}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct translated t = translate(refused[i], &cluster);
        assert_int_equal(t.r, MUSTER_EINVAL);
        assert_non_null(strstr(t.err.text, "is in no --volume"));
        done(&t);
        t = translate(refused[i], &here);
        assert_int_equal(t.r, 0);
        done(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines_become_jobs),
        cmocka_unit_test(a_token_is_in_the_secret_alone),
        cmocka_unit_test(command_lines_that_are_refused),
        cmocka_unit_test(checkpoints_of_a_cluster_are_on_a_volume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
