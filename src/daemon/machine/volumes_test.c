/* Volumes become folders; what is missing is named. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/testing/test_folder.h"
#include "daemon/machine/volumes.h"

#include <sys/stat.h>

/* The cluster of this test: one ConfigMap, one Secret ("aGk=" is "hi"), one claim. */
static int find(void *data, const char *resource, const char *namespace, const char *name,
                json_t **ret, struct muster_err *err)
{
    (void)data;
    assert_string_equal(namespace, "team");
    if (strcmp(name, "unreadable") == 0) {
        return muster_fail(err, MUSTER_EIO, "disk I/O error");
    }
    if (strcmp(name, "settings") == 0 && strcmp(resource, "configmaps") == 0) {
        *ret = parse("{\"kind\":\"ConfigMap\",\"data\":{\"a.txt\":\"A\",\"b.txt\":\"B\"}}");
    } else if (strcmp(name, "keys") == 0 && strcmp(resource, "secrets") == 0) {
        *ret = parse("{\"kind\":\"Secret\",\"data\":{\"token\":\"aGk=\"}}");
    } else if (strcmp(name, "data") == 0) {
        *ret = json_object();
    } else {
        return muster_fail(err, MUSTER_ENOENT, "%s not found", name);
    }
    return 0;
}

static int mount_with(const char *folder, const char *volume, const char *how, json_t **ret,
                      struct muster_err *err)
{
    muster_auto(free) char *text = NULL;
    assert_true(asprintf(&text,
                         "{\"metadata\":{\"namespace\":\"team\"},\"spec\":{\"volumes\":[%s]}}",
                         volume) > 0);
    muster_auto(doc) json_t *pod = parse(text);
    muster_auto(free) char *mounts = NULL;
    assert_true(
        asprintf(&mounts, "{\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/m\"%s}]}", how) > 0);
    muster_auto(doc) json_t *container = parse(mounts);
    muster_auto(doc) json_t *env = parse("{\"RANK\":\"3\",\"UP\":\"..\"}");
    const struct volume_sources sources = {
        .home = folder, .folder = folder, .find = find, .env = env};
    return volumes_mount(&sources, pod, container, ret, err);
}

static int mount(const char *folder, const char *volume, json_t **ret, struct muster_err *err)
{
    return mount_with(folder, volume, ",\"readOnly\":true", ret, err);
}

static void assert_content(const json_t *mounts, const char *file, const char *expected)
{
    muster_auto(free) char *path = file_join(doc_text(mounts, "0.hostPath", "?"), file);
    muster_auto(free) char *text = NULL;
    assert_int_equal(file_read(path, 100, &text, NULL, NULL), 0);
    assert_string_equal(text, expected);
}

static void config_maps_and_secrets_become_files(void **state)
{
    muster_auto(doc) json_t *map = NULL;
    assert_int_equal(
        mount(*state, "{\"name\":\"v\",\"configMap\":{\"name\":\"settings\"}}", &map, NULL), 0);
    assert_content(map, "a.txt", "A");
    assert_content(map, "b.txt", "B");
    assert_true(doc_bool(map, "0.readOnly", false));
    muster_auto(doc) json_t *secret = NULL;
    assert_int_equal(
        mount(
            *state,
            "{\"name\":\"v\",\"secret\":{\"secretName\":\"keys\",\"items\":[{\"key\":\"token\",\"path\":\"t\"}]}}",
            &secret, NULL),
        0);
    assert_content(secret, "t", "hi");
}

static void claims_are_kept_under_their_namespace(void **state)
{
    muster_auto(doc) json_t *mounts = NULL;
    assert_int_equal(mount(*state,
                           "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}",
                           &mounts, NULL),
                     0);
    muster_auto(free) char *expected = volumes_claim_folder(*state, "team", "data");
    muster_auto(free) char *all = file_join(*state, "volumes");
    struct stat info;
    assert_int_equal(stat(all, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700); /* although others may enter the folder above */
    assert_string_equal(doc_text(mounts, "0.hostPath", ""), expected);
    assert_true(file_exists(expected));
}

static void a_key_may_have_a_mode_of_its_own(void **state)
{
    muster_auto(doc) json_t *mounts = NULL;
    assert_int_equal(
        mount(*state,
              "{\"name\":\"v\",\"configMap\":{\"name\":\"settings\",\"defaultMode\":256,"
              "\"items\":[{\"key\":\"a.txt\",\"path\":\"run\",\"mode\":493},"
              "{\"key\":\"b.txt\",\"path\":\"b\"}]}}",
              &mounts, NULL),
        0);
    static const struct {
        const char *file;
        mode_t mode;
    } files[] = {{"run", 0755}, {"b", 0400}};
    for (size_t i = 0; i < 2; i++) {
        struct stat info;
        muster_auto(free) char *path =
            file_join(doc_text(mounts, "0.hostPath", "?"), files[i].file);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, files[i].mode);
    }
}

#define CLAIM(more) "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"" more "}}"

static void a_claim_may_be_read_only(void **state)
{
    muster_auto(doc) json_t *mounts = NULL;
    muster_auto(doc) json_t *others = NULL;
    assert_int_equal(mount_with(*state, CLAIM(",\"readOnly\":true"), "", &mounts, NULL), 0);
    assert_true(doc_bool(mounts, "0.readOnly", false));
    assert_int_equal(mount_with(*state, CLAIM(""), "", &others, NULL), 0);
    assert_false(doc_bool(others, "0.readOnly", true));
}

static void sub_paths_know_the_variables(void **state)
{
    static const struct {
        const char *how, *path, *says;
    } table[] = {
        {",\"subPath\":\"$(RANK)\"", "$(RANK)", NULL},
        {",\"subPathExpr\":\"rank-$(RANK)/a\"", "rank-3/a", NULL},
        {",\"subPathExpr\":\"$(NOTHING)\"", NULL, "names a variable that"},
        {",\"subPathExpr\":\"$(UP)/x\"", NULL, "must not contain '..'"},
        {",\"subPath\":\"/etc\"", NULL, "must be a relative path"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        muster_auto(doc) json_t *mounts = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = mount_with(*state, CLAIM(""), table[i].how, &mounts, &err);
        if (table[i].path) {
            assert_int_equal(r, 0);
            assert_string_equal(doc_text(mounts, "0.subPath", ""), table[i].path);
        } else {
            assert_int_equal(r, MUSTER_EDATA);
            assert_non_null(strstr(err.text, table[i].says));
        }
    }
}

static void what_is_missing_is_named(void **state)
{
    static const struct {
        const char *volume;
        int code;
        const char *says;
    } table[] = {
        {"{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"none\"}}", MUSTER_ENOENT,
         "persistentvolumeclaim \"none\""},
        {"{\"name\":\"v\",\"configMap\":{\"name\":\"none\"}}", MUSTER_ENOENT, "configmap \"none\""},
        {"{\"name\":\"v\",\"configMap\":{\"name\":\"settings\",\"items\":[{\"key\":\"z\",\"path\":\"z\"}]}}",
         MUSTER_ENOENT, "has no key z"},
        {"{\"name\":\"v\",\"configMap\":{\"name\":\"settings\",\"items\":[{\"key\":\"a.txt\",\"path\":\"../x\"}]}}",
         MUSTER_EDATA, "not a file name"},
        {"{\"name\":\"v\",\"hostPath\":{\"path\":\"/nonexistent-path\"}}", MUSTER_ENOENT,
         "/nonexistent-path"},
        {"{\"name\":\"v\",\"nfs\":{\"server\":\"s\"}}", MUSTER_EUNSUPPORTED, "on a cluster only"},
        {"{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"unreadable\"}}", MUSTER_EIO,
         "cannot be read: disk I/O error"},
        {"{\"name\":\"v\",\"configMap\":{\"name\":\"unreadable\",\"optional\":true}}", MUSTER_EIO,
         "cannot be read: disk I/O error"},
        {"{\"name\":\"w\",\"emptyDir\":{}}", MUSTER_EDATA, "no such volume"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *mounts = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(mount(*state, table[i].volume, &mounts, &err), table[i].code);
        assert_non_null(strstr(err.text, table[i].says));
        assert_null(mounts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(config_maps_and_secrets_become_files, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(claims_are_kept_under_their_namespace, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_key_may_have_a_mode_of_its_own, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_claim_may_be_read_only, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(sub_paths_know_the_variables, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_named, test_folder_set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
