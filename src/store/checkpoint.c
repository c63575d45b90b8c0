/* Checkpoints. A thread with its own connection moves the WAL into the database. It makes the only
 * syncs of the store, so that nobody who reads or writes waits for the disk.
 *
 * A checkpoint (PASSIVE) runs beside writes. It starts only while frames that were committed are
 * not in the database yet: then the other connection cannot begin the WAL anew at the same moment,
 * which SQLite before 3.51.3 does not stand (the "WAL-reset bug"). Emptying the WAL (TRUNCATE, for
 * secrets that are gone) excludes transactions, and is left for later while anything would have to
 * be synced for it: it takes microseconds.
 *
 * Layer: services. Thread: the store's and the one that is made here; `mutex` is for what both see.
 */
#include "store/internal.h"

#include "base/err.h"
#include "core/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* DUE_PART: the part of the WAL's limit at which a checkpoint is due, 1,024 pages of 16,384.
 * ROUNDS: frames that were written during one round are moved in the next, so that the WAL can
 * begin again. AGAIN_MS: the pause after a read or write kept the WAL from being emptied. */
enum { DUE_PART = 16, ROUNDS = 4, AGAIN_MS = 20 };

struct checkpoint {
    const struct store *store; /* for its path */
    sqlite3 *db;               /* the connection of the thread, while it runs */
    pthread_t thread;
    pthread_mutex_t writing; /* held in a transaction, and while the WAL is emptied */
    pthread_mutex_t mutex;   /* for all fields that follow */
    pthread_cond_t changed;
    bool stop;
    bool due;
    bool wipe;                 /* empty the WAL */
    bool told;                 /* `trouble` was reported */
    int frames;                /* frames in the WAL at the last commit */
    int done;                  /* how many of these are in the database */
    unsigned rounds;           /* number of rounds that have ended */
    struct muster_err trouble; /* of the last round; code 0: no trouble */
};

/* ---- the thread ---- */

/* Notes the end of a round with SQLite's result `rc`. */
static void note(struct checkpoint *c, int rc, int done)
{
    c->trouble = (struct muster_err)MUSTER_ERR_INIT;
    if (rc == SQLITE_OK) {
        c->done = done;
        c->told = false;
    } else if (rc != SQLITE_BUSY) {
        (void)database_fail_at(c->store->path, c->db, rc, &c->trouble);
    }
    c->rounds++;
    pthread_cond_broadcast(&c->changed);
}

static void move(struct checkpoint *c)
{
    int log = 0;
    int done = 0;
    pthread_mutex_unlock(&c->mutex);
    int rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &done);
    pthread_mutex_lock(&c->mutex);
    note(c, rc, done);
}

/* Empties the WAL if all frames are in the database and there is no transaction: then nothing is
 * synced. */
static void empty(struct checkpoint *c)
{
    if (pthread_mutex_trylock(&c->writing) != 0) {
        return;
    }
    if (c->frames == c->done) {
        int rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        c->wipe = rc != SQLITE_OK;
        c->frames = rc == SQLITE_OK ? 0 : c->frames;
        note(c, rc, rc == SQLITE_OK ? 0 : c->done);
    }
    pthread_mutex_unlock(&c->writing);
}

static void work(struct checkpoint *c)
{
    c->due = false;
    c->trouble.code = 0;
    for (int i = 0; i < ROUNDS && c->frames > c->done && c->trouble.code == 0; i++) {
        move(c);
    }
    if (c->wipe && c->trouble.code == 0) {
        empty(c);
    }
    pthread_cond_broadcast(&c->changed);
}

/* Waits for the next work. If the WAL could not be emptied now, it is tried again soon; after
 * trouble, with the next commit. */
static void wait_a_little(struct checkpoint *c)
{
    struct timespec until;
    if (!c->wipe || c->trouble.code != 0) {
        pthread_cond_wait(&c->changed, &c->mutex);
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += AGAIN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    c->due = true;
}

static void *run(void *data)
{
    struct checkpoint *c = data;
    pthread_mutex_lock(&c->mutex);
    while (!c->stop) {
        if (c->due) {
            work(c);
        } else {
            wait_a_little(c);
        }
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* ---- the store's thread ---- */

void checkpoint_begin(struct store *store)
{
    if (store->checkpoint) {
        pthread_mutex_lock(&store->checkpoint->writing);
    }
}

void checkpoint_end(struct store *store)
{
    if (store->checkpoint) {
        pthread_mutex_unlock(&store->checkpoint->writing);
    }
}

/* Notes the number of frames. If there are fewer than before, the WAL has begun again. */
static void count_frames(struct checkpoint *c, int frames)
{
    c->done = frames < c->frames || frames < c->done ? 0 : c->done;
    c->frames = frames;
    assert(c->frames >= c->done && c->done >= 0);
}

/* Returns the trouble if it was not reported yet, otherwise code 0. Call it under the mutex. */
static struct muster_err take_trouble(struct checkpoint *c)
{
    struct muster_err trouble = MUSTER_ERR_INIT;
    if (c->trouble.code != 0 && !c->told) {
        trouble = c->trouble;
        c->told = true;
    }
    return trouble;
}

static void tell(const struct store *store, const struct muster_err *trouble)
{
    if (trouble->code != 0 && store->options.on_trouble) {
        store->options.on_trouble(trouble);
    }
}

void checkpoint_committed(struct store *store, int frames)
{
    struct checkpoint *c = store->checkpoint;
    if (!c) {
        return;
    }
    pthread_mutex_lock(&c->mutex);
    count_frames(c, frames);
    c->wipe |= store->wipe_due;
    store->wipe_due = false;
    if (c->wipe || c->frames - c->done >= store->options.wal_pages_max / DUE_PART) {
        c->due = true;
        pthread_cond_broadcast(&c->changed);
    }
    struct muster_err trouble = take_trouble(c);
    pthread_mutex_unlock(&c->mutex);
    tell(store, &trouble);
}

static bool is_full(const struct checkpoint *c, const struct store *store)
{
    return c->frames >= store->options.wal_pages_max && c->done < c->frames;
}

/* Waits for a whole round that began after the call, or for the end of a round that left
 * nothing. */
static void wait_for_round(struct checkpoint *c, const struct store *store)
{
    unsigned before = c->rounds;
    while (is_full(c, store) && c->rounds - before < 2) {
        c->due = true;
        pthread_cond_broadcast(&c->changed);
        pthread_cond_wait(&c->changed, &c->mutex);
    }
}

int checkpoint_make_room(struct store *store, struct muster_err *err)
{
    struct checkpoint *c = store->checkpoint;
    int r = 0;
    if (!c) {
        return 0;
    }
    pthread_mutex_lock(&c->mutex);
    wait_for_round(c, store);
    if (is_full(c, store)) {
        r = c->trouble.code != 0
                ? muster_fail(err, c->trouble.code, "%s", c->trouble.text)
                : muster_fail(err, MUSTER_EAGAIN,
                              "cannot write %s: %d pages wait in its log while it is read",
                              store->path, c->frames);
    }
    struct muster_err trouble = take_trouble(c); /* there may be no later commit to report it */
    pthread_mutex_unlock(&c->mutex);
    tell(store, &trouble);
    return r;
}

bool checkpoint_rests(struct store *store)
{
    struct checkpoint *c = store->checkpoint;
    if (!c) {
        return true;
    }
    pthread_mutex_lock(&c->mutex);
    bool rests = !c->due && !c->wipe;
    pthread_mutex_unlock(&c->mutex);
    return rests;
}

/* ---- beginning and end ---- */

/* Connects, and empties the WAL: this also removes values of secrets that a killed controller
 * left. */
static int connect(struct checkpoint *c, struct muster_err *err)
{
    int rc = sqlite3_open_v2(c->store->path, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                             wal_vfs());
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(c->db, "PRAGMA synchronous = NORMAL; SELECT count(*) FROM meta;", NULL,
                          NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        return database_fail_at(c->store->path, c->db, rc, err);
    }
    rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    c->wipe = rc != SQLITE_OK;
    return 0;
}

static void init_locks(struct checkpoint *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_mutex_init(&c->writing, NULL);
}

static int start_thread(struct checkpoint *c, struct muster_err *err)
{
    int r = thread_start(&c->thread, NULL, run, c);
    return r == 0 ? 0
                  : muster_fail(err, MUSTER_EOS,
                                "no thread for the store: %s (ulimit -u, ulimit -v)", strerror(r));
}

static void free_checkpoint(struct checkpoint *c)
{
    int rc = sqlite3_close(c->db);
    assert(rc == SQLITE_OK);
    (void)rc;
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->writing);
    free(c);
}

int checkpoint_start(struct store *store, struct muster_err *err)
{
    if (!*sqlite3_db_filename(store->db, "main")) {
        return 0; /* in memory */
    }
    struct checkpoint *c = calloc(1, sizeof *c);
    if (!c) {
        return err_no_memory(err);
    }
    c->store = store;
    init_locks(c);
    int r = connect(c, err);
    r = r < 0 ? r : start_thread(c, err);
    if (r < 0) {
        free_checkpoint(c);
        return r;
    }
    store->checkpoint = c;
    return 0;
}

void checkpoint_stop(struct store *store)
{
    struct checkpoint *c = store->checkpoint;
    if (c) {
        pthread_mutex_lock(&c->mutex);
        c->stop = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->mutex);
        pthread_join(c->thread, NULL);
    }
}

/* Called when the other connection is closed. */
void checkpoint_free(struct store *store)
{
    struct checkpoint *c = store->checkpoint;
    if (!c) {
        return;
    }
    pthread_mutex_lock(&c->mutex);
    move(c);
    pthread_mutex_unlock(&c->mutex);
    if (c->trouble.code != 0) {
        tell(store, &c->trouble);
    }
    free_checkpoint(c);
    store->checkpoint = NULL;
}
