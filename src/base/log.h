/* The program's own log, in logfmt: `ts=… level=warn event=agent.start job=default/a msg="…"`, or
 * as JSON: `{"level":"warn","time":"…","event":"agent.start","job":"default/a","message":"…"}`.
 *
 * Only programs and services log, and each event once, where it is decided; libraries return
 * errors. Layer: base. One process-wide sink: a file descriptor. Thread-safe: a line is one
 * write(2).
 */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_form { LOG_LOGFMT, LOG_JSON };

/* Lines below `least` are dropped. Default: standard error, LOG_WARN. */
void log_to(int fd, enum log_level least);

/* Sets the form of the lines from now on. Default: LOG_LOGFMT. */
void log_as(enum log_form form);

/* event is a stable dotted name; format gives the msg text. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same about a job, "namespace/name"; NULL and "" mean no job. */
void log_about(enum log_level level, const char *event, const char *job, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
