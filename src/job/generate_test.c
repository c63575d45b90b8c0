/* A command becomes a PyTorchJob about which lint reports nothing, for this machine and for a
 * cluster. */
#include "job/generate.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "job/file/file.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *print(const struct job_command *options)
{
    json_t *job = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (job_from_command(options, &job, &err) != 0) {
        fail_msg("%s", err.text);
    }
    char *text = yaml_print(job);
    json_decref(job);
    return text;
}

static void expect_clean(const char *text)
{
    struct job_file file = {0};
    struct job_problems problems;
    job_problems_init(&problems, 10);
    assert_int_equal(job_file_read(text, strlen(text), &file, &problems, NULL), 0);
    for (size_t i = 0; i < problems.count; i++) { /* a claim that is not in the file is a note */
        assert_int_equal(problems.list[i].severity, JOB_INFO);
    }
    job_problems_done(&problems);
    job_file_done(&file);
}

static void four_ranks_are_a_master_and_three_workers(void **state)
{
    (void)state;
    struct job_command options = {.ranks = 4, .command = WORDS("python3", "-u", "a/Train_it.py")};
    char *text = print(&options);
    const char *replica = "      restartPolicy: Never\n"
                          "      template:\n"
                          "        spec:\n"
                          "          containers:\n"
                          "          - name: pytorch\n"
                          "            image: pytorch/pytorch:latest\n"
                          "            command:\n"
                          "            - python3\n"
                          "            - \"-u\"\n"
                          "            - a/Train_it.py\n"
                          "            env:\n"
                          "            - name: LOCAL_RANK\n"
                          "              value: \"0\"\n"
                          "            - name: LOCAL_WORLD_SIZE\n"
                          "              value: \"1\"\n"
                          "            - name: OMP_NUM_THREADS\n"
                          "              value: \"1\"\n";
    char expected[4096];
    snprintf(expected, sizeof expected,
             "apiVersion: kubeflow.org/v1\n"
             "kind: PyTorchJob\n"
             "metadata:\n"
             "  name: train-it\n"
             "  annotations:\n"
             "    muster.dev/success-policy: AllRanks\n"
             "spec:\n"
             "  pytorchReplicaSpecs:\n"
             "    Master:\n"
             "      replicas: 1\n"
             "%s"
             "    Worker:\n"
             "      replicas: 3\n"
             "%s",
             replica, replica);
    assert_string_equal(text, expected);
    expect_clean(text);
    free(text);
}

static void every_option_has_its_field(void **state)
{
    (void)state;
    struct job_command options = {
        .ranks = 1,
        .command = WORDS("./train"),
        .name = "mine",
        .namespace = "team",
        .image = "trainer:1",
        .has_threads = true,
        .deadline_s = 60,
        .override = {.gpus = "2",
                     .cpu = "500m",
                     .memory = "4Gi",
                     .working_dir = "/work",
                     .claims = &(struct job_claim){"model", "/model"},
                     .claim_count = 1},
    };
    json_t *job = NULL;
    assert_int_equal(job_from_command(&options, &job, NULL), 0);
    const char *pod = "spec.pytorchReplicaSpecs.Master.template.spec.";
    static const struct {
        const char *path;
        const char *value;
    } texts[] = {
        {"containers.0.image", "trainer:1"},
        {"containers.0.workingDir", "/work"},
        {"containers.0.env.0.name", "LOCAL_RANK"},
        {"containers.0.env.1.name", "LOCAL_WORLD_SIZE"},
        {"containers.0.env.2.name", "none"},
        {"containers.0.resources.limits.memory", "4Gi"},
        {"containers.0.volumeMounts.0.mountPath", "/model"},
        {"volumes.0.persistentVolumeClaim.claimName", "model"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s%s", pod, texts[i].path);
        assert_string_equal(doc_text(job, path, "none"), texts[i].value);
    }
    assert_string_equal(doc_text(job, "metadata.namespace", ""), "team");
    assert_int_equal(doc_int(job, "spec.runPolicy.activeDeadlineSeconds", 0), 60);
    assert_null(doc_at(job, "spec.pytorchReplicaSpecs.Worker"));
    char *text = yaml_print(job);
    expect_clean(text);
    free(text);
    json_decref(job);
}

static void threads_of_the_user_stay(void **state)
{
    (void)state;
    struct job_command options = {.ranks = 2, .command = WORDS("train"), .has_threads = true};
    char *text = print(&options);
    assert_null(strstr(text, "OMP_NUM_THREADS"));
    free(text);
}

static void the_name_is_made_from_the_script(void **state)
{
    (void)state;
    static const struct {
        const char *command[4];
        const char *name;
    } cases[] = {
        {{"python3", "train.py"}, "train"},
        {{"python3", "-m", "pkg.trainer"}, "pkg-trainer"},
        {{"bash", "-c", "echo"}, "bash"},
        {{"/usr/bin/env"}, "env"},
        {{"./7up.sh"}, "up"},
        {{"_"}, "job"},
        {{"/"}, "job"},
        {{"a-very-long-name-of-a-script-that-never-ends-at-all.py"},
         "a-very-long-name-of-a-script-that-never"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_command options = {.ranks = 2, .command = cases[i].command};
        json_t *job = NULL;
        assert_int_equal(job_from_command(&options, &job, NULL), 0);
        assert_string_equal(doc_text(job, "metadata.name", ""), cases[i].name);
        json_decref(job);
    }
}

/* Kubernetes would make $ of $$ and expand $(NAME), but a shell's user wants the words as they
 * are. */
static void dollars_are_kept(void **state)
{
    (void)state;
    struct job_command options = {
        .ranks = 1,
        .command = WORDS("sh", "-c", "echo $$ $(date) $HOME $$(x) $"),
    };
    json_t *job = NULL;
    assert_int_equal(job_from_command(&options, &job, NULL), 0);
    const json_t *container =
        doc_at(job, "spec.pytorchReplicaSpecs.Master.template.spec.containers.0");
    assert_string_equal(doc_text(container, "command.2", ""), "echo $$$ $$(date) $HOME $$$$(x) $");
    json_decref(job);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
    (void)state;
    const char *const *train = WORDS("train");
    const struct {
        struct job_command options;
        const char *says;
    } cases[] = {
        {{.ranks = 1}, "no command"},
        {{.ranks = 1, .command = WORDS("")}, "no command"},
        {{.ranks = 0, .command = train}, "ranks must be 1 to 10000, not 0"},
        {{.ranks = 10001, .command = train}, "not 10001"},
        {{.ranks = 1, .command = train, .name = "My Job"}, "the job's name \"My Job\" must"},
        {{.ranks = 1, .command = train, .deadline_s = -1}, "negative"},
        {{.ranks = 1, .command = train, .override = {.cpu = "many"}},
         "--cpu \"many\" must be a quantity"},
        {{.ranks = 1, .command = WORDS("\xff")}, "not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *job = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(job_from_command(&cases[i].options, &job, &err), MUSTER_EINVAL);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s", err.text);
        }
        assert_null(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_ranks_are_a_master_and_three_workers),
        cmocka_unit_test(every_option_has_its_field),
        cmocka_unit_test(threads_of_the_user_stay),
        cmocka_unit_test(the_name_is_made_from_the_script),
        cmocka_unit_test(dollars_are_kept),
        cmocka_unit_test(wrong_options_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
