/* How a test waits: for a condition, in short turns and with a limit. The limit only ends a test
 * that hangs, and is not what is tested: MUSTER_TEST_PATIENCE=N makes it N times as long, for a
 * machine under load. A test lets time alone pass only where time itself is tested. Tests only.
 *
 *     for (int64_t end = 0; !atomic_load(&there);) {
 *         assert_true(test_turn(&end));
 *     }
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TEST_LIMIT_MS = 60000, TEST_TURN_MS = 1 };

/* Returns how long a test waits at most for one expected event, whatever else the machine does. */
static inline int test_limit_ms(void)
{
    const char *patience = getenv("MUSTER_TEST_PATIENCE");
    long times = patience ? strtol(patience, NULL, 10) : 1;
    return TEST_LIMIT_MS * (int)(times > 1 ? times : 1);
}

/* Ends a process of a test that hangs. The limit is longer than the limits of its calls, because an
 * error of a call says more. */
static inline void test_alarm(void)
{
    (void)alarm((unsigned)test_limit_ms() / 1000 * 4);
}

/* Waits for one turn; returns false when the limit has passed. *end_ms is 0 at first. */
static inline bool test_turn(int64_t *end_ms)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    *end_ms = *end_ms ? *end_ms : now_ms + test_limit_ms();
    (void)poll(NULL, 0, TEST_TURN_MS);
    return now_ms < *end_ms;
}

/* Lets time pass where time itself is tested, for example a kill at some moment, or a silence that
 * lasts. The test must not rely on other work being done when the time has passed. */
static inline void test_let_pass(int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}
