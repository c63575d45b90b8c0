/* What passes between a supervisor and a container's monitor: the plan by which it is started, what
 * it reports, and what is asked of it while the container runs.
 *
 * Layer: services. Both ends are the same program: structs are sent as they are.
 */
#pragma once

#include "process/machine/cgroup.h"
#include "process/wire/spec.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

/* What the supervisor reads from the control socket, one message per packet. The end of the file
 * says that the container is over. */
enum monitor_kind {
    MONITOR_HELLO,   /* from the main process itself, before exec: its pid comes with the packet */
    MONITOR_RUNNING, /* exec succeeded */
    MONITOR_FAILED,  /* it never ran: code and text */
    MONITOR_NOTE,    /* text */
    MONITOR_EXITED,  /* code or signal, at_unix_ms, peak_bytes */
};

struct monitor_message {
    enum monitor_kind kind;
    int code;
    int signal;
    int64_t at_unix_ms; /* 0: not known */
    int64_t peak_bytes; /* of the largest process of the container */
    int64_t shm_bytes;  /* of /dev/shm, if a bus error ended the process */
    int64_t shm_free_bytes;
    char text[MUSTER_ERR_TEXT_BYTES];
};

/* The values that the supervisor writes: a signal for the container, or one of these with
 * descriptors. */
enum {
    MONITOR_EXEC = -1,    /* a client's socket, a document (session.h), the entrances */
    MONITOR_STDIN = -2,   /* a client's socket: the container's standard input */
    MONITOR_NETWORK = -3, /* a client's socket, to which TCP sockets are sent (handover.h) */
};

struct monitor_request {
    int number;                  /* positive: a signal */
    bool entrance[CGROUP_KINDS]; /* MONITOR_EXEC: which entrances come with it */
};

struct monitor_plan {
    const struct process_spec *spec;
    const char *staging; /* an empty folder for a new root */
    const char *mark;    /* "NAME=value" added to the environment */
    bool namespaces;     /* the process is in a new PID namespace: mounts may be made */
    int log_fd;          /* the container's standard output and error */
    int keep_fd;         /* stays open in the monitor: the job's lock */
    int entrances[CGROUP_KINDS];
};
