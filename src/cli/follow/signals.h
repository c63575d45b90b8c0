/* The signals that end a run, until its jobs are followed (from then on see stop.h).
 *
 * Before the request for a job is sent there is nothing to end: a signal prints this and ends this
 * process. While the request is under way the first signal is held, because the job may exist; the
 * second one ends this process, and so its lease, and the controller then ends the job.
 *
 * Layer: cli. The state is the process's: handlers have no other.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

enum { SIGNALS_COUNT = 3 };
extern const int signals_ending[SIGNALS_COUNT];

/* Whether the signal is handled. SIGHUP is not handled under nohup(1), whose programs are to
 * outlive the terminal. */
bool signals_is_heard(int number);

/* Catches the signals from now on. The object that `describe` makes (a new reference) is printed on
 * standard output as well; if it is NULL, nothing is. */
typedef json_t *signals_describe(int exit_code, const char *reason, const char *message);
void signals_catch(signals_describe *describe);

/* Holds signals, or releases them: a signal that came while they were held ends this process when
 * they are released. */
void signals_hold(bool on);

/* The signal that was held, 0: none. A handler sets it. */
extern volatile sig_atomic_t signals_held;
