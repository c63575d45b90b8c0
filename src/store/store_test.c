/* The store as a controller uses it: writes, conflicts, transactions, deletion, bounds. */
#include "store/fixture.h"

#include <sys/stat.h>

static void a_write_gets_identity_and_the_next_version(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    free(put(&f, "pods", OBJECT("a", ",'spec':{'x':1}")));
    muster_auto(doc) json_t *a = fetch(&f, "pods", "a");
    assert_string_equal(doc_text(a, "metadata.resourceVersion", ""), "1");
    assert_int_equal(strlen(doc_text(a, "metadata.uid", "")), 36);
    assert_int_equal(strlen(doc_text(a, "metadata.creationTimestamp", "")), 20);
    assert_int_equal(doc_int(a, "metadata.generation", 0), 1);

    muster_auto(doc) json_t *again = parse(OBJECT("a", ""));
    assert_int_equal(store_create(f.store, "pods", again, NULL, &f.err), MUSTER_EEXIST);
    assert_int_equal(store_version(f.store), 1);
    muster_auto(doc) json_t *generated =
        parse("{'metadata':{'generateName':'w-','namespace':'default'}}");
    muster_auto(doc) json_t *stored = NULL;
    assert_int_equal(store_create(f.store, "pods", generated, &stored, &f.err), 0);
    assert_int_equal(strlen(doc_text(stored, "metadata.name", "")), 7);
    fixture_done(&f);
}

static void spec_and_status_are_written_apart(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    free(put(&f, "pods", OBJECT("a", ",'spec':{'x':1},'status':{'phase':'Pending'}")));
    muster_auto(doc) json_t *wanted =
        parse(OBJECT("a", ",'spec':{'x':2},'status':{'phase':'Running'}"));
    muster_auto(doc) json_t *after = NULL;
    muster_auto(doc) json_t *last = NULL;
    assert_int_equal(store_update(f.store, "pods", wanted, STORE_STATUS_ONLY, &after, &f.err), 0);
    assert_int_equal(doc_int(after, "spec.x", 0), 1);
    assert_string_equal(doc_text(after, "status.phase", ""), "Running");
    assert_int_equal(doc_int(after, "metadata.generation", 0), 1);

    doc_set_text(wanted, "status.phase", "Lost");
    assert_int_equal(store_update(f.store, "pods", wanted, STORE_BUT_STATUS, &last, &f.err), 0);
    assert_int_equal(doc_int(last, "spec.x", 0), 2);
    assert_string_equal(doc_text(last, "status.phase", ""), "Running");
    assert_int_equal(doc_int(last, "metadata.generation", 0), 2);
    fixture_done(&f);
}

static void a_stale_writer_is_refused_and_an_idle_one_changes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    free(put(&f, "pods", OBJECT("a", ",'spec':{'x':1}")));
    muster_auto(doc) json_t *first = fetch(&f, "pods", "a");
    muster_auto(doc) json_t *second = json_deep_copy(first);
    assert_int_equal(store_update(f.store, "pods", second, STORE_ALL, NULL, &f.err), 0);
    assert_int_equal(store_version(f.store), 1);

    doc_set_int(second, "spec.x", 2);
    assert_int_equal(store_update(f.store, "pods", second, STORE_ALL, NULL, &f.err), 0);
    doc_set_int(first, "spec.x", 3);
    assert_int_equal(store_update(f.store, "pods", first, STORE_ALL, NULL, &f.err),
                     MUSTER_ECONFLICT);
    muster_auto(doc) json_t *now = fetch(&f, "pods", "a");
    assert_int_equal(doc_int(now, "spec.x", 0), 2);
    fixture_done(&f);
}

static void empty_maps_are_none(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    const char *empty = "{'metadata':{'name':'a','namespace':'default','labels':{},'annotations':"
                        "{},'finalizers':[],'ownerReferences':[]}}";
    free(put(&f, "pods", empty));
    muster_auto(doc) json_t *stored = fetch(&f, "pods", "a");
    assert_null(doc_at(stored, "metadata.labels"));
    assert_null(doc_at(stored, "metadata.finalizers"));
    muster_auto(doc) json_t *again = parse(empty);
    assert_int_equal(store_update(f.store, "pods", again, STORE_ALL, NULL, &f.err), 0);
    assert_int_equal(store_version(f.store), 1);
    fixture_done(&f);
}

static void count_changes(void *arg, const struct store_change *change)
{
    (void)change;
    ++*(int *)arg;
}

static void a_transaction_happens_whole_or_not_at_all(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    int told = 0;
    struct store_watch *watch = NULL;
    const struct store_watch_options all = {.after_version = STORE_FROM_NOW};
    assert_int_equal(store_watch(f.store, &all, count_changes, &told, &watch, &f.err), 0);

    assert_int_equal(store_begin(f.store, &f.err), 0);
    free(put(&f, "pods", OBJECT("a", "")));
    free(put(&f, "services", OBJECT("a", "")));
    assert_int_equal(told, 0);
    store_rollback(f.store);
    assert_false(exists(&f, "pods", "a"));
    assert_int_equal(store_version(f.store), 0);

    assert_int_equal(store_begin(f.store, &f.err), 0);
    free(put(&f, "pods", OBJECT("a", "")));
    muster_auto(doc) json_t *twice = parse(OBJECT("a", ""));
    assert_int_equal(store_create(f.store, "pods", twice, NULL, &f.err), MUSTER_EEXIST);
    free(put(&f, "services", OBJECT("a", "")));
    assert_int_equal(store_commit(f.store, &f.err), 0);
    assert_true(exists(&f, "pods", "a") && exists(&f, "services", "a"));
    assert_int_equal(told, 2);
    store_unwatch(watch);
    fixture_done(&f);
}

static void put_owned(struct fixture *f, const char *resource, const char *name, const char *uid,
                      const char *phase)
{
    char text[512];
    (void)snprintf(
        text, sizeof text,
        "{'metadata':{'name':'%s','namespace':'default','ownerReferences':[{'uid':'%s'}]}"
        ",'status':{'phase':'%s'}}",
        name, uid, phase);
    free(put(f, resource, text));
}

static void what_a_job_owns_goes_with_it_running_pods_with_grace(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *uid = put(&f, "pytorchjobs", OBJECT("j", ""));
    put_owned(&f, "pods", "runs", uid, "Running");
    put_owned(&f, "pods", "done", uid, "Succeeded");
    put_owned(&f, "services", "s", uid, "");

    assert_int_equal(store_delete(f.store, key_of("pytorchjobs", "j"), NULL, NULL, &f.err), 0);
    assert_false(exists(&f, "pytorchjobs", "j"));
    assert_false(exists(&f, "pods", "done"));
    assert_false(exists(&f, "services", "s"));
    muster_auto(doc) json_t *runs = fetch(&f, "pods", "runs");
    assert_non_null(doc_at(runs, "metadata.deletionTimestamp"));
    assert_int_equal(doc_int(runs, "metadata.deletionGracePeriodSeconds", 0), 30);

    const struct store_delete_options now = {.grace_s = 0};
    muster_auto(doc) json_t *sooner = NULL;
    const struct store_delete_options soon = {.grace_s = 5};
    assert_int_equal(store_delete(f.store, key_of("pods", "runs"), &soon, &sooner, &f.err), 0);
    assert_int_equal(doc_int(sooner, "metadata.deletionGracePeriodSeconds", 0), 5);
    assert_int_equal(store_delete(f.store, key_of("pods", "runs"), &now, NULL, &f.err), 0);
    assert_false(exists(&f, "pods", "runs"));
    fixture_done(&f);
}

static void orphans_and_what_another_owns_stay(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *a = put(&f, "pytorchjobs", OBJECT("a", ""));
    muster_auto(free) char *b = put(&f, "pytorchjobs", OBJECT("b", ""));
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{'metadata':{'name':'both','namespace':'default','ownerReferences':[{'uid':"
                   "'%s'},{'uid':'%s'}]}}",
                   a, b);
    free(put(&f, "services", text));
    put_owned(&f, "services", "mine", b, "");

    assert_int_equal(store_delete(f.store, key_of("pytorchjobs", "a"), NULL, NULL, &f.err), 0);
    muster_auto(doc) json_t *both = fetch(&f, "services", "both");
    assert_int_equal(json_array_size(doc_at(both, "metadata.ownerReferences")), 1);

    const struct store_delete_options orphan = {.grace_s = 0, .propagation = STORE_ORPHAN};
    assert_int_equal(store_delete(f.store, key_of("pytorchjobs", "b"), &orphan, NULL, &f.err), 0);
    assert_true(exists(&f, "services", "both") && exists(&f, "services", "mine"));
    const struct store_query query = {.resource = "services", .owner_uid = b};
    assert_string_equal(names(&f, &query), "");
    fixture_done(&f);
}

static void a_precondition_saves_the_successor(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *uid = put(&f, "pods", OBJECT("a", ""));
    const struct store_delete_options other = {.uid = "not-this-one"};
    assert_int_equal(store_delete(f.store, key_of("pods", "a"), &other, NULL, &f.err),
                     MUSTER_ECONFLICT);
    const struct store_delete_options stale = {.version = "77"};
    assert_int_equal(store_delete(f.store, key_of("pods", "a"), &stale, NULL, &f.err),
                     MUSTER_ECONFLICT);
    const struct store_delete_options right = {.uid = uid, .version = "1"};
    assert_int_equal(store_delete(f.store, key_of("pods", "a"), &right, NULL, &f.err), 0);
    assert_int_equal(store_delete(f.store, key_of("pods", "a"), NULL, NULL, &f.err), MUSTER_ENOENT);
    fixture_done(&f);
}

static void a_finalizer_holds_an_object_until_it_is_taken_off(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    free(put(&f, "services",
             "{'metadata':{'name':'a','namespace':'default','finalizers':['x/y']}}"));
    assert_int_equal(store_delete(f.store, key_of("services", "a"), NULL, NULL, &f.err), 0);
    muster_auto(doc) json_t *held = fetch(&f, "services", "a");
    assert_non_null(doc_at(held, "metadata.deletionTimestamp"));
    json_object_del(json_object_get(held, "metadata"), "finalizers");
    assert_int_equal(store_update(f.store, "services", held, STORE_ALL, NULL, &f.err), 0);
    assert_false(exists(&f, "services", "a"));
    fixture_done(&f);
}

static void old_events_make_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 9; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{'metadata':{'name':'e%d','namespace':'default'}}", i);
        free(put(&f, "events", text));
    }
    const struct store_query query = {.resource = "events"};
    assert_string_equal(names(&f, &query), "e4 e5 e6 e7 e8");
    fixture_done(&f);
}

static void an_object_too_large_is_refused_whole(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(doc) json_t *object = parse(OBJECT("big", ""));
    enum { SIZE = 2 << 20 };
    char *text = malloc(SIZE);
    memset(text, 'x', SIZE);
    json_object_set_new(object, "data", json_stringn(text, SIZE));
    free(text);
    assert_int_equal(store_create(f.store, "configmaps", object, NULL, &f.err), MUSTER_ETOOBIG);
    assert_int_equal(store_version(f.store), 0);
    assert_false(exists(&f, "configmaps", "big"));
    fixture_done(&f);
}

static void only_its_owner_reads_it(void **state)
{
    (void)state;
    struct fixture f;
    struct stat info;
    fixture_init(&f);
    assert_int_equal(stat(f.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    f.store = store_close(f.store);
    assert_int_equal(chmod(f.path, 0644), 0); /* as in a file of an earlier muster */
    fixture_open(&f);
    assert_int_equal(stat(f.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    fixture_done(&f);
}

static void a_store_in_memory_leaves_no_file(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(f.folder), 0);
    struct store *store = NULL;
    assert_int_equal(store_open(":memory:", NULL, &store, &f.err), 0);
    muster_auto(doc) json_t *object = parse(OBJECT("a", ""));
    assert_int_equal(store_create(store, "pods", object, NULL, &f.err), 0);
    store_close(store);
    assert_false(file_exists(":memory:"));
    assert_int_equal(chdir(before), 0);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_gets_identity_and_the_next_version),
        cmocka_unit_test(spec_and_status_are_written_apart),
        cmocka_unit_test(a_stale_writer_is_refused_and_an_idle_one_changes_nothing),
        cmocka_unit_test(empty_maps_are_none),
        cmocka_unit_test(a_transaction_happens_whole_or_not_at_all),
        cmocka_unit_test(what_a_job_owns_goes_with_it_running_pods_with_grace),
        cmocka_unit_test(orphans_and_what_another_owns_stay),
        cmocka_unit_test(a_precondition_saves_the_successor),
        cmocka_unit_test(a_finalizer_holds_an_object_until_it_is_taken_off),
        cmocka_unit_test(old_events_make_room),
        cmocka_unit_test(an_object_too_large_is_refused_whole),
        cmocka_unit_test(only_its_owner_reads_it),
        cmocka_unit_test(a_store_in_memory_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
