/* Power cuts at any moment of a random history: the store opens, is whole, and has one of the
 * states that were committed, but none before the last state that a sync had reached.
 *
 * The store is consistent, not durable. While its thread moves the WAL into the database, others
 * write, and the WAL often begins again. On the command line, "cuts N" makes N cuts, and "seed S"
 * runs this seed alone.
 */
#include "store/fixture.h"
#include "store/power.h"

#include <sqlite3.h>

enum {
    NAMES = 6,
    STEPS = 60,
    CUTS = 150,
    FILLER_BYTES_MAX = 6000,
    CALLS_MAX = 1000,
    WAL_PAGES_MAX = 1200
};

static unsigned first_seed = 1;
static long cuts = CUTS;

/* The value of each pair of a pod and a service; 0: the pair does not exist. */
struct state {
    int value[NAMES];
    int64_t version;
};

struct history {
    struct state states[STEPS + 2];
    _Atomic int done;   /* the last step that was acknowledged */
    _Atomic int synced; /* at least this step must be on the disk */
};

static void note_sync(void *data)
{
    struct history *h = data;
    h->synced = h->done;
}

/* Half of all seeds run step by step, so that each of them is the same every time. */
static void let_checkpoint(struct store *store)
{
    for (int64_t end = 0; !checkpoint_rests(store) && !power_is_off();) {
        assert_true(test_turn(&end));
    }
}

static json_t *object_of(int name, int value, size_t filler)
{
    char text[16];
    muster_auto(free) char *padding = calloc(filler + 1, 1);
    memset(padding, '.', filler);
    (void)snprintf(text, sizeof text, "o%d", name);
    return json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:i, s:s}}", "metadata", "name", text, "namespace",
                     "default", "labels", "l", "v", "spec", "x", value, "padding", padding);
}

static int write_one(struct store *store, const char *resource, int name, int old, int value,
                     size_t filler)
{
    char text[16];
    (void)snprintf(text, sizeof text, "o%d", name);
    muster_auto(doc) json_t *object = object_of(name, value, filler);
    return value == 0 ? store_delete(store, key_of(resource, text), NULL, NULL, NULL)
           : old == 0 ? store_create(store, resource, object, NULL, NULL)
                      : store_update(store, resource, object, STORE_ALL, NULL, NULL);
}

/* Writes a pod and a service of one name together; sometimes also a secret, whose deletion
 * syncs. */
static int step(struct store *store, struct history *h, int number, unsigned *seed)
{
    struct state next = h->states[number - 1];
    int name = rand_r(seed) % NAMES;
    int old = next.value[name];
    next.value[name] = old && rand_r(seed) % 3 == 0 ? 0 : number;
    size_t filler = (size_t)(rand_r(seed) % FILLER_BYTES_MAX);
    bool wipes = rand_r(seed) % 12 == 0;
    int r = store_begin(store, NULL);
    if (r < 0) {
        return r;
    }
    r = write_one(store, "pods", name, old, next.value[name], filler);
    r = r < 0 ? r : write_one(store, "services", name, old, next.value[name], filler);
    if (r == 0 && wipes) {
        r = write_one(store, "secrets", NAMES, 0, 1, filler);
        r = r < 0 ? r : write_one(store, "secrets", NAMES, 1, 0, filler);
    }
    next.version = store_version(store);
    h->states[number] = next; /* in doubt from now on */
    if (r < 0) {
        store_rollback(store);
        return r;
    }
    r = store_commit(store, NULL);
    h->done = r < 0 ? h->done : number;
    return r;
}

static void check_whole(const char *path, unsigned seed)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL), 0);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL), 0);
    int rc = sqlite3_step(statement);
    const char *verdict = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : "?";
    if (strcmp(verdict, "ok") != 0) {
        fail_msg("seed %u: %s (%s)", seed, verdict, sqlite3_errmsg(db));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

/* Returns 0 if there is no such object. */
static int value_of(struct store *store, const char *resource, int name)
{
    char text[16];
    muster_auto(doc) json_t *object = NULL;
    (void)snprintf(text, sizeof text, "o%d", name);
    int r = store_get(store, key_of(resource, text), &object, NULL);
    assert_true(r == 0 || r == MUSTER_ENOENT);
    return r == 0 ? (int)doc_int(object, "spec.x", -2) : 0;
}

static size_t count_labelled(struct store *store)
{
    struct selector labels;
    struct store_page page;
    assert_int_equal(selector_parse_labels("l=v", &labels, NULL), 0);
    const struct store_query query = {.resource = "pods", .labels = &labels};
    assert_int_equal(store_list(store, &query, &page, NULL), 0);
    size_t count = json_array_size(page.items);
    store_page_done(&page);
    selector_done(&labels);
    return count;
}

static void check_state(struct store *store, const struct history *h, unsigned seed)
{
    struct state now = {.version = store_version(store)};
    size_t count = 0;
    for (int name = 0; name < NAMES; name++) {
        now.value[name] = value_of(store, "pods", name);
        count += now.value[name] != 0;
        assert_int_equal(now.value[name], value_of(store, "services", name));
    }
    assert_int_equal(count_labelled(store), count);
    int last = h->done + 1; /* the step that is in doubt */
    for (int i = h->synced; i <= last; i++) {
        if (memcmp(now.value, h->states[i].value, sizeof now.value) == 0 &&
            now.version >= h->states[i].version) {
            return;
        }
    }
    fail_msg("seed %u: the store stands at no state from %d (synced) to %d (in doubt)", seed,
             h->synced, last);
}

static void cut_once(const char *path, unsigned seed)
{
    struct history h = {0};
    struct store *store = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    unsigned random = seed;
    const struct store_options options = {.wal_pages_max = 1 + rand_r(&random) % WAL_PAGES_MAX};
    power_reset(seed, note_sync, &h);
    power_fail_at(1 + rand_r(&random) % CALLS_MAX);
    int r = store_open(path, &options, &store, NULL);
    for (int i = 1; i <= STEPS && r == 0; i++) {
        r = step(store, &h, i, &random);
        if (r == 0 && seed % 2) {
            let_checkpoint(store);
        }
    }
    assert_true(r == 0 || power_is_off());
    if (r == 0 && rand_r(&random) % 2) {
        power_fail_at(1 + rand_r(&random) % 4); /* while it closes, which moves the WAL */
    }
    store_close(store);
    power_on();
    check_whole(path, seed);
    if (store_open(path, NULL, &store, &err) < 0) {
        fail_msg("seed %u: %s", seed, err.text);
    }
    check_state(store, &h, seed);
    store_close(store);
}

static void after_any_cut_the_store_is_whole(void **state)
{
    muster_auto(free) char *path = file_join(*state, "store.db");
    power_install();
    for (long i = 0; i < cuts; i++) {
        cut_once(path, first_seed + (unsigned)i);
    }
    power_uninstall();
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        unsigned long given = strtoul(argv[2], NULL, 10);
        bool seed = strcmp(argv[1], "seed") == 0;
        first_seed = seed ? (unsigned)given : 1;
        cuts = seed ? 1 : (long)given;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(after_any_cut_the_store_is_whole, test_folder_set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
