/* For tests: calls that must end the program by an assertion. */
#pragma once

#include "base/testing/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns whether `mistake` fails an assertion. It runs in a child, without a core file and without
 * output. */
static inline bool test_is_asserted(void (*mistake)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        close(STDERR_FILENO);
        mistake();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
