/* See keep.h. */
#include "main/keep.h"

#include "base/time/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A program that lived less than SHORT_MS waits before its next start: FIRST_MS, doubled each time
 * up to LAST_MS; after SHORT_LIVES_MAX short lives in a row it is not started again. */
enum { SHORT_MS = 1000, FIRST_MS = 10, LAST_MS = 1000, SHORT_LIVES_MAX = 10 };
enum { EXIT_USAGE = 64, EXIT_NOT_STARTED = 71, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

struct keeper {
    char **command;
    sigset_t signals; /* blocked here, and waited for */
    sigset_t before;  /* the mask that the program gets */
    pid_t child;
    int asked; /* the signal that asked us to end; 0: none */
};

static int start(struct keeper *k)
{
    pid_t parent = getpid();
    k->child = fork();
    if (k->child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)sigprocmask(SIG_SETMASK, &k->before, NULL);
        if (getppid() == parent) {
            execvp(k->command[0], k->command);
        }
        _exit(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
    }
    return k->child < 0 ? -1 : 0;
}

/* Waits until the child has ended, and passes signals on to it. */
static int wait_end(struct keeper *k)
{
    int status = 0;
    while (waitpid(k->child, &status, WNOHANG) != k->child) {
        int number = sigwaitinfo(&k->signals, NULL);
        if (number > 0 && number != SIGCHLD) {
            k->asked = number;
            (void)kill(k->child, number);
        }
    }
    return status;
}

/* Waits for `ms`, or until a signal asks us to end. */
static void pause_for(struct keeper *k, int64_t ms)
{
    int64_t until = clock_ms() + ms;
    for (int64_t left = ms; left > 0 && !k->asked; left = until - clock_ms()) {
        struct timespec timeout = {left / 1000, left % 1000 * 1000000};
        int number = sigtimedwait(&k->signals, NULL, &timeout);
        k->asked = number > 0 && number != SIGCHLD ? number : 0;
    }
}

static int64_t delay_ms(int short_lives)
{
    int64_t delay = short_lives > 0 ? (int64_t)FIRST_MS << (short_lives - 1) : 0;
    return delay < LAST_MS ? delay : LAST_MS;
}

static int keep(struct keeper *k)
{
    int short_lives = 0;
    for (;;) {
        int64_t began = clock_ms();
        if (start(k) < 0) {
            fprintf(stderr, "muster: keep: cannot start %s: %s\n", k->command[0], strerror(errno));
            return EXIT_NOT_STARTED;
        }
        int status = wait_end(k);
        if (WIFEXITED(status)) {
            return WEXITSTATUS(status);
        }
        short_lives = clock_ms() - began < SHORT_MS ? short_lives + 1 : 0;
        if (!k->asked && short_lives < SHORT_LIVES_MAX) {
            pause_for(k, delay_ms(short_lives));
        }
        if (k->asked || short_lives == SHORT_LIVES_MAX) {
            return 128 + (k->asked ? k->asked : WTERMSIG(status));
        }
        fprintf(stderr, "muster: %s was killed by signal %d: it starts again\n", k->command[0],
                WTERMSIG(status));
    }
}

static void name_program(void)
{
    uint64_t number = 0;
    char text[2 * sizeof number + 16];
    if (getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number) {
        (void)snprintf(text, sizeof text, "%d-%016llx", (int)getpid(), (unsigned long long)number);
        (void)setenv("MUSTER_KEPT_AS", text, 1);
    }
}

int keep_main(int argc, char **argv)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    struct keeper k = {.command = argv + first};
    if (argc <= first) {
        fprintf(stderr, "muster: keep: no command given: muster keep -- COMMAND\n");
        return EXIT_USAGE;
    }
    name_program();
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, there would be no child to wait for */
    sigemptyset(&k.signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&k.signals, numbers[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &k.signals, &k.before);
    return keep(&k);
}
