/* A region is read whole, of one version, or not at all. */
#include <muster/comm.h>

#include "base/test.h"

#include <stdlib.h>

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
    assert_int_equal(muster_region_read(o->members, 1, 4, 17, o->read, 10, 10000, &err), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_come_from_all_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_version_is_a_conflict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_owner_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
