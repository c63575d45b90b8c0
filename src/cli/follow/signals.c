/* See signals.h. The text that a handler writes is made in advance, because a handler may not
 * allocate memory. */
#include "cli/follow/signals.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGNAL_BASE = 128 };

const int signals_ending[SIGNALS_COUNT] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t signals_held;

static struct {
    char *line;   /* for standard error */
    char *object; /* for standard output; NULL: nothing */
} words[SIGNALS_COUNT];
static volatile sig_atomic_t holding;

static const char *name_of(int number)
{
    return number == SIGINT ? "SIGINT (Ctrl-C)" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

bool signals_is_heard(int number)
{
    struct sigaction now;
    return number != SIGHUP || sigaction(number, NULL, &now) < 0 || now.sa_handler != SIG_IGN;
}

static void put(int fd, const char *text)
{
    (void)!write(fd, text, text ? strlen(text) : 0);
}

static void leave(int number)
{
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        if (signals_ending[i] == number) {
            put(STDERR_FILENO, words[i].line);
            put(STDOUT_FILENO, words[i].object);
        }
    }
    _exit(SIGNAL_BASE + number);
}

static void on_signal(int number)
{
    if (!holding) {
        leave(number);
    }
    if (signals_held == number) {
        _exit(SIGNAL_BASE + number);
    }
    signals_held = signals_held ? signals_held : number;
}

static void make_words(size_t i, signals_describe *describe)
{
    char text[128];
    int number = signals_ending[i];
    snprintf(text, sizeof text, "ended by %s before the job was created", name_of(number));
    if (asprintf(&words[i].line, "muster: %s\n", text) < 0) {
        words[i].line = NULL;
    }
    if (describe) {
        muster_auto(doc) json_t *doc = describe(SIGNAL_BASE + number, "Interrupted", text);
        muster_auto(free) char *object = doc_print_pretty(doc);
        if (!object || asprintf(&words[i].object, "%s\n", object) < 0) {
            words[i].object = NULL;
        }
    }
}

void signals_catch(signals_describe *describe)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        make_words(i, describe);
        if (signals_is_heard(signals_ending[i])) {
            (void)sigaction(signals_ending[i], &action, NULL);
        }
    }
}

void signals_hold(bool on)
{
    holding = on;
    if (!on && signals_held) {
        leave(signals_held);
    }
}
