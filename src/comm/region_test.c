/* A region is read whole, of one version, or not at all. */
#include "base/test.h"

#include <muster/comm.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 5000001, OWNERS = 3 };

struct owners {
    char *state[OWNERS];
    struct muster_region *regions[OWNERS];
    struct muster_member members[OWNERS];
    char *read;
};

static int set_up(void **ret)
{
    struct owners *o = calloc(1, sizeof *o);
    o->read = malloc(BYTES);
    for (int i = 0; i < OWNERS; i++) {
        struct muster_err err = {0};
        o->state[i] = malloc(BYTES);
        for (int b = 0; b < BYTES; b++) {
            o->state[i][b] = (char)(b * 7 + b / 251);
        }
        assert_int_equal(muster_region_open("127.0.0.1", o->state[i], BYTES, &o->regions[i], &err),
                         0);
        muster_region_member(o->regions[i], &o->members[i]);
        muster_region_set(o->regions[i], 4, 17);
    }
    *ret = o;
    return 0;
}

static int tear_down(void **state)
{
    struct owners *o = *state;
    for (int i = 0; i < OWNERS; i++) {
        muster_region_close(o->regions[i]);
        free(o->state[i]);
    }
    free(o->read);
    free(o);
    return 0;
}

static int read_all(struct owners *o, uint64_t version, struct muster_err *err)
{
    return muster_region_read(o->members, OWNERS, 4, version, o->read, BYTES, 10000, err);
}

static void pieces_come_from_all_owners(void **state)
{
    struct owners *o = *state;
    struct muster_err err = {0};
    assert_int_equal(read_all(o, 17, &err), 0);
    assert_memory_equal(o->read, o->state[0], BYTES);
    assert_int_equal(muster_region_read(o->members, 1, 4, 17, o->read, 10, INT64_MAX, &err), 0);
}

static void another_version_is_a_conflict(void **state)
{
    struct owners *o = *state;
    struct muster_err err = {0};
    assert_int_equal(read_all(o, 18, &err), MUSTER_ECONFLICT);
    muster_region_set(o->regions[1], 4, 18);
    assert_int_equal(read_all(o, 17, &err), MUSTER_ECONFLICT);
    muster_region_set(o->regions[1], 4, 17);
    muster_region_hide(o->regions[2]);
    assert_int_equal(read_all(o, 17, &err), MUSTER_ECONFLICT);
    assert_non_null(strstr(err.text, "owner 2"));
}

static void a_closed_owner_is_named(void **state)
{
    struct owners *o = *state;
    struct muster_err err = {0};
    muster_region_close(o->regions[1]);
    o->regions[1] = NULL;
    assert_int_equal(read_all(o, 17, &err), MUSTER_EPEERDEAD);
    assert_int_equal(err.rank, 1);
}

static void a_process_outside_reads(void **state)
{
    struct owners *o = *state;
    pid_t pid = fork();
    if (pid == 0) {
        struct muster_err err = {0};
        int rc = read_all(o, 17, &err);
        _exit(rc < 0 || memcmp(o->read, o->state[0], BYTES) != 0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* As at the end of a forked program that tidies up: its parent's region is not its own. */
static void a_forked_child_closes_nothing(void **state)
{
    struct owners *o = *state;
    struct muster_err err = {0};
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        muster_region_close(o->regions[0]);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read_all(o, 17, &err), 0);
}

/* ---- owners that train while they are read ---- */

enum { READS = 40 };

struct training {
    struct owners *owners;
    _Atomic uint64_t version;
    _Atomic int over;
};

/* Readers under way may see it happen, and must not believe it: no race to complain of. */
__attribute__((no_sanitize("thread"))) static void overwrite(volatile char *memory, char value)
{
    for (int b = 0; b < BYTES; b++) {
        memory[b] = value;
    }
}

/* Every version fills the memory with its own byte, and stays a little while; longer and longer, so
 * that at last a slow machine reads one whole. */
static void *train(void *context)
{
    struct training *t = context;
    for (uint64_t version = 18; !atomic_load(&t->over); version++) {
        for (int i = 0; i < OWNERS; i++) {
            muster_region_hide(t->owners->regions[i]);
            overwrite(t->owners->state[i], (char)version);
            muster_region_set(t->owners->regions[i], 4, version);
        }
        atomic_store(&t->version, version);
        (void)poll(NULL, 0, (int)(version % 8 * (20 + version / 4)));
    }
    return NULL;
}

static void a_read_is_of_one_version(void **state)
{
    struct owners *o = *state;
    struct training t = {.owners = o};
    pthread_t thread;
    int good = 0;
    assert_int_equal(pthread_create(&thread, NULL, train, &t), 0);
    for (int turn = 0; turn < READS || good == 0; turn++) {
        struct muster_err err = {0};
        uint64_t version = atomic_load(&t.version);
        int rc = read_all(o, version, &err);
        assert_true(rc == 0 || rc == MUSTER_ECONFLICT);
        if (rc == 0) { /* each byte is like the one before it */
            assert_true(o->read[0] == (char)version);
            assert_memory_equal(o->read + 1, o->read, BYTES - 1);
            good++;
        }
    }
    atomic_store(&t.over, 1);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_come_from_all_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_version_is_a_conflict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_owner_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_outside_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forked_child_closes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_is_of_one_version, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
