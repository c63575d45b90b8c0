/* A separate folder for each test. Tests only. */
#pragma once

#include "base/file.h"
#include "base/testing/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEST_FOLDER_BYTES = 64 };

/* Makes an empty folder under $TMPDIR, or /tmp; `ret` is its path. */
static inline void test_folder_make(char ret[TEST_FOLDER_BYTES])
{
    const char *base = getenv("TMPDIR");
    bool fits = base && *base && strlen(base) < TEST_FOLDER_BYTES / 2;
    (void)snprintf(ret, TEST_FOLDER_BYTES, "%s/muster-test-XXXXXX", fits ? base : "/tmp");
    assert_non_null(mkdtemp(ret));
}

static inline void test_folder_remove(const char *folder)
{
    assert_int_equal(file_remove(folder, NULL), 0);
}

/* The same as a cmocka fixture: *state is the path. */
static inline int test_folder_set_up(void **state)
{
    *state = malloc(TEST_FOLDER_BYTES);
    assert_non_null(*state);
    test_folder_make(*state);
    return 0;
}

static inline int test_folder_tear_down(void **state)
{
    test_folder_remove(*state);
    free(*state);
    return 0;
}
