/* Receives and shows the runs of one container. pod_logs.h, which uses it, decides which
 * containers and runs there are.
 *
 * Layer: cli, private to podlogs but for the options.
 */
#pragma once

#include "cli/command/cli.h"
#include "cli/log/frames.h"
#include "cli/log/log_merge.h"
#include "cli/log/screen.h"
#include "cli/log/stamped.h"

struct pod_logs;

struct pod_logs_options {
    const char *parameters; /* of the API's log request ("tailLines=3"), or NULL */
    const char *container;  /* only this one; NULL: the main container */
    bool all;               /* every container, init containers too */
    bool previous;          /* the run before the newest, maybe of an earlier pod of this name */
    bool follow;            /* until the containers have ended, restarts included */
    bool prefixes;          /* "[rank 1] " before each line */
    const char *group;      /* stands before the rank in prefixes ("mnist "), or "" */
    const char *run;        /* of an earlier run: its path at the API (runs.h); else NULL */
    bool ends_with_start;   /* follow: only one run of a container, without restarts */
    bool by_time;           /* lines of all in the order of their times, not as they arrive */
    bool timestamps;        /* before each line; with by_time */
    bool as_written;        /* without what muster has added */
    bool raw;               /* a single log: its bytes as they are, not through the screen's view */
};

struct container_log {
    struct pod_logs *logs;
    char *namespace;
    char *pod;
    char *uid;
    char *job_uid;
    char *container;
    int newest;      /* attempt, -1: not started yet */
    bool ended;      /* the newest attempt has ended */
    bool gone;       /* the pod was deleted */
    int reading;     /* attempt being read or read last, -1: none */
    bool complete;   /* `reading` was read to its end */
    bool closing;    /* it was received to its end, but not yet shown */
    uint64_t at;     /* offset of the next byte of `reading` */
    char *first_end; /* the last line of its first run, once that was read */
    struct frames frames;
    struct stamped stamped;          /* for a cluster */
    int64_t not_before_ms;           /* for a cluster: when a log may be requested again */
    bool refused;                    /* the last request failed for lack of a credential */
    struct log_merge_source *source; /* by_time */
    struct log_view_stream *view;
    struct kube_stream *stream;
    struct container_log *next;
};

struct pod_logs {
    struct cli *cli;
    struct screen *screen;
    struct pod_logs_options options;
    struct container_log *list;
    uv_timer_t turn;
    struct log_merge *merge; /* by_time */
    struct muster_err err;
};

/* Opens a stream for what comes next, if there is anything and no stream is open. */
void podlog_open_if_due(struct container_log *c);

/* Reads the rest of the log from the files of this machine, as far as they are written, without
 * waiting for the controller any longer. Does nothing for a cluster. */
void podlog_finish(struct container_log *c);

/* Whether something is still to be received or shown. */
bool podlog_is_busy(const struct container_log *c);

/* Shows the lines that may be shown by now (by_time), which makes room for more. */
void podlog_show_merged(struct pod_logs *logs);
