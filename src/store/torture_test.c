/* The k-th call fails: every write, sync and allocation of SQLite, every allocation of jansson.
 *
 * A small history (create, update, a transaction of two, delete) runs against a store whose k-th
 * call fails, for k = 1, 2, 3 … until a run reaches its end. After each run, the store is opened
 * again without faults and must hold exactly the steps that were acknowledged, or these and the one
 * step in doubt.
 */
#include "store/fixture.h"

#include <sqlite3.h>
#include <stdatomic.h>

enum { STEPS = 4, RUNS_MAX = 5000 };

/* ---- faults: one counter for all ---- */

static _Atomic long until_fault; /* calls until the fault; 0: none, below 0: it has happened */
static _Atomic bool tripped;

static bool faulty(void)
{
    if (until_fault <= 0 || atomic_fetch_sub(&until_fault, 1) != 1) {
        return false;
    }
    tripped = true;
    return true;
}

static void *faulty_malloc(size_t size)
{
    return faulty() ? NULL : malloc(size);
}

/* ---- a VFS over the system's, whose writes fail: the disk is full from then on ---- */

struct file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs full_vfs;
static _Atomic bool full;

static int full_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    sqlite3_file *real = ((struct file *)file)->real;
    full = full || faulty();
    return full ? SQLITE_FULL : real->pMethods->xWrite(real, bytes, count, at);
}

static int full_sync(sqlite3_file *file, int flags)
{
    sqlite3_file *real = ((struct file *)file)->real;
    full = full || faulty();
    return full ? SQLITE_IOERR_FSYNC : real->pMethods->xSync(real, flags);
}

#define PASS(name, parameters, arguments)                                                          \
    static int pass_##name parameters                                                              \
    {                                                                                              \
        sqlite3_file *real = ((struct file *)file)->real;                                          \
        return real->pMethods->x##name arguments;                                                  \
    }

PASS(Read, (sqlite3_file * file, void *into, int count, sqlite3_int64 at), (real, into, count, at))
PASS(Truncate, (sqlite3_file * file, sqlite3_int64 size), (real, size))
PASS(FileSize, (sqlite3_file * file, sqlite3_int64 *ret), (real, ret))
PASS(Lock, (sqlite3_file * file, int level), (real, level))
PASS(Unlock, (sqlite3_file * file, int level), (real, level))
PASS(CheckReservedLock, (sqlite3_file * file, int *ret), (real, ret))
PASS(FileControl, (sqlite3_file * file, int op, void *arg), (real, op, arg))
PASS(SectorSize, (sqlite3_file * file), (real))
PASS(DeviceCharacteristics, (sqlite3_file * file), (real))

PASS(ShmMap, (sqlite3_file * file, int region, int size, int extend, void volatile **ret),
     (real, region, size, extend, ret))
PASS(ShmLock, (sqlite3_file * file, int first, int count, int flags), (real, first, count, flags))
PASS(ShmUnmap, (sqlite3_file * file, int delete), (real, delete))

static void pass_barrier(sqlite3_file *file)
{
    sqlite3_file *real = ((struct file *)file)->real;
    real->pMethods->xShmBarrier(real);
}

static int pass_Close(sqlite3_file *file)
{
    sqlite3_file *real = ((struct file *)file)->real;
    int rc = real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
    free(real);
    return rc;
}

static const sqlite3_io_methods full_methods = {
    .iVersion = 2,
    .xClose = pass_Close,
    .xRead = pass_Read,
    .xWrite = full_write,
    .xTruncate = pass_Truncate,
    .xSync = full_sync,
    .xFileSize = pass_FileSize,
    .xLock = pass_Lock,
    .xUnlock = pass_Unlock,
    .xCheckReservedLock = pass_CheckReservedLock,
    .xFileControl = pass_FileControl,
    .xSectorSize = pass_SectorSize,
    .xDeviceCharacteristics = pass_DeviceCharacteristics,
    .xShmMap = pass_ShmMap,
    .xShmLock = pass_ShmLock,
    .xShmBarrier = pass_barrier,
    .xShmUnmap = pass_ShmUnmap,
};

static int full_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    struct file *f = (struct file *)file;
    f->base.pMethods = NULL;
    f->real = calloc(1, (size_t)real_vfs->szOsFile);
    int rc = real_vfs->xOpen(real_vfs, name, f->real, flags, ret);
    if (rc != SQLITE_OK) {
        free(f->real);
        return rc;
    }
    f->base.pMethods = &full_methods;
    return SQLITE_OK;
}

static void install_vfs(void)
{
    real_vfs = sqlite3_vfs_find("unix-excl");
    full_vfs = *real_vfs;
    full_vfs.szOsFile = (int)sizeof(struct file);
    full_vfs.zName = "unix-excl";
    full_vfs.xOpen = full_open;
    sqlite3_vfs_register(&full_vfs, 1);
}

/* ---- SQLite's own memory ---- */

static sqlite3_mem_methods real_memory;

static void *memory_malloc(int size)
{
    return faulty() ? NULL : real_memory.xMalloc(size);
}

static void *memory_realloc(void *old, int size)
{
    return faulty() ? NULL : real_memory.xRealloc(old, size);
}

static void install_memory(void)
{
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    sqlite3_mem_methods mine = real_memory;
    mine.xMalloc = memory_malloc;
    mine.xRealloc = memory_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
    sqlite3_initialize();
}

/* ---- the history ---- */

static json_t *named(const char *name, int x)
{
    json_t *object = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:i}}", "metadata", "name", name,
                               "namespace", "default", "labels", "l", "v", "spec", "x", x);
    return object;
}

static int create(struct store *store, const char *resource, const char *name)
{
    muster_auto(doc) json_t *object = named(name, 1);
    return object ? store_create(store, resource, object, NULL, NULL) : MUSTER_ENOMEM;
}

static int create_pair(struct store *store)
{
    int r = store_begin(store, NULL);
    if (r < 0) {
        return r;
    }
    r = create(store, "pods", "b");
    if (r == 0) {
        r = create(store, "services", "b");
    }
    if (r < 0) {
        store_rollback(store);
        return r;
    }
    return store_commit(store, NULL);
}

static int step(struct store *store, int number)
{
    muster_auto(doc) json_t *changed = number == 1 ? named("a", 2) : NULL;
    switch (number) {
    case 0: return create(store, "pods", "a");
    case 1:
        return changed ? store_update(store, "pods", changed, STORE_ALL, NULL, NULL)
                       : MUSTER_ENOMEM;
    case 2: return create_pair(store);
    default: return store_delete(store, key_of("pods", "a"), NULL, NULL, NULL);
    }
}

/* Whether the store is in the state after `done` steps. */
static bool stands_at(struct fixture *f, int done)
{
    muster_auto(doc) json_t *a = NULL;
    (void)store_get(f->store, key_of("pods", "a"), &a, NULL);
    int x = (int)doc_int(a, "spec.x", 0);
    bool pair = exists(f, "pods", "b");
    assert_int_equal(pair, exists(f, "services", "b"));
    static const int x_after[] = {0, 1, 2, 2, 0};
    return x == x_after[done] && pair == (done >= 3);
}

/* Runs the history with the k-th call failing; returns how many steps were acknowledged before the
 * first one that was not. */
static int run_history(struct fixture *f, long k, bool *ret_finished)
{
    struct store *store = NULL;
    int done = 0;
    tripped = false;
    until_fault = k;
    if (store_open(f->path, NULL, &store, NULL) == 0) {
        while (done < STEPS && step(store, done) == 0) {
            done++;
        }
    }
    until_fault = 0;
    full = false;
    store_close(store);
    *ret_finished = !tripped;
    return done;
}

static void survive_every_fault(void)
{
    bool finished = false;
    for (long k = 1; !finished; k++) {
        assert_true(k < RUNS_MAX);
        struct fixture f;
        fixture_init(&f);
        f.store = store_close(f.store);
        int done = run_history(&f, k, &finished);
        fixture_open(&f);
        if (!stands_at(&f, done) && !(done < STEPS && stands_at(&f, done + 1))) {
            fail_msg("k = %ld: the store does not stand at step %d", k, done);
        }
        if (finished) {
            assert_int_equal(done, STEPS);
            print_message("survived %ld faults\n", k - 1);
        }
        fixture_done(&f);
    }
}

static void the_kth_write_or_sync_fails(void **state)
{
    (void)state;
    install_vfs();
    survive_every_fault();
    sqlite3_vfs_unregister(&full_vfs);
}

static void the_kth_allocation_of_sqlite_fails(void **state)
{
    (void)state;
    install_memory();
    survive_every_fault();
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_MALLOC, &real_memory);
    sqlite3_initialize();
}

static void the_kth_allocation_of_jansson_fails(void **state)
{
    (void)state;
    json_set_alloc_funcs(faulty_malloc, free);
    survive_every_fault();
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kth_write_or_sync_fails),
        cmocka_unit_test(the_kth_allocation_of_sqlite_fails),
        cmocka_unit_test(the_kth_allocation_of_jansson_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
