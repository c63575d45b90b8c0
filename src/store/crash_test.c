/* After kill -9 the store has every acknowledged transaction as a whole; damaged and newer files
 * are refused, with a message that says what to do.
 *
 * A child writes pairs of objects, a transaction each, and reports every commit to the parent
 * through a pipe; the parent kills it after a random number of them and reads the store.
 */
#include "store/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

enum { ROUNDS = 20, PAIRS_MAX = 400 };

struct acknowledged {
    int pair;
    int64_t version;
};

static void write_pairs(struct fixture *f, int round, int pipe_fd)
{
    static const char *const resources[] = {"pods", "services"};
    for (int i = 0; i < PAIRS_MAX; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{'metadata':{'name':'r%d-%d','namespace':'default'}}",
                       round, i);
        store_begin(f->store, &f->err);
        free(put(f, resources[0], text));
        free(put(f, resources[1], text));
        if (store_commit(f->store, &f->err) < 0) {
            _exit(1);
        }
        struct acknowledged done = {i, store_version(f->store)};
        if (write(pipe_fd, &done, sizeof done) != (ssize_t)sizeof done) {
            _exit(1);
        }
    }
}

/* Lets a child write until `pairs` are acknowledged, then kills it; returns what it acknowledged
 * last. */
static struct acknowledged kill_a_writer(struct fixture *f, int round, int pairs)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open(f);
        write_pairs(f, round, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    struct acknowledged last = {-1, 0};
    struct acknowledged next;
    while (last.pair < pairs && read(ends[0], &next, sizeof next) == (ssize_t)sizeof next) {
        last = next;
    }
    kill(child, SIGKILL);
    while (read(ends[0], &next, sizeof next) == (ssize_t)sizeof next) {
        last = next;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return last;
}

static void check_round(struct fixture *f, int round, struct acknowledged last)
{
    for (int i = 0; i < PAIRS_MAX; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "r%d-%d", round, i);
        bool pod = exists(f, "pods", name);
        assert_int_equal(pod, exists(f, "services", name));
        assert_true(pod || i > last.pair);
    }
    assert_true(store_version(f->store) >= last.version);
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    unsigned seed = (unsigned)getpid();
    print_message("seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = store_version(f.store);
        f.store = store_close(f.store);
        struct acknowledged last = kill_a_writer(&f, round, rand_r(&seed) % 60);
        fixture_open(&f);
        assert_true(store_version(f.store) > before);
        check_round(&f, round, last);
    }
    fixture_done(&f);
}

static int try_open(const char *path, struct muster_err *err)
{
    struct store *store = NULL;
    int r = store_open(path, NULL, &store, err);
    store_close(store);
    return r;
}

/* Opens the store in another program, because SQLite's locks belong to a process. */
static int try_beside(const char *path)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)execl("/proc/self/exe", "store_crash_test", "open", path, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void a_damaged_file_is_named_with_what_to_do(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.store = store_close(f.store);
    char garbage[8192];
    memset(garbage, 'x', sizeof garbage);
    assert_int_equal(file_write(f.path, garbage, sizeof garbage, 0600, NULL), 0);
    assert_int_equal(try_open(f.path, &f.err), MUSTER_EDATA);
    assert_non_null(strstr(f.err.text, f.path));
    assert_non_null(strstr(f.err.text, "move it away"));
    fixture_done(&f);
}

static void run_sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void pages_overwritten_in_the_middle_are_noticed_at_the_start(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 200; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{'metadata':{'name':'p%d','namespace':'default'}}", i);
        free(put(&f, "pods", text));
    }
    f.store = store_close(f.store);
    int fd = open(f.path, O_WRONLY | O_CLOEXEC);
    char garbage[4096];
    memset(garbage, 0x5a, sizeof garbage);
    for (off_t page = 2; page < 12; page++) {
        assert_int_equal(pwrite(fd, garbage, sizeof garbage, page * 4096), sizeof garbage);
    }
    close(fd);
    assert_int_equal(try_open(f.path, &f.err), MUSTER_EDATA);
    assert_null(strchr(f.err.text, '\n'));
    assert_non_null(strstr(f.err.text, f.path));
    fixture_done(&f);
}

static void a_newer_layout_and_a_second_controller_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(try_beside(f.path), MUSTER_EAGAIN);
    f.store = store_close(f.store);
    run_sql(f.path, "PRAGMA user_version = 99");
    assert_int_equal(try_open(f.path, &f.err), MUSTER_EDATA);
    assert_non_null(strstr(f.err.text, "newer"));
    assert_int_equal(try_open("/nonexistent-folder/store.db", &f.err), MUSTER_ECREATE);
    fixture_done(&f);
}

/* A power cut may take commits that clients saw: no version may be given twice. */
static void versions_leap_after_a_boot(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    free(put(&f, "pods", OBJECT("a", "")));
    f.store = store_close(f.store);
    run_sql(f.path, "UPDATE meta SET value = 'the boot before' WHERE key = 'boot'");
    fixture_open(&f);
    assert_true(store_version(f.store) > 100000);
    assert_int_equal(store_check_version(f.store, 1, &f.err), MUSTER_EGONE);
    assert_true(exists(&f, "pods", "a"));
    int64_t leapt = store_version(f.store);
    f.store = store_close(f.store);
    fixture_open(&f);
    assert_true(store_version(f.store) == leapt);
    fixture_done(&f);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "open") == 0) {
        return -try_open(argv[2], NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_by_kill_9),
        cmocka_unit_test(a_damaged_file_is_named_with_what_to_do),
        cmocka_unit_test(pages_overwritten_in_the_middle_are_noticed_at_the_start),
        cmocka_unit_test(a_newer_layout_and_a_second_controller_are_refused),
        cmocka_unit_test(versions_leap_after_a_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
