/* The values of secrets that were deleted or changed are in no file of the store, and late watchers
 * get the right changes without them. */
#include "store/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { NAMES = 12, ROUNDS = 400, FILLER_BYTES_MAX = 9000, CANARY_BYTES = 40 };

/* Whether any file of the store holds the text, once its thread has done its work. */
static bool store_holds(const struct fixture *f, const char *text)
{
    bool found = false;
    fixture_rest(f->store);
    DIR *entries = opendir(f->folder);
    assert_non_null(entries);
    for (struct dirent *e = readdir(entries); e; e = readdir(entries)) {
        muster_auto(free) char *path = file_join(f->folder, e->d_name);
        muster_auto(free) char *bytes = NULL;
        size_t count = 0;
        if (e->d_type == DT_REG) {
            assert_int_equal(file_read(path, 64 << 20, &bytes, &count, NULL), 0);
            found = found || memmem(bytes, count, text, strlen(text));
        }
    }
    closedir(entries);
    return found;
}

static json_t *secret_named(const char *name, const char *value, size_t filler)
{
    muster_auto(free) char *padding = calloc(filler + 1, 1);
    memset(padding, '.', filler);
    char last[128];
    (void)snprintf(last, sizeof last, "{\"data\":{\"k\":\"%s\"}}", value);
    return json_pack("{s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s}}", "kind", "Secret", "metadata",
                     "name", name, "namespace", "default", "annotations",
                     "kubectl.kubernetes.io/last-applied-configuration", last, "data", "k", value,
                     "padding", padding);
}

struct canary {
    char value[CANARY_BYTES]; /* "": the secret does not exist */
};

static void new_value(struct canary *canary, int round)
{
    (void)snprintf(canary->value, sizeof canary->value, "canary-%06d-of-this-test", round);
}

/* Writes other objects in between, so that pages are split and joined. */
static void write_other(struct fixture *f, unsigned *seed)
{
    char name[16];
    (void)snprintf(name, sizeof name, "p%d", rand_r(seed) % 40);
    if (exists(f, "pods", name)) {
        (void)store_delete(f->store, key_of("pods", name), NULL, NULL, NULL);
        return;
    }
    muster_auto(doc) json_t *pod =
        secret_named(name, "no secret", (size_t)(rand_r(seed) % FILLER_BYTES_MAX));
    assert_int_equal(store_create(f->store, "pods", pod, NULL, &f->err), 0);
}

static void change_secret(struct fixture *f, struct canary *canary, int which, int round,
                          unsigned *seed)
{
    char name[16];
    struct canary old = *canary;
    (void)snprintf(name, sizeof name, "s%d", which);
    bool remove = *old.value && rand_r(seed) % 2;
    if (remove) {
        assert_int_equal(store_delete(f->store, key_of("secrets", name), NULL, NULL, &f->err), 0);
        *canary = (struct canary){0};
    } else {
        new_value(canary, round);
        muster_auto(doc) json_t *secret =
            secret_named(name, canary->value, (size_t)(rand_r(seed) % FILLER_BYTES_MAX));
        int r = *old.value ? store_update(f->store, "secrets", secret, STORE_ALL, NULL, &f->err)
                           : store_create(f->store, "secrets", secret, NULL, &f->err);
        assert_int_equal(r, 0);
    }
    if (*old.value) {
        assert_false(store_holds(f, old.value));
    }
}

static void values_that_are_gone_are_in_no_file(void **state)
{
    (void)state;
    struct fixture f;
    struct canary canaries[NAMES] = {0};
    unsigned seed = (unsigned)getpid();
    fixture_init(&f);
    print_message("seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        int which = rand_r(&seed) % NAMES;
        write_other(&f, &seed);
        change_secret(&f, &canaries[which], which, round, &seed);
    }
    fixture_done(&f);
}

/* A secret is changed twice in one transaction, and a deletion is undone. */
static void transactions_leave_nothing_either(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    muster_auto(doc) json_t *first = secret_named("s", "canary-first", 10);
    muster_auto(doc) json_t *second = secret_named("s", "canary-second", 5000);
    muster_auto(doc) json_t *third = secret_named("s", "canary-third", 10);
    assert_int_equal(store_create(f.store, "secrets", first, NULL, &f.err), 0);
    assert_int_equal(store_begin(f.store, &f.err), 0);
    assert_int_equal(store_update(f.store, "secrets", second, STORE_ALL, NULL, &f.err), 0);
    assert_int_equal(store_update(f.store, "secrets", third, STORE_ALL, NULL, &f.err), 0);
    assert_int_equal(store_commit(f.store, &f.err), 0);
    assert_false(store_holds(&f, "canary-first"));
    assert_false(store_holds(&f, "canary-second"));
    assert_int_equal(store_begin(f.store, &f.err), 0);
    assert_int_equal(store_delete(f.store, key_of("secrets", "s"), NULL, NULL, &f.err), 0);
    store_rollback(f.store);
    assert_true(exists(&f, "secrets", "s"));
    assert_int_equal(store_delete(f.store, key_of("secrets", "s"), NULL, NULL, &f.err), 0);
    assert_false(store_holds(&f, "canary-third"));
    fixture_done(&f);
}

/* ---- late watchers ---- */

struct told {
    char text[512];
};

static void note_change(void *arg, const struct store_change *change)
{
    static const char *const kinds[] = {"added", "modified", "deleted"};
    struct told *told = arg;
    size_t used = strlen(told->text);
    (void)snprintf(told->text + used, sizeof told->text - used, "%s %s %s; ", kinds[change->kind],
                   change->key.name, doc_text(change->object, "data.k", "-"));
}

static void late_watchers_see_the_last_version_and_the_end(void **state)
{
    (void)state;
    struct fixture f;
    struct told told = {0};
    struct store_watch *watch = NULL;
    fixture_init(&f);
    int64_t before = store_version(f.store);
    muster_auto(doc) json_t *kept = secret_named("kept", "one", 0);
    muster_auto(doc) json_t *changed = secret_named("kept", "two", 0);
    muster_auto(doc) json_t *gone = secret_named("gone", "three", 0);
    muster_auto(doc) json_t *added = secret_named("new", "four", 0);
    assert_int_equal(store_create(f.store, "secrets", kept, NULL, &f.err), 0);
    assert_int_equal(store_create(f.store, "secrets", gone, NULL, &f.err), 0);
    assert_int_equal(store_update(f.store, "secrets", changed, STORE_ALL, NULL, &f.err), 0);
    assert_int_equal(store_delete(f.store, key_of("secrets", "gone"), NULL, NULL, &f.err), 0);
    assert_int_equal(store_create(f.store, "secrets", added, NULL, &f.err), 0);
    const struct store_watch_options options = {.resource = "secrets", .after_version = before};
    assert_int_equal(store_watch(f.store, &options, note_change, &told, &watch, &f.err), 0);
    assert_string_equal(told.text, "modified kept two; deleted gone -; added new four; ");
    store_unwatch(watch);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_gone_are_in_no_file),
        cmocka_unit_test(transactions_leave_nothing_either),
        cmocka_unit_test(late_watchers_see_the_last_version_and_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
