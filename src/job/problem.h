/* The list of all mistakes in a file, each with its place, field path and a hint; checks do not
 * stop at the first.
 *
 * Layer: pure. Ownership: the list owns its texts. Bounded: after `max` problems one last line
 * counts the rest.
 */
#pragma once

#include "base/buf.h"
#include "base/yaml/yaml.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum job_severity {
    JOB_ERROR,   /* nothing is created */
    JOB_WARNING, /* runs, but probably not as meant */
    JOB_INFO,    /* worth knowing: supported differently here than on a cluster */
};

struct job_problem {
    enum job_severity severity;
    bool
        strict; /* a field that does not exist: an API server drops it, or refuses it if asked to */
    int line;   /* from 1; 0: unknown (an object that came by the API) */
    int column;
    char *path;         /* "spec.pytorchReplicaSpecs.Master.replicas", "" for the whole */
    char *message;      /* "must be 1" */
    char *hint;         /* "did you mean …?", or NULL */
    const char *reason; /* static: the reason, for programs ("InsufficientGPUs"), or NULL */
};

struct job_problems {
    struct job_problem *list;
    size_t count;
    size_t max;
    size_t dropped;
    size_t errors; /* number of JOB_ERROR problems, with dropped ones */
    bool advice;   /* set by the caller (lint): also note what the file needs from elsewhere */
    bool verbose;  /* set by the caller: also note how each field is supported */
    bool cluster;  /* set by the caller: the job runs on a cluster, so what only this machine cannot
                      do, or what only another operator does, is not a problem */
};

void job_problems_init(struct job_problems *p, size_t max);
void job_problems_done(struct job_problems *p);

/* message is formatted; path and hint (may be NULL) are copied. */
void job_problem_add(struct job_problems *p, enum job_severity severity, const char *path,
                     const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Sets the reason of the problem that was added last; static text. */
void job_problem_reason(struct job_problems *p, const char *reason);

/* The same with a place; it is 0, 0 if unknown. */
void job_problem_place(struct job_problems *p, enum job_severity severity, struct yaml_place place,
                       const char *path, const char *hint, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void job_problem_vplace(struct job_problems *p, enum job_severity severity, struct yaml_place place,
                        const char *path, const char *hint, const char *format, va_list args)
    __attribute__((format(printf, 6, 0)));

/* Removes the problems from index `from` on for which `drop` returns true. */
void job_problems_drop(struct job_problems *p, size_t from,
                       bool (*drop)(const struct job_problem *problem, void *arg), void *arg);

/* Prints "job.yaml:6:1: error: pytorchReplicaSpecs: … (did you mean …?)", one problem per line, in
 * order of place. */
void job_problems_print(const struct job_problems *p, const char *file, struct buf *out);
