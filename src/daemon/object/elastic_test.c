/* The coordinator's status file, which a rank may have replaced by anything. */
#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/testing/test_folder.h"
#include "daemon/object/elastic.h"

#include <sys/stat.h>
#include <unistd.h>

static const char status[] =
    "{\"phase\": \"Training\", \"generation\": 3, \"workers\": 2, \"records\": 10, \"x\": [1],"
    " \"epoch\": -1, \"totalRecords\": \"many\", \"recoveries\": [{\"kind\": \"lost\","
    " \"worker\": \"w-0\", \"ms\": 12, \"y\": {}}, 7, {\"kind\": \"restored\","
    " \"lostSteps\": 3, \"version\": 0}], \"setAside\": [{\"record\": 41,"
    " \"deaths\": 3, \"dataset\": \"d\"}]}";

static char *path_of(const char *folder)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/jobs/u/" ELASTIC_STATUS_FILE, folder) > 0);
    return path;
}

static void write_file(const char *folder, const char *text, size_t count)
{
    muster_auto(free) char *path = path_of(folder);
    assert_int_equal(file_put(path, text, count, 0600, NULL), 0);
}

static int set_up(void **state)
{
    muster_auto(free) char *jobs = NULL;
    (void)test_folder_set_up(state);
    assert_true(asprintf(&jobs, "%s/jobs/u", (const char *)*state) > 0);
    return file_mkdir(jobs, 0700, NULL);
}

static json_t *elastic_of(const char *folder, json_t **ret_job)
{
    char path[TEST_FOLDER_BYTES];
    const struct home home = {.path = path};
    (void)snprintf(path, sizeof path, "%s", folder);
    *ret_job = parse("{'metadata': {'uid': 'u', 'annotations': {'muster.dev/coordinator': "
                     "'Master'}}, 'status': {}}");
    elastic_add(&home, *ret_job);
    return doc_at(*ret_job, "status.elastic");
}

static void expect_message(const char *folder, const char *message)
{
    muster_auto(doc) json_t *job = NULL;
    json_t *elastic = elastic_of(folder, &job);
    assert_int_equal(json_object_size(elastic), 1);
    assert_non_null(strstr(doc_text(elastic, "message", ""), message));
}

static void what_is_understood_is_taken_over(void **state)
{
    muster_auto(doc) json_t *job = NULL;
    muster_auto(doc) json_t *expected =
        parse("{'phase': 'Training', 'generation': 3, 'workers': 2, 'records': 10, 'recoveries': "
              "[{'kind': 'lost', 'worker': 'w-0', 'ms': 12}, {}, "
              "{'kind': 'restored', 'version': 0, 'lostSteps': 3}], 'slow': [], "
              "'setAside': [{'record': 41, 'deaths': 3, 'dataset': 'd'}]}");
    write_file(*state, status, strlen(status));
    assert_true(json_equal(elastic_of(*state, &job), expected));
}

static void a_torn_one_is_said_to_be_damaged(void **state)
{
    for (size_t count = 0; count < strlen(status); count++) {
        write_file(*state, status, count);
        expect_message(*state, "is damaged");
    }
    write_file(*state, "[]", 2);
    expect_message(*state, "is damaged");
}

static void a_job_that_has_none_says_so(void **state)
{
    char path[TEST_FOLDER_BYTES];
    const struct home home = {.path = path};
    (void)snprintf(path, sizeof path, "%s", (const char *)*state);
    expect_message(*state, "has not said anything yet");
    muster_auto(doc) json_t *plain = parse("{'metadata': {'uid': 'u'}, 'status': {}}");
    muster_auto(doc) json_t *same = json_deep_copy(plain);
    elastic_add(&home, plain);
    assert_true(json_equal(plain, same));
}

static void what_is_no_file_holds_nobody(void **state)
{
    muster_auto(free) char *path = path_of(*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_message(*state, "is no file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_message(*state, "is no file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    expect_message(*state, "coordinator's");
}

static void what_is_too_large_is_not_read(void **state)
{
    size_t count = ELASTIC_BYTES_MAX + 1;
    muster_auto(free) char *text = calloc(1, count);
    assert_non_null(text);
    memset(text, ' ', count);
    memcpy(text, status, strlen(status));
    write_file(*state, text, count);
    expect_message(*state, "is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_understood_is_taken_over, set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_torn_one_is_said_to_be_damaged, set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_has_none_says_so, set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_file_holds_nobody, set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_not_read, set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
