/* The deletion of an object that is the owner of others: background, foreground, orphan, and what
 * finalizers change in each. */
#include "store/fixture.h"

#define TEXT_BYTES 512

/* The changes of one resource that were reported to watchers, a letter for each (A, M, D). */
struct told {
    const char *resource;
    char letters[32];
};

static void take_letter(void *arg, const struct store_change *change)
{
    struct told *told = arg;
    size_t used = strlen(told->letters);
    if (strcmp(change->key.resource, told->resource) == 0 && used + 1 < sizeof told->letters) {
        told->letters[used] = "AMD"[change->kind];
    }
}

static void watch_all(struct fixture *f, struct told *told)
{
    struct store_watch *watch = NULL; /* ends with the store */
    const struct store_watch_options all = {.after_version = STORE_FROM_NOW};
    assert_int_equal(store_watch(f->store, &all, take_letter, told, &watch, &f->err), 0);
}

static char *put_owned(struct fixture *f, const char *resource, const char *name, const char *uid,
                       bool blocks, const char *phase)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "{'metadata':{'name':'%s','namespace':'default','ownerReferences':[{'uid':'%s',"
                   "'blockOwnerDeletion':%s}]},'status':{'phase':'%s'}}",
                   name, uid, blocks ? "true" : "false", phase);
    return put(f, resource, text);
}

static void put_job_with(struct fixture *f, const char *finalizers, bool blocks)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "{'metadata':{'name':'j','namespace':'default','finalizers':[%s]}}", finalizers);
    muster_auto(free) char *uid = put(f, "pytorchjobs", text);
    free(put_owned(f, "pods", "runs", uid, blocks, "Running"));
    free(put_owned(f, "pods", "done", uid, blocks, "Succeeded"));
}

static void delete_as(struct fixture *f, const char *resource, const char *name,
                      enum store_propagation how)
{
    const struct store_delete_options options = {.grace_s = STORE_GRACE_DEFAULT,
                                                 .propagation = how};
    assert_int_equal(store_delete(f->store, key_of(resource, name), &options, NULL, &f->err), 0);
}

static void end_pod(struct fixture *f, const char *name)
{
    const struct store_delete_options now = {.grace_s = 0};
    assert_int_equal(store_delete(f->store, key_of("pods", name), &now, NULL, &f->err), 0);
}

static bool terminates(struct fixture *f, const char *resource, const char *name)
{
    muster_auto(doc) json_t *object = fetch(f, resource, name);
    return doc_at(object, "metadata.deletionTimestamp");
}

/* Returns the object's finalizers, with spaces between. */
static const char *finalizers_of(struct fixture *f, const char *resource, const char *name)
{
    static char text[TEXT_BYTES];
    muster_auto(doc) json_t *object = fetch(f, resource, name);
    size_t i;
    json_t *each;
    text[0] = '\0';
    json_array_foreach (doc_at(object, "metadata.finalizers"), i, each) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                       json_string_value(each));
    }
    return text;
}

static void set_finalizers(struct fixture *f, const char *name, json_t *finalizers)
{
    muster_auto(doc) json_t *fetched = fetch(f, "pytorchjobs", name);
    muster_auto(doc) json_t *object = json_deep_copy(fetched);
    json_object_set_new(json_object_get(object, "metadata"), "finalizers", finalizers);
    assert_int_equal(store_update(f->store, "pytorchjobs", object, STORE_ALL, NULL, &f->err), 0);
}

static void in_the_foreground_the_owner_goes_last(void **state)
{
    (void)state;
    struct fixture f;
    struct told told = {.resource = "pytorchjobs"};
    fixture_init(&f);
    put_job_with(&f, "", true);
    muster_auto(doc) json_t *job = fetch(&f, "pytorchjobs", "j");
    free(put_owned(&f, "pods", "free", doc_text(job, "metadata.uid", ""), false, "Running"));
    watch_all(&f, &told);

    delete_as(&f, "pytorchjobs", "j", STORE_FOREGROUND);
    assert_true(terminates(&f, "pytorchjobs", "j"));
    assert_string_equal(finalizers_of(&f, "pytorchjobs", "j"), "foregroundDeletion");
    assert_false(exists(&f, "pods", "done"));
    assert_true(terminates(&f, "pods", "runs") && terminates(&f, "pods", "free"));
    assert_string_equal(told.letters, "M");

    delete_as(&f, "pytorchjobs", "j", STORE_AS_FINALIZED); /* the second call changes nothing */
    assert_string_equal(told.letters, "M");
    end_pod(&f, "runs");
    assert_false(exists(&f, "pytorchjobs", "j"));
    assert_true(exists(&f, "pods", "free")); /* no owner waits for it */
    assert_string_equal(told.letters, "MD");
    fixture_done(&f);
}

static void it_goes_at_once_when_nothing_holds_it(void **state)
{
    (void)state;
    struct fixture f;
    struct told told = {.resource = "pytorchjobs"};
    fixture_init(&f);
    put_job_with(&f, "", false);
    watch_all(&f, &told);
    delete_as(&f, "pytorchjobs", "j", STORE_FOREGROUND);
    assert_false(exists(&f, "pytorchjobs", "j"));
    assert_true(terminates(&f, "pods", "runs"));
    assert_string_equal(told.letters, "MD");
    fixture_done(&f);
}

static void a_dependent_that_is_let_go_holds_it_no_longer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    put_job_with(&f, "", true);
    delete_as(&f, "pytorchjobs", "j", STORE_FOREGROUND);
    muster_auto(doc) json_t *pod = fetch(&f, "pods", "runs");
    muster_auto(doc) json_t *freed = json_deep_copy(pod);
    json_object_del(json_object_get(freed, "metadata"), "ownerReferences");
    assert_int_equal(store_update(f.store, "pods", freed, STORE_ALL, NULL, &f.err), 0);
    assert_false(exists(&f, "pytorchjobs", "j"));
    fixture_done(&f);
}

static void a_finalizer_of_others_holds_it_in_each_way(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    put_job_with(&f, "'x/y'", true);
    delete_as(&f, "pytorchjobs", "j", STORE_BACKGROUND);
    assert_true(terminates(&f, "pytorchjobs", "j"));
    assert_true(exists(&f, "pods", "done") && !terminates(&f, "pods", "runs"));

    delete_as(&f, "pytorchjobs", "j", STORE_FOREGROUND);
    assert_string_equal(finalizers_of(&f, "pytorchjobs", "j"), "x/y foregroundDeletion");
    assert_true(!exists(&f, "pods", "done") && terminates(&f, "pods", "runs"));
    end_pod(&f, "runs");
    assert_string_equal(finalizers_of(&f, "pytorchjobs", "j"), "x/y");
    set_finalizers(&f, "j", json_array());
    assert_false(exists(&f, "pytorchjobs", "j"));

    put_job_with(&f, "'x/y'", true);
    delete_as(&f, "pytorchjobs", "j", STORE_ORPHAN);
    assert_string_equal(finalizers_of(&f, "pytorchjobs", "j"), "x/y");
    set_finalizers(&f, "j", json_array());
    assert_false(exists(&f, "pytorchjobs", "j"));
    assert_true(exists(&f, "pods", "done") && !terminates(&f, "pods", "runs"));
    fixture_done(&f);
}

static void it_goes_as_its_finalizers_say_unless_it_is_told(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    put_job_with(&f, "'foregroundDeletion'", true);
    delete_as(&f, "pytorchjobs", "j", STORE_AS_FINALIZED);
    assert_true(terminates(&f, "pytorchjobs", "j"));
    delete_as(&f, "pytorchjobs", "j", STORE_BACKGROUND); /* waiting took too long */
    assert_false(exists(&f, "pytorchjobs", "j"));
    end_pod(&f, "runs");

    put_job_with(&f, "'orphan'", true);
    delete_as(&f, "pytorchjobs", "j", STORE_AS_FINALIZED);
    assert_false(exists(&f, "pytorchjobs", "j"));
    muster_auto(doc) json_t *pod = fetch(&f, "pods", "done");
    assert_int_equal(json_array_size(doc_at(pod, "metadata.ownerReferences")), 0);
    fixture_done(&f);
}

static void who_takes_the_finalizer_off_waits_no_longer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    put_job_with(&f, "", true);
    delete_as(&f, "pytorchjobs", "j", STORE_FOREGROUND);
    set_finalizers(&f, "j", json_array());
    assert_false(exists(&f, "pytorchjobs", "j"));
    assert_true(terminates(&f, "pods", "runs"));
    fixture_done(&f);
}

static void a_chain_is_waited_for_to_its_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *a = put(&f, "pytorchjobs", OBJECT("a", ""));
    muster_auto(free) char *b = put_owned(&f, "pytorchjobs", "b", a, true, "");
    free(put_owned(&f, "pods", "p", b, true, "Running"));
    delete_as(&f, "pytorchjobs", "a", STORE_FOREGROUND);
    assert_string_equal(finalizers_of(&f, "pytorchjobs", "b"), "foregroundDeletion");
    assert_true(terminates(&f, "pytorchjobs", "a") && terminates(&f, "pods", "p"));
    end_pod(&f, "p");
    assert_false(exists(&f, "pytorchjobs", "a") || exists(&f, "pytorchjobs", "b"));
    fixture_done(&f);
}

static void a_circle_does_not_wait_for_itself(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(free) char *a = put(&f, "pytorchjobs", OBJECT("a", ""));
    muster_auto(free) char *b = put_owned(&f, "pytorchjobs", "b", a, true, "");
    muster_auto(free) char *c = put_owned(&f, "pytorchjobs", "c", b, true, "");
    muster_auto(doc) json_t *first = fetch(&f, "pytorchjobs", "a");
    muster_auto(doc) json_t *closed = json_deep_copy(first);
    doc_set(closed, "metadata.ownerReferences",
            json_pack("[{s:s, s:b}, {s:s, s:b}]", "uid", c, "blockOwnerDeletion", 1, "uid", a,
                      "blockOwnerDeletion", 1));
    assert_int_equal(store_update(f.store, "pytorchjobs", closed, STORE_ALL, NULL, &f.err), 0);
    delete_as(&f, "pytorchjobs", "a", STORE_FOREGROUND);
    const struct store_query all = {.resource = "pytorchjobs"};
    assert_string_equal(names(&f, &all), "");
    fixture_done(&f);
}

static void of_two_owners_only_one_that_stays_keeps_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    char text[TEXT_BYTES];
    muster_auto(free) char *a = put(&f, "pytorchjobs", OBJECT("a", ""));
    muster_auto(free) char *b = put(&f, "pytorchjobs", OBJECT("b", ""));
    muster_auto(free) char *c = put(&f, "pytorchjobs", OBJECT("c", ""));
    free(put_owned(&f, "pods", "holds-a", a, true, "Running"));
    const char *both = "{'metadata':{'name':'%s','namespace':'default','ownerReferences':["
                       "{'uid':'%s','blockOwnerDeletion':true},"
                       "{'uid':'%s','blockOwnerDeletion':true}]}}";
    (void)snprintf(text, sizeof text, both, "a-and-c", a, c);
    free(put(&f, "services", text));
    delete_as(&f, "pytorchjobs", "a", STORE_FOREGROUND);
    assert_true(exists(&f, "services", "a-and-c"));

    (void)snprintf(text, sizeof text, both, "a-and-b", a, b);
    free(put(&f, "services", text));
    delete_as(&f, "pytorchjobs", "b", STORE_FOREGROUND); /* a waits already, so it keeps nothing */
    assert_false(exists(&f, "services", "a-and-b") || exists(&f, "pytorchjobs", "b"));
    end_pod(&f, "holds-a");
    assert_false(exists(&f, "pytorchjobs", "a"));
    assert_true(exists(&f, "services", "a-and-c") && exists(&f, "pytorchjobs", "c"));
    fixture_done(&f);
}

/* The function of store_on_delete sees the whole object with its dependents. */
struct witness {
    struct store *store;
    int told;
    size_t pods;
};

static void witness(void *arg, const char *resource, const json_t *object)
{
    struct witness *w = arg;
    struct store_page page;
    const struct store_query owned = {.resource = "pods",
                                      .owner_uid = doc_text(object, "metadata.uid", "")};
    if (strcmp(resource, "pytorchjobs") == 0) {
        assert_int_equal(store_list(w->store, &owned, &page, NULL), 0);
        w->told++;
        w->pods = json_array_size(page.items);
        store_page_done(&page);
    }
}

static void its_end_is_told_once_before_what_it_owns_goes(void **state)
{
    (void)state;
    for (int how = STORE_BACKGROUND; how <= STORE_FOREGROUND; how++) {
        struct fixture f;
        fixture_init(&f);
        struct witness w = {.store = f.store};
        store_on_delete(f.store, witness, &w);
        put_job_with(&f, "", true);
        delete_as(&f, "pytorchjobs", "j", (enum store_propagation)how);
        end_pod(&f, "runs");
        assert_false(exists(&f, "pytorchjobs", "j"));
        assert_int_equal(w.told, 1);
        assert_int_equal(w.pods, 2);

        put_job_with(&f, "'x/y'", true);
        delete_as(&f, "pytorchjobs", "j", STORE_BACKGROUND);
        assert_int_equal(w.told, 1);
        set_finalizers(&f, "j", json_array());
        assert_int_equal(w.told, 2);
        assert_int_equal(w.pods, 2);
        fixture_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_foreground_the_owner_goes_last),
        cmocka_unit_test(it_goes_at_once_when_nothing_holds_it),
        cmocka_unit_test(a_dependent_that_is_let_go_holds_it_no_longer),
        cmocka_unit_test(a_finalizer_of_others_holds_it_in_each_way),
        cmocka_unit_test(it_goes_as_its_finalizers_say_unless_it_is_told),
        cmocka_unit_test(who_takes_the_finalizer_off_waits_no_longer),
        cmocka_unit_test(a_chain_is_waited_for_to_its_end),
        cmocka_unit_test(a_circle_does_not_wait_for_itself),
        cmocka_unit_test(of_two_owners_only_one_that_stays_keeps_it),
        cmocka_unit_test(its_end_is_told_once_before_what_it_owns_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
