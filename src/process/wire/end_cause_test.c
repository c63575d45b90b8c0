/* Checks which memory limit is named as the cause of an end, and in which words. */
#include "process/wire/end_cause.h"

#include "base/testing/test.h"

#include <signal.h>

enum { MIB = 1 << 20 };

static void each_end_has_its_cause(void **state)
{
    (void)state;
    static const struct {
        struct end_facts facts;
        bool oom;
        const char *text;
    } table[] = {
        {{.code = 1}, false, ""},
        {{.code = 0, .group_kills = 1}, false, ""},
        {{.code = 137, .signal = SIGKILL, .killed_by_us = true, .machine_kills = 1}, false, ""},
        {{.code = 137, .signal = SIGKILL}, false, ""},
        {{.code = 137,
          .signal = SIGKILL,
          .limit_bytes = 64 * MIB,
          .limit_reached = true,
          .peak_bytes = 64 * MIB,
          .group_kills = 1,
          .machine_kills = 1},
         true,
         "64 MiB limit of resources.limits.memory (peak 64 MiB)"},
        {{.code = 3,
          .limit_bytes = 64 * MIB,
          .limit_reached = true,
          .peak_bytes = 64 * MIB,
          .group_kills = 2},
         true,
         "64 MiB limit of resources.limits.memory (peak 64 MiB)"},
        {{.code = 137,
          .signal = SIGKILL,
          .limit_bytes = 64 * MIB,
          .peak_bytes = 20 * MIB,
          .group_kills = 1},
         true,
         "the machine had no memory left (peak 20 MiB, under the 64 MiB limit of "
         "resources.limits.memory)"},
        {{.code = 137,
          .signal = SIGKILL,
          .limit_bytes = MIB / 2,
          .peak_bytes = 3 * MIB,
          .group_kills = 1},
         true,
         "0.5 MiB limit of resources.limits.memory (peak 3.0 MiB)"},
        {{.code = 137, .signal = SIGKILL, .peak_bytes = 20 * MIB, .machine_kills = 2},
         false,
         "probably the machine, or the container that muster runs in, had no "
         "memory left (peak 20 MiB): the kernel has killed 2 processes "
         "for want of memory while it ran"},
        {{.code = 135, .signal = SIGBUS, .shm_bytes = 64 * MIB, .shm_free_bytes = 0},
         false,
         "a bus error mostly means that shared memory is full: /dev/shm has 64 MiB, and 0.0 MiB of "
         "it are free now"},
        {{.code = 135, .signal = SIGBUS}, false, ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[256];
        assert_int_equal(end_cause(&table[i].facts, text, sizeof text), table[i].oom);
        assert_string_equal(text, table[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_end_has_its_cause)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
