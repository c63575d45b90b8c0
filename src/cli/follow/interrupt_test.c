/* Checks what `run` does at each signal that it receives. */
#include "cli/follow/interrupt.h"

#include "base/testing/test.h"

#include <signal.h>

enum { HEARD_MAX = 5 };

static void each_signal_has_its_deed(void **state)
{
    (void)state;
    static const struct {
        struct {
            int signal;
            int64_t at_ms;
            enum interrupt_deed deed;
        } heard[HEARD_MAX];
        int first;
        bool killed;
    } table[] = {
        {{{SIGINT, 0, INTERRUPT_END}}, SIGINT, false},
        {{{SIGTERM, 0, INTERRUPT_END}, {SIGTERM, 500, INTERRUPT_KILL}}, SIGTERM, true},
        /* a CI system sends INT, then TERM, and TERM again */
        {{{SIGINT, 0, INTERRUPT_END},
          {SIGTERM, 7500, INTERRUPT_NOTHING},
          {SIGTERM, 10000, INTERRUPT_KILL},
          {SIGTERM, 20000, INTERRUPT_NOTHING}},
         SIGINT,
         true},
        {{{SIGINT, 0, INTERRUPT_END},
          {SIGTERM, 1000, INTERRUPT_NOTHING},
          {SIGHUP, 2000, INTERRUPT_NOTHING},
          {SIGINT, 3000, INTERRUPT_KILL}},
         SIGINT,
         true},
        /* timeout(1) signals the process and its group: these count as one signal */
        {{{SIGTERM, 0, INTERRUPT_END},
          {SIGTERM, 0, INTERRUPT_NOTHING},
          {SIGTERM, INTERRUPT_SAME_MS - 1, INTERRUPT_NOTHING},
          {SIGTERM, INTERRUPT_SAME_MS, INTERRUPT_KILL}},
         SIGTERM,
         true},
        /* the reader of the output ends, then Ctrl-C */
        {{{SIGPIPE, 0, INTERRUPT_END},
          {SIGINT, 10, INTERRUPT_NOTHING},
          {SIGINT, 300, INTERRUPT_KILL}},
         SIGPIPE,
         true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct interrupt interrupt = {0};
        for (size_t j = 0; j < HEARD_MAX && table[i].heard[j].signal; j++) {
            assert_int_equal(
                interrupt_hear(&interrupt, table[i].heard[j].signal, table[i].heard[j].at_ms),
                table[i].heard[j].deed);
        }
        assert_int_equal(interrupt.signal, table[i].first);
        assert_int_equal(interrupt.killed, table[i].killed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_signal_has_its_deed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
