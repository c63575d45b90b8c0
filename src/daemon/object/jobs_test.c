/* The owner of a pod. A pod without an owner, or whose owner's name now belongs to another object,
 * is told apart from a store that cannot be read. */
#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "daemon/object/jobs.h"

static json_t *pod_of(const char *uid)
{
    json_t *pod = parse("{'metadata': {'name': 'p', 'namespace': 'default', 'ownerReferences': [{"
                        "'kind': 'PyTorchJob', 'name': 'j', 'controller': true}]}}");
    json_object_set_new(doc_at(pod, "metadata.ownerReferences.0"), "uid", json_string(uid));
    return pod;
}

static void *no_malloc(size_t size)
{
    (void)size;
    return NULL;
}

static void an_owner_that_cannot_be_read_is_not_taken_for_none(void **state)
{
    (void)state;
    struct store *store = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(doc) json_t *job = parse("{'metadata': {'name': 'j', 'namespace': 'default'}}");
    muster_auto(doc) json_t *stored = NULL;
    assert_int_equal(store_open(":memory:", NULL, &store, &err), 0);
    assert_int_equal(store_create(store, "pytorchjobs", job, &stored, &err), 0);
    muster_auto(doc) json_t *pod = pod_of(doc_text(stored, "metadata.uid", ""));
    muster_auto(doc) json_t *anothers = pod_of("another");
    muster_auto(doc) json_t *bare = parse("{'metadata': {'name': 'p', 'namespace': 'default'}}");
    muster_auto(doc) json_t *found = NULL;
    muster_auto(doc) json_t *none = NULL;
    assert_int_equal(jobs_fetch_owner(store, pod, &found, &err), 0);
    assert_string_equal(doc_text(found, "metadata.name", ""), "j");
    assert_int_equal(jobs_fetch_owner(store, anothers, &none, &err), 0);
    assert_null(none);
    assert_int_equal(jobs_fetch_owner(store, bare, &none, &err), 0);
    assert_null(none);
    json_malloc_t given_malloc;
    json_free_t given_free;
    json_get_alloc_funcs(&given_malloc, &given_free);
    json_set_alloc_funcs(no_malloc, given_free);
    int r = jobs_fetch_owner(store, pod, &none, &err);
    json_set_alloc_funcs(given_malloc, given_free);
    assert_int_equal(r, MUSTER_ENOMEM);
    assert_null(none);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_cannot_be_read_is_not_taken_for_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
