/* Guesses at what a misspelt or misplaced field was meant to be. */
#include "job/schema.h"

#include "base/testing/test.h"

static void misspelt_names_find_their_field(void **state)
{
    (void)state;
    static const struct {
        enum schema_type type;
        const char *name;
        const char *nearest; /* NULL: nothing is near */
    } cases[] = {
        {SCHEMA_job_spec, "replicaSpecs", "pytorchReplicaSpecs"},
        {SCHEMA_job_spec, "PyTorchReplicaSpecs", "pytorchReplicaSpecs"},
        {SCHEMA_job_spec, "nProcPerNode", "nprocPerNode"},
        {SCHEMA_replica_specs, "worker", "Worker"},
        {SCHEMA_replica_specs, "Workers", "Worker"},
        {SCHEMA_replica_specs, "Evaluator", NULL},
        {SCHEMA_container, "argz", "args"},
        {SCHEMA_container, "commands", "command"},
        {SCHEMA_container, "agrs", "args"},
        {SCHEMA_container, "imagepullpolicy", "imagePullPolicy"},
        {SCHEMA_container, "x", NULL},
        {SCHEMA_container, "", NULL},
        {SCHEMA_run_policy, "ttlSecondsAfterFinish", "ttlSecondsAfterFinished"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct schema_field *near = schema_nearest(cases[i].type, cases[i].name);
        const char *name = near ? near->name : "nothing";
        if (strcmp(name, cases[i].nearest ? cases[i].nearest : "nothing") != 0) {
            fail_msg("%s: %s", cases[i].name, name);
        }
    }
}

static void misplaced_names_find_the_shallowest_place(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *below; /* NULL: found nowhere */
    } cases[] = {
        {"spec", ""},
        {"pytorchReplicaSpecs", "spec"},
        {"cleanPodPolicy", "spec.runPolicy"},
        {"name", "metadata"},
        {"image", "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]"},
        {"mountPath",
         "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].volumeMounts[0]"},
        {"nothing", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256];
        bool found = schema_find_below(SCHEMA_job, cases[i].name, path, sizeof path);
        assert_int_equal(found, cases[i].below != NULL);
        assert_true(!found || strcmp(path, cases[i].below) == 0);
    }
    char tiny[4];
    assert_false(schema_find_below(SCHEMA_job, "pytorchReplicaSpecs", tiny, sizeof tiny));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelt_names_find_their_field),
        cmocka_unit_test(misplaced_names_find_the_shallowest_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
