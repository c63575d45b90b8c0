/* Checks what the values of ElasticDL's flags mean. Names in comments are ElasticDL's own tests,
 * which show the same facts. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "cli/elasticdl/values.h"
#include "cli/elasticdl/volumes.h"

#include <stdlib.h>

static void check(int r, json_t *doc, const char *expected, const struct muster_err *err)
{
    if (expected[0] == '{' || expected[0] == '[') {
        char *text = r == 0 ? doc_print(doc) : strdup(err->text);
        assert_string_equal(text, expected);
        free(text);
    } else {
        assert_int_equal(r, MUSTER_EINVAL);
        if (!strstr(err->text, expected)) {
            fail_msg("'%s' does not say '%s'", err->text, expected);
        }
    }
    json_decref(doc);
}

/* Defect 18 of ElasticDL: A=b=c became {A: '', b: 'c'}. */
static void a_value_keeps_its_equals_signs_and_commas(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"A=b=c", "[{\"name\":\"A\",\"value\":\"b=c\"}]"},
        {"URL=http://x/?q=1,B=2",
         "[{\"name\":\"URL\",\"value\":\"http://x/?q=1\"},{\"name\":\"B\",\"value\":\"2\"}]"},
        {"LIST=1,2,3,B=x",
         "[{\"name\":\"LIST\",\"value\":\"1,2,3\"},{\"name\":\"B\",\"value\":\"x\"}]"},
        {"A=1,A=2", "[{\"name\":\"A\",\"value\":\"2\"}]"},
        {"A=", "[{\"name\":\"A\",\"value\":\"\"}]"},
        {"A=,B=", "[{\"name\":\"A\",\"value\":\"\"},{\"name\":\"B\",\"value\":\"\"}]"},
        {" A=1, B=2 ", "[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"2 \"}]"},
        {"A=1,", "[{\"name\":\"A\",\"value\":\"1\"}]"},
        {"A='x y'\"z\"", "[{\"name\":\"A\",\"value\":\"'x y'\\\"z\\\"\"}]"},
        {"A=$(B)$$", "[{\"name\":\"A\",\"value\":\"$$(B)$$$\"}]"}, /* the value is not changed */
        {"A===", "[{\"name\":\"A\",\"value\":\"==\"}]"},
        {"", "[]"},
        {"A", "has no ="},
        {"=x", "'' is no name of a variable"},
        {"1A=x", "is no name of a variable"},
        {"A B=x", "is no name of a variable"},
        {"RANK=1", "RANK is set by muster"},
        {"MUSTER_COORDINATOR=x", "is set by muster"},
        {"A=1,MUSTER_COORDINATOR_TOKEN=x", "is set by muster"},
        {"WORKER_ID=3", "is set by muster"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *list = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = values_variables("envs", table[i][0], &list, &err);
        check(r, list, table[i][1], &err);
    }
}

static void how_long_to_wait_for_a_worker(void **state)
{
    (void)state;
    static const struct {
        const char *variables;
        int64_t expected_s; /* < 0: the value is refused */
    } table[] = {{"A=1", 0},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=60", 60},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=60,HOROVOD_GLOO_TIMEOUT_SECONDS=9", 9},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=0", -1},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=", -1},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=-5", -1},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=1e3", -1},
                 {"HOROVOD_GLOO_TIMEOUT_SECONDS=99999999999999999999", -1}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *list = NULL;
        int64_t found_s = -1;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(values_variables("envs", table[i].variables, &list, &err), 0);
        int r = values_peer_limit(list, &found_s, &err);
        assert_int_equal(r, table[i].expected_s < 0 ? MUSTER_EINVAL : 0);
        assert_true(r < 0 || found_s == table[i].expected_s);
        json_decref(list);
    }
}

/* test_k8s_resource_parse */
static void resources_as_elasticdl_writes_them(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"cpu=250m,memory=32Mi,disk=64Mi,gpu=1",
         "{\"cpu\":\"250m\",\"memory\":\"32Mi\",\"ephemeral-storage\":\"64Mi\","
         "\"nvidia.com/gpu\":\"1\"}"},
        {"cpu=0.2,memory=1024Mi", "{\"cpu\":\"0.2\",\"memory\":\"1024Mi\"}"},
        {" cpu = 1 , memory = 2Gi ", "{\"cpu\":\"1\",\"memory\":\"2Gi\"}"},
        {"amd.com/gpu=2", "{\"amd.com/gpu\":\"2\"}"},
        {"nvidia.com/mig-1g.5gb=1", "{\"nvidia.com/mig-1g.5gb\":\"1\"}"},
        {"ephemeral-storage=1Gi", "{\"ephemeral-storage\":\"1Gi\"}"},
        {"", "{}"},
        {"cpu=1,", "{\"cpu\":\"1\"}"},
        {"cpu", "has no ="},
        {"cpu=", "must be an amount"},
        {"cpu=a", "must be an amount"},
        {"cpu=0", "must be an amount"},
        {"cpu=-1", "must be an amount"},
        {"cpu=1.2.3", "must be an amount"},
        {"cpu=nan", "must be an amount"},
        {"memory=32Blah", "must be an amount"},
        {"memory=32 Mi", "must be an amount"},
        {"gpu=0", "whole number"},
        {"gpu=0.5", "whole number"},
        {"gpu=1Ki", "whole number"},
        {"gpu=99999999999999999999", "whole number"},
        {"cpu=1,cpu=2", "given twice"},
        {"gpu=1,nvidia.com/gpu=1", "given twice"},
        {"memroy=1Gi", "did you mean memory"},
        {"=1", "unknown resource ''"},
        {"/gpu=1", "unknown resource"},
        {"x/tpu=1", "unknown resource"},
        {",", "has no ="},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *doc = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = values_resources("worker_resource_request", table[i][0], &doc, &err);
        check(r, doc, table[i][1], &err);
    }
}

/* test_k8s_volume_parse, test_parse_volume_and_mount, test_parse_multiple_mount_on_one_volume */
static void volumes_and_their_mounts(void **state)
{
    (void)state;
#define ONE "{\"volumes\":[{\"name\":\"j-volume-0\","
    static const char *const table[][2] = {
        {"host_path=/d,mount_path=/data",
         ONE "\"hostPath\":{\"path\":\"/d\"}}],\"mounts\":[{\"name\":\"j-volume-0\",\"mountPath\":"
             "\"/data\"}]}"},
        {"claim_name=c,mount_path=/data,sub_path=a/b",
         ONE "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}],\"mounts\":[{\"name\":"
             "\"j-volume-0\",\"mountPath\":\"/data\",\"subPath\":\"a/b\"}]}"},
        {"host_path=/d,mount_path=/a;host_path=/d,mount_path=/b",
         ONE "\"hostPath\":{\"path\":\"/d\"}}],\"mounts\":[{\"name\":\"j-volume-0\",\"mountPath\":"
             "\"/a\"},{\"name\":\"j-volume-0\",\"mountPath\":\"/b\"}]}"},
        {"host_path=/d,mount_path=/a,type=Directory;claim_name=c,mount_path=/b;",
         ONE "\"hostPath\":{\"path\":\"/d\",\"type\":\"Directory\"}},{\"name\":\"j-volume-1\","
             "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}],\"mounts\":[{\"name\":"
             "\"j-volume-0\",\"mountPath\":\"/a\"},{\"name\":\"j-volume-1\",\"mountPath\":\"/b\"}]"
             "}"},
        {"host_path=/a=b,c;d,mount_path=/x y",
         ONE "\"hostPath\":{\"path\":\"/a=b,c;d\"}}],\"mounts\":[{\"name\":\"j-volume-0\","
             "\"mountPath\":\"/x y\"}]}"},
        {" mount_path = /data", "unknown key 'mount_path '"},
        {"", "{\"volumes\":[],\"mounts\":[]}"},
        {";;", "{\"volumes\":[],\"mounts\":[]}"},
        {"host_path=/d", "needs a mount_path"},
        {"mount_path=/d", "needs one of host_path and claim_name"},
        {"host_path=/d,claim_name=c,mount_path=/a", "needs one of"},
        {"host_path=/d,mount_path=data", "begins with /"},
        {"host_path=d,mount_path=/data", "must be absolute: $PWD/d"},
        {"host_path={mnist_data_dir},mount_path=/data", "stands for a folder of yours"},
        {"host_path=/d,mount_path=/a,mount_path=/b", "given twice"},
        {"hostpath=/d,mount_path=/a", "did you mean host_path"},
        {"/d:/data", "unknown key '/d:/data'"},
        {"host_path", "needs one of"},
        {"host_path=,mount_path=/a", "needs one of"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *volumes = NULL, *mounts = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = volumes_read("volume", table[i][0], "j", &volumes, &mounts, &err);
        json_t *doc = r == 0 ? json_pack("{s:o, s:o}", "volumes", volumes, "mounts", mounts) : NULL;
        check(r, doc, table[i][1], &err);
    }
}

static void relaunches_are_switched_off(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r, off;
    } table[] = {{"", 0, 0},
                 {"disable_relaunch=true", 0, 1},
                 {"disable_relaunch=False", 0, 0},
                 {"disable_relaunch=true;", 0, 1},
                 {"disable_relaunch", MUSTER_EINVAL, 0},
                 {"disable_relaunch=perhaps", MUSTER_EINVAL, 0},
                 {"other=1;disable_relaunch=true", MUSTER_EINVAL, 0}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int off = -1;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(values_relaunch_is_off(table[i].text, &off, &err), table[i].r);
        assert_true(table[i].r < 0 || off == table[i].off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_keeps_its_equals_signs_and_commas),
        cmocka_unit_test(how_long_to_wait_for_a_worker),
        cmocka_unit_test(resources_as_elasticdl_writes_them),
        cmocka_unit_test(volumes_and_their_mounts),
        cmocka_unit_test(relaunches_are_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
