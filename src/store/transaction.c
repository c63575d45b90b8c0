/* Transactions: those of the caller (store_begin …), and one for each single write, within them or
 * alone. When SQLite rolls back, the state in memory goes back as well.
 *
 * Layer: services.
 */
#include "store/internal.h"

#include <assert.h>

static void undo_to(struct store *store, const struct counters *then)
{
    assert(then->pending <= store->now.pending && then->version <= store->now.version);
    change_drop(store, then->pending);
    store->now = *then;
}

/* Rolls back, unless SQLite has ended the transaction by itself because the disk is full. */
static void roll_back(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db)) {
        (void)sql_run(store, SQL_ROLLBACK, NULL, "");
    }
}

static int fail_ended(const struct store *store, struct muster_err *err)
{
    return muster_fail(err, MUSTER_ECREATE,
                       "cannot write %s: an earlier write of the same transaction failed",
                       store->path);
}

static int begin(struct store *store, struct muster_err *err)
{
    int r = checkpoint_make_room(store, err);
    if (r < 0) {
        return r;
    }
    checkpoint_begin(store);
    store->at_begin = store->now;
    r = sql_run(store, SQL_BEGIN, err, "");
    if (r < 0) {
        checkpoint_end(store);
    }
    return r;
}

static void take_back(struct store *store)
{
    roll_back(store);
    checkpoint_end(store);
    undo_to(store, &store->at_begin);
}

static int commit(struct store *store, struct muster_err *err)
{
    int r = sql_run(store, SQL_COMMIT, err, "");
    if (r < 0) {
        take_back(store);
        return r;
    }
    checkpoint_committed(store, store->wal_frames);
    checkpoint_end(store);
    change_tell(store);
    return 0;
}

int store_begin(struct store *store, struct muster_err *err)
{
    assert(!store->in_transaction && !store->writing && !store->telling);
    assert(store->now.pending == 0 && "what was committed was told");
    int r = begin(store, err);
    store->in_transaction = r == 0;
    return r;
}

int store_commit(struct store *store, struct muster_err *err)
{
    assert(store->in_transaction && !store->writing);
    store->in_transaction = false;
    if (sqlite3_get_autocommit(store->db)) {
        take_back(store);
        return fail_ended(store, err);
    }
    return commit(store, err);
}

void store_rollback(struct store *store)
{
    assert(store->in_transaction && !store->writing);
    store->in_transaction = false;
    take_back(store);
}

static int open_write(struct store *store, struct muster_err *err)
{
    if (!store->in_transaction) {
        assert(store->now.pending == 0);
        return begin(store, err);
    }
    return sqlite3_get_autocommit(store->db) ? fail_ended(store, err)
                                             : sql_run(store, SQL_SAVE, err, "");
}

int write_begin(struct store *store, struct muster_err *err)
{
    assert(!store->telling && "a watcher may not write");
    assert(!store->writing);
    store->at_write = store->now;
    (void)json_object_clear(store->left);
    int r = open_write(store, err);
    store->writing = r == 0;
    return r;
}

int write_end(struct store *store, int r, struct muster_err *err)
{
    assert(store->writing && !store->telling && r <= 0);
    r = r < 0 ? r : dependents_settle(store, err);
    store->writing = false;
    if (!store->in_transaction) {
        if (r == 0) {
            return commit(store, err);
        }
        take_back(store);
        return r;
    }
    if (r < 0) {
        undo_to(store, &store->at_write);
        if (!sqlite3_get_autocommit(store->db)) {
            (void)sql_run(store, SQL_BACK, NULL, "");
        }
    }
    if (!sqlite3_get_autocommit(store->db)) {
        int released = sql_run(store, SQL_RELEASE, r < 0 ? NULL : err, "");
        r = r < 0 ? r : released;
    }
    return r;
}
