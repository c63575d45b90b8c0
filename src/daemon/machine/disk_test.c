/* Tasks are done in their order, in another thread, within a limit; tasks that are left are done
 * when the disk is closed. */
#include "base/testing/test.h"
#include "daemon/machine/disk.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MAX = 3 };

/* Written by one thread at a time: the loop's thread, or the thread that does the tasks. */
struct log {
    uv_loop_t loop;
    struct disk *disk;
    char text[256];
    pthread_t own;
    size_t done, dropped;
};

struct piece {
    struct log *log;
    char name;
    bool in_own_thread;
    bool has_next;
};

static void add(struct log *log, char letter)
{
    size_t used = strlen(log->text);
    assert_true(used + 1 < sizeof log->text);
    log->text[used] = letter;
}

static void work(void *data)
{
    struct piece *piece = data;
    piece->in_own_thread = pthread_equal(pthread_self(), piece->log->own);
    add(piece->log, piece->name);
}

static void bring(struct log *log, char name, bool has_next);

static void done(void *data)
{
    const struct piece *piece = data;
    piece->log->done++;
    add(piece->log, piece->in_own_thread ? '!' : '.');
    if (piece->has_next) {
        bring(piece->log, 'z', false);
    }
}

static void drop(void *data)
{
    struct piece *piece = data;
    piece->log->dropped++;
    free(piece);
}

static void bring(struct log *log, char name, bool has_next)
{
    struct piece *piece = calloc(1, sizeof *piece);
    *piece = (struct piece){.log = log, .name = name, .has_next = has_next};
    disk_do(log->disk, &(struct disk_task){work, done, drop, piece});
}

static int set_up(void **state)
{
    struct log *log = calloc(1, sizeof *log);
    log->own = pthread_self();
    assert_int_equal(uv_loop_init(&log->loop), 0);
    assert_int_equal(disk_new(&log->loop, TASKS_MAX, &log->disk, NULL), 0);
    *state = log;
    return 0;
}

static int tear_down(void **state)
{
    struct log *log = *state;
    log->disk = disk_free(log->disk);
    assert_int_equal(uv_run(&log->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&log->loop), 0);
    free(log);
    return 0;
}

static void tasks_are_done_one_after_the_other_in_another_thread(void **state)
{
    struct log *log = *state;
    bring(log, 'a', false);
    bring(log, 'b', false);
    bring(log, 'c', false);
    uv_run(&log->loop, UV_RUN_DEFAULT);
    assert_string_equal(log->text, "a.b.c.");
    assert_int_equal(log->dropped, 3);
}

static void one_that_is_done_may_bring_another(void **state)
{
    struct log *log = *state;
    bring(log, 'a', true);
    uv_run(&log->loop, UV_RUN_DEFAULT);
    assert_string_equal(log->text, "a.z.");
    bring(log, 'a', true);
    bring(log, 'b', false);
    uv_run(&log->loop, UV_RUN_DEFAULT);
    assert_string_equal(log->text, "a.z.a.b.z.");
}

/* No task is lost, and the queue does not grow. */
static void what_does_not_fit_is_done_at_once(void **state)
{
    struct log *log = *state;
    uv_loop_t idle;
    struct disk *full = NULL;
    struct disk *roomy = log->disk;
    assert_int_equal(uv_loop_init(&idle), 0);
    assert_int_equal(disk_new(&idle, 0, &full, NULL), 0);
    log->disk = full;
    bring(log, 'x', false);
    assert_string_equal(log->text, "x!");
    assert_int_equal(log->dropped, 1);
    log->disk = roomy;
    disk_free(full);
    assert_int_equal(uv_loop_close(&idle), 0);
}

static void what_waits_at_the_end_is_done_and_told_to_nobody(void **state)
{
    struct log *log = *state;
    bring(log, 'a', true);
    bring(log, 'b', false);
    log->disk = disk_free(log->disk);
    uv_run(&log->loop, UV_RUN_DEFAULT);
    assert_string_equal(log->text, "ab");
    assert_int_equal(log->done, 0);
    assert_int_equal(log->dropped, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_are_done_one_after_the_other_in_another_thread),
        TEST(one_that_is_done_may_bring_another),
        TEST(what_does_not_fit_is_done_at_once),
        TEST(what_waits_at_the_end_is_done_and_told_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
