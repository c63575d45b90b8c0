/* A store of an earlier layout opens with everything that it holds; a store of a later muster, and
 * a database of another program, are refused and not changed. */
#include "store/fixture.h"

#include <sqlite3.h>

/* The file that muster wrote when layout 1 was the newest: never change this text. */
static const char layout_1[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE objects(id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, version INTEGER NOT NULL, object TEXT NOT NULL,"
    " UNIQUE(resource, namespace, name));"
    "CREATE INDEX objects_by_uid ON objects(uid);"
    "CREATE INDEX events_by_age ON objects(id) WHERE resource = 'events';"
    "CREATE TABLE labels(key TEXT NOT NULL, value TEXT NOT NULL, id INTEGER NOT NULL,"
    " PRIMARY KEY(key, value, id)) WITHOUT ROWID;"
    "CREATE INDEX labels_by_id ON labels(id);"
    "CREATE TABLE owners(owner TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(owner, id))"
    " WITHOUT ROWID;"
    "CREATE INDEX owners_by_id ON owners(id);"
    "CREATE TABLE changes(version INTEGER PRIMARY KEY, kind INTEGER NOT NULL, resource TEXT NOT "
    "NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, object TEXT NOT NULL, before TEXT);"
    "PRAGMA user_version = 1;";

static void run(sqlite3 *db, char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", why, sql);
    }
    sqlite3_free(sql);
}

static char *secret_text(const char *name, int version, const char *value)
{
    return sqlite3_mprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"u-%s\","
        "\"resourceVersion\":\"%d\",\"annotations\":{\"mine\":\"kept\","
        "\"kubectl.kubernetes.io/last-applied-configuration\":\"%s\"}},"
        "\"data\":{\"k\":\"%s\"}}",
        name, name, version, value, value);
}

static void add_secret_change(sqlite3 *db, int version, int kind, const char *name,
                              const char *value)
{
    char *text = secret_text(name, version, value);
    run(db, sqlite3_mprintf("INSERT INTO changes VALUES(%d, %d, 'secrets', 'default', %Q, %Q, %Q)",
                            version, kind, name, text, kind == STORE_ADDED ? NULL : text));
    sqlite3_free(text);
}

/* Makes a store with a pod, a secret, and a deleted secret of which a free page has a copy. */
static void make_layout_1(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, sqlite3_mprintf("PRAGMA secure_delete = OFF; %s", layout_1));
    run(db, sqlite3_mprintf("INSERT INTO objects VALUES(1, 'pods', 'default', 'p', 'u1', 7, "
                            "'{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\","
                            "\"uid\":\"u1\",\"labels\":{\"a\":\"b\"}}}');"
                            "INSERT INTO labels VALUES('a', 'b', 1)"));
    char *text = secret_text("here", 8, "alive-canary");
    run(db, sqlite3_mprintf("INSERT INTO objects VALUES(2, 'secrets', 'default', 'here', "
                            "'u-here', 8, %Q)",
                            text));
    sqlite3_free(text);
    add_secret_change(db, 8, STORE_ADDED, "here", "alive-canary");
    add_secret_change(db, 9, STORE_ADDED, "gone", "dead-canary");
    add_secret_change(db, 10, STORE_DELETED, "gone", "dead-canary");
    run(db, sqlite3_mprintf("CREATE TABLE old(text); INSERT INTO old VALUES('dead-canary' || "
                            "hex(zeroblob(20000))); DROP TABLE old"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int layout_of(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), 0);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int layout = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return layout;
}

static bool file_holds(const char *path, const char *text)
{
    muster_auto(free) char *bytes = NULL;
    size_t count = 0;
    assert_int_equal(file_read(path, 64 << 20, &bytes, &count, NULL), 0);
    return memmem(bytes, count, text, strlen(text)) != NULL;
}

static void check_content(struct fixture *f)
{
    muster_auto(doc) json_t *pod = fetch(f, "pods", "p");
    muster_auto(doc) json_t *secret = fetch(f, "secrets", "here");
    assert_string_equal(doc_text(pod, "metadata.uid", ""), "u1");
    assert_string_equal(doc_text(secret, "data.k", ""), "alive-canary");
    assert_false(exists(f, "secrets", "gone"));
    assert_true(store_version(f->store) >= 10);
    struct selector labels;
    assert_int_equal(selector_parse_labels("a=b", &labels, &f->err), 0);
    assert_string_equal(names(f, &(struct store_query){.resource = "pods", .labels = &labels}),
                        "p");
    selector_done(&labels);
}

static void layout_1_opens_with_all_it_holds(void **state)
{
    struct fixture f = {0};
    (void)snprintf(f.path, sizeof f.path, "%s/store.db", (const char *)*state);
    make_layout_1(f.path);
    assert_true(file_holds(f.path, "dead-canary"));
    fixture_open(&f);
    check_content(&f);
    free(put(&f, "pods", OBJECT("later", "")));
    assert_true(store_version(f.store) == 11);
    f.store = store_close(f.store);
    assert_false(file_holds(f.path, "dead-canary"));
    assert_int_equal(layout_of(f.path), 3);
    fixture_open(&f); /* the second time there is nothing to do */
    check_content(&f);
    f.store = store_close(f.store);
}

/* The state after a power cut between two steps. */
static void half_of_the_way_is_gone_on_from(void **state)
{
    struct fixture f = {0};
    (void)snprintf(f.path, sizeof f.path, "%s/store.db", (const char *)*state);
    make_layout_1(f.path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
    run(db, sqlite3_mprintf("PRAGMA user_version = 2"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    fixture_open(&f);
    check_content(&f);
    f.store = store_close(f.store);
    assert_int_equal(layout_of(f.path), 3);
}

static void a_step_that_fails_leaves_the_layout_before(void **state)
{
    struct fixture f = {0};
    (void)snprintf(f.path, sizeof f.path, "%s/store.db", (const char *)*state);
    make_layout_1(f.path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
    run(db, sqlite3_mprintf("UPDATE changes SET object = 'no JSON' WHERE version = 9"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_true(store_open(f.path, NULL, &f.store, &f.err) < 0);
    assert_non_null(strstr(f.err.text, "layout 2"));
    assert_int_equal(layout_of(f.path), 1);
    assert_true(file_holds(f.path, "alive-canary"));
}

static void strangers_and_later_layouts_are_refused_untouched(void **state)
{
    struct fixture f = {0};
    static const struct {
        const char *sql, *says;
    } table[] = {{"CREATE TABLE theirs(a); PRAGMA user_version = 0", "another program"},
                 {"PRAGMA user_version = 4", "newer muster (layout 4, this one knows 3)"},
                 {"PRAGMA user_version = -1", "newer muster"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        (void)snprintf(f.path, sizeof f.path, "%s/%zu.db", (const char *)*state, i);
        sqlite3 *db = NULL;
        assert_int_equal(sqlite3_open(f.path, &db), SQLITE_OK);
        run(db, sqlite3_mprintf("%s", table[i].sql));
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        int before = layout_of(f.path);
        assert_int_equal(store_open(f.path, NULL, &f.store, &f.err), MUSTER_EDATA);
        assert_non_null(strstr(f.err.text, table[i].says));
        assert_non_null(strstr(f.err.text, "MUSTER_HOME"));
        assert_int_equal(layout_of(f.path), before);
    }
}

#define IN_A_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, test_folder_set_up, test_folder_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(layout_1_opens_with_all_it_holds),
        IN_A_FOLDER(half_of_the_way_is_gone_on_from),
        IN_A_FOLDER(a_step_that_fails_leaves_the_layout_before),
        IN_A_FOLDER(strangers_and_later_layouts_are_refused_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
