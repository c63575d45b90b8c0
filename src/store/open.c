/* Opens and closes the store: limits, counters, and what a reboot may have lost. See store.h.
 *
 * Layer: services. Thread: one.
 */
#include "store/internal.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANGES_MAX = 10000,
    OBJECT_BYTES_MAX = 1536 * 1024,
    OBJECTS_MAX = 200000,
    EVENTS_MAX = 5000,
    WAL_PAGES_MAX = 16384,
    BOOT_ID_BYTES_MAX = 64,
};

/* More versions than could be written between the last commit on disk and a power cut. */
static const int64_t version_leap = 1000000;

static size_t or_default(size_t value, size_t fallback)
{
    return value ? value : fallback;
}

static struct store_options with_defaults(const struct store_options *given)
{
    struct store_options o = given ? *given : (struct store_options){0};
    o.changes_max = or_default(o.changes_max, CHANGES_MAX);
    o.object_bytes_max = or_default(o.object_bytes_max, OBJECT_BYTES_MAX);
    o.objects_max = or_default(o.objects_max, OBJECTS_MAX);
    o.events_max = or_default(o.events_max, EVENTS_MAX);
    o.wal_pages_max = o.wal_pages_max ? o.wal_pages_max : WAL_PAGES_MAX;
    return o;
}

static int meta_get(struct store *store, const char *key, char **ret, struct muster_err *err)
{
    int r = sql_step(store, SQL_META_GET, err, "t", key);
    if (r < 0) {
        return r;
    }
    const char *value = r == 1 ? sql_text(store, SQL_META_GET, 0) : "";
    char *copy = value ? strdup(value) : NULL;
    sql_end(store, SQL_META_GET);
    if (!copy) {
        return err_no_memory(err);
    }
    *ret = copy;
    return 0;
}

static int load_counters(struct store *store, struct muster_err *err)
{
    muster_auto(free) char *base = NULL;
    int r = meta_get(store, "version", &base, err);
    r = r < 0 ? r : sql_step(store, SQL_OBJECT_COUNT, err, "");
    if (r < 0) {
        return r;
    }
    struct counters *now = &store->now;
    now->objects = (size_t)sql_int(store, SQL_OBJECT_COUNT, 0);
    now->events = (size_t)sql_int(store, SQL_OBJECT_COUNT, 1);
    sql_end(store, SQL_OBJECT_COUNT);
    r = sql_step(store, SQL_CHANGE_RANGE, err, "");
    if (r < 0) {
        return r;
    }
    now->changes = (size_t)sql_int(store, SQL_CHANGE_RANGE, 0);
    now->version = sql_int(store, SQL_CHANGE_RANGE, 2);
    now->changes_bytes = (size_t)sql_int(store, SQL_CHANGE_RANGE, 3);
    int64_t leapt = strtoll(base, NULL, 10);
    if (now->changes == 0) {
        now->version = leapt;
    }
    now->floor = now->changes ? sql_int(store, SQL_CHANGE_RANGE, 1) - 1 : now->version;
    sql_end(store, SQL_CHANGE_RANGE);
    return 0;
}

/* After a boot, the last commits may be missing although clients saw their versions: versions then
 * start well above them, and every watcher lists again. */
static int leap(struct store *store, const char *boot_id, struct muster_err *err)
{
    char version[24];
    snprintf(version, sizeof version, "%" PRId64, store->now.version + version_leap);
    int r = write_begin(store, err);
    if (r < 0) {
        return r;
    }
    r = sql_run(store, SQL_CHANGE_CLEAR, err, "");
    r = r < 0 ? r : sql_run(store, SQL_META_SET, err, "tt", "version", version);
    r = r < 0 ? r : sql_run(store, SQL_META_SET, err, "tt", "boot", boot_id);
    r = write_end(store, r, err);
    return r < 0 ? r : load_counters(store, err);
}

static int notice_boot(struct store *store, struct muster_err *err)
{
    muster_auto(free) char *known = NULL;
    muster_auto(free) char *boot_id = NULL;
    int r = meta_get(store, "boot", &known, err);
    if (r < 0) {
        return r;
    }
    if (file_read("/proc/sys/kernel/random/boot_id", BOOT_ID_BYTES_MAX, &boot_id, NULL, NULL) < 0) {
        return 0; /* no /proc: every start then counts as the same boot */
    }
    boot_id[strcspn(boot_id, "\n")] = '\0';
    if (strcmp(known, boot_id) == 0) {
        return 0;
    }
    if (*known == '\0') {
        return sql_run(store, SQL_META_SET, err, "tt", "boot", boot_id);
    }
    return leap(store, boot_id, err);
}

int store_open(const char *path, const struct store_options *options, struct store **ret,
               struct muster_err *err)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store || !(store->path = strdup(path)) || !(store->left = json_object())) {
        free(store ? store->path : NULL);
        free(store);
        return err_no_memory(err);
    }
    store->options = with_defaults(options);
    int r = database_open(store, err);
    r = r < 0 ? r : load_counters(store, err);
    r = r < 0 ? r : notice_boot(store, err);
    r = r < 0 ? r : checkpoint_start(store, err);
    if (r < 0) {
        store_close(store);
        return r;
    }
    *ret = store;
    return 0;
}

struct store *store_close(struct store *store)
{
    if (!store) {
        return NULL;
    }
    assert(!store->telling && "a watcher may not close the store");
    if (store->in_transaction) {
        store_rollback(store);
    }
    while (store->watches) {
        store_unwatch(store->watches);
    }
    change_drop(store, 0);
    free(store->pending);
    checkpoint_stop(store);
    database_close(store);
    checkpoint_free(store);
    json_decref(store->left);
    free(store->path);
    free(store);
    return NULL;
}

int64_t store_version(const struct store *store)
{
    return store->now.version;
}
