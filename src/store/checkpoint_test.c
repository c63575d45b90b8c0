/* Which thread syncs, and when: a VFS counts syncs by thread, holds them until the test releases
 * them, and makes them fail. */
#include "store/fixture.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

enum { PADDING_BYTES = 100000, WRITES = 100, PAGES_MAX = 640, PAGE_BYTES = 4096 };

/* ---- the VFS ---- */

static sqlite3_vfs *real_vfs;
static sqlite3_vfs counting_vfs;
static const sqlite3_io_methods *real_methods;     /* the system's are the same for all WALs … */
static const sqlite3_io_methods *real_wal_methods; /* … and for all databases */
static sqlite3_io_methods db_methods;
static sqlite3_io_methods wal_methods;

static pthread_t tester;
static _Atomic int by_tester; /* syncs of the thread that reads and writes */
static _Atomic int by_others;
static _Atomic bool failing;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool holding; /* syncs wait */
static int held;     /* number of syncs that wait */

static void hold(bool on)
{
    pthread_mutex_lock(&mutex);
    holding = on;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_until_held(void)
{
    pthread_mutex_lock(&mutex);
    while (held == 0) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static int count_sync(sqlite3_file *file, int flags, const sqlite3_io_methods *real)
{
    bool is_tester = pthread_equal(pthread_self(), tester);
    atomic_fetch_add(is_tester ? &by_tester : &by_others, 1);
    pthread_mutex_lock(&mutex);
    held++;
    pthread_cond_broadcast(&changed);
    while (holding && !is_tester) {
        pthread_cond_wait(&changed, &mutex);
    }
    held--;
    pthread_mutex_unlock(&mutex);
    return failing ? SQLITE_IOERR_FSYNC : real->xSync(file, flags);
}

static int sync_db(sqlite3_file *file, int flags)
{
    return count_sync(file, flags, real_methods);
}

static int sync_wal(sqlite3_file *file, int flags)
{
    return count_sync(file, flags, real_wal_methods);
}

/* Sets the methods only once: a WAL that begins again is opened by two threads. */
static const sqlite3_io_methods *changed_methods(const sqlite3_io_methods *given,
                                                 const sqlite3_io_methods **real,
                                                 sqlite3_io_methods *ours,
                                                 int (*sync)(sqlite3_file *, int))
{
    pthread_mutex_lock(&mutex);
    if (!*real) {
        *ours = *given;
        ours->xSync = sync;
        *real = given;
    }
    assert_ptr_equal(*real, given);
    pthread_mutex_unlock(&mutex);
    return ours;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret);
    if (rc == SQLITE_OK && flags & SQLITE_OPEN_MAIN_DB) {
        file->pMethods = changed_methods(file->pMethods, &real_methods, &db_methods, sync_db);
    } else if (rc == SQLITE_OK && flags & SQLITE_OPEN_WAL) {
        file->pMethods = changed_methods(file->pMethods, &real_wal_methods, &wal_methods, sync_wal);
    }
    return rc;
}

static int install_vfs(void **state)
{
    (void)state;
    real_vfs = sqlite3_vfs_find("unix-excl");
    counting_vfs = *real_vfs;
    counting_vfs.xOpen = open_file;
    tester = pthread_self();
    return sqlite3_vfs_register(&counting_vfs, 1);
}

/* ---- a store, and what the tests do with it ---- */

static int troubles; /* number of reports of trouble */

static void note_trouble(const struct muster_err *trouble)
{
    assert_int_equal(trouble->code, MUSTER_EIO);
    assert_non_null(strstr(trouble->text, "store.db"));
    troubles++;
}

static void open_store(struct fixture *f, int pages_max)
{
    const struct store_options options = {
        .changes_max = 5, .wal_pages_max = pages_max, .on_trouble = note_trouble};
    f->store = store_close(f->store);
    assert_int_equal(store_open(f->path, &options, &f->store, &f->err), 0);
    troubles = by_tester = by_others = 0;
}

/* Writes at least 100 kB more into the WAL. */
static int write_one(struct fixture *f, int value)
{
    static char padding[PADDING_BYTES];
    memset(padding, 'a' + value % 26, sizeof padding - 1);
    muster_auto(doc) json_t *object =
        json_pack("{s:{s:s, s:s}, s:s, s:i}", "metadata", "name", "a", "namespace", "default",
                  "padding", padding, "value", value);
    return exists(f, "pods", "a") ? store_update(f->store, "pods", object, STORE_ALL, NULL, &f->err)
                                  : store_create(f->store, "pods", object, NULL, &f->err);
}

static void write_some(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(write_one(f, i), 0);
    }
}

static size_t wal_bytes(const struct fixture *f)
{
    char path[sizeof f->path + 8];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s-wal", f->path);
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static void who_writes_never_syncs_nor_waits_for_a_sync(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    open_store(&f, 0);
    hold(true);
    write_some(&f, WRITES);
    wait_until_held();
    write_some(&f, WRITES); /* the disk is slow */
    size_t most = wal_bytes(&f);
    hold(false);
    fixture_rest(f.store);
    assert_true(by_others > 0);
    write_some(&f, WRITES / 2);
    fixture_rest(f.store);
    assert_true(wal_bytes(&f) < most); /* the WAL began again */
    assert_int_equal(by_tester, 0);
    fixture_done(&f);
}

static void *let_go_at_the_limit(void *data)
{
    const struct fixture *f = data;
    for (int64_t end = 0; wal_bytes(f) < PAGES_MAX * PAGE_BYTES;) {
        assert_true(test_turn(&end));
    }
    hold(false);
    return NULL;
}

static void the_wal_has_a_limit_while_writes_go_on(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t helper;
    size_t most = 0;
    fixture_init(&f);
    open_store(&f, PAGES_MAX);
    hold(true);
    assert_int_equal(pthread_create(&helper, NULL, let_go_at_the_limit, &f), 0);
    for (int i = 0; i < WRITES; i++) {
        assert_int_equal(write_one(&f, i), 0);
        most = wal_bytes(&f) > most ? wal_bytes(&f) : most;
    }
    pthread_join(helper, NULL);
    assert_in_range(most, PAGES_MAX * PAGE_BYTES, (PAGES_MAX + PAGES_MAX / 4) * PAGE_BYTES);
    assert_int_equal(by_tester, 0);
    fixture_done(&f);
}

static int write_until_refused(struct fixture *f)
{
    int r = 0;
    for (int i = 0; i < WRITES && r == 0; i++) {
        r = write_one(f, i);
    }
    assert_true(wal_bytes(f) < (PAGES_MAX + PAGES_MAX / 4) * PAGE_BYTES);
    return r;
}

static void a_disk_that_fails_is_told_of_once_and_stops_writes_at_the_limit(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    open_store(&f, PAGES_MAX);
    failing = true;
    assert_int_equal(write_until_refused(&f), MUSTER_EIO);
    assert_non_null(strstr(f.err.text, f.path));
    assert_int_equal(troubles, 1);
    failing = false;
    write_some(&f, WRITES);
    assert_int_equal(troubles, 1);
    fixture_rest(f.store);
    failing = true;
    assert_int_equal(write_until_refused(&f), MUSTER_EIO);
    assert_int_equal(troubles, 2);
    f.store = store_close(f.store);
    assert_int_equal(troubles, 3);
    failing = false;
    open_store(&f, PAGES_MAX);
    assert_true(exists(&f, "pods", "a"));
    write_some(&f, WRITES);
    fixture_done(&f);
}

/* After the write that is refused there is no other write that could report the trouble. */
static void a_disk_that_fails_slowly_is_told_of(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t helper;
    fixture_init(&f);
    open_store(&f, PAGES_MAX);
    int before = troubles;
    failing = true;
    hold(true);
    assert_int_equal(pthread_create(&helper, NULL, let_go_at_the_limit, &f), 0);
    assert_int_equal(write_until_refused(&f), MUSTER_EIO);
    pthread_join(helper, NULL);
    assert_int_equal(troubles, before + 1);
    failing = false;
    fixture_done(&f);
}

static void who_reads_without_end_does_not_let_it_grow_without_end(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    open_store(&f, PAGES_MAX);
    write_some(&f, 1);
    assert_int_equal(sql_step(f.store, SQL_OBJECT_COUNT, &f.err, ""), 1);
    assert_int_equal(write_until_refused(&f), MUSTER_EAGAIN);
    assert_non_null(strstr(f.err.text, "while it is read"));
    sql_end(f.store, SQL_OBJECT_COUNT);
    write_some(&f, WRITES);
    assert_int_equal(troubles, 0);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_writes_never_syncs_nor_waits_for_a_sync),
        cmocka_unit_test(the_wal_has_a_limit_while_writes_go_on),
        cmocka_unit_test(a_disk_that_fails_is_told_of_once_and_stops_writes_at_the_limit),
        cmocka_unit_test(a_disk_that_fails_slowly_is_told_of),
        cmocka_unit_test(who_reads_without_end_does_not_let_it_grow_without_end),
    };
    return cmocka_run_group_tests(tests, install_vfs, NULL);
}
