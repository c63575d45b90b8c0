/* Whether the processes of a generation's members live, asked while its communicator is being
 * formed: there are no heartbeats yet, and a process that is stopped keeps its sockets open. Each
 * member's region is asked for its stamp, which a thread of its own answers while others compute.
 *
 * Layer: worker (part of libmuster). Memory: the caller's struct; probe_init/done. Thread: one.
 */
#pragma once

#include "comm/system/fork.h"

#include <muster/comm.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    PROBE_FIRST_MS = 300, /* no member is asked before this: mostly all have come by then */
    PROBE_AGAIN_MS = 500, /* between an answer and the next question */
    PROBE_SILENT_MS = MUSTER_HEARTBEAT_TIMEOUT_MS,
};

struct probe_state {
    int fd;           /* -1: no question is open */
    int64_t since_ns; /* when it was asked, or when it answered */
    bool greeted;     /* the question was sent */
};

struct probe {
    const struct muster_member *regions; /* borrowed */
    int size;
    int self;
    int silent; /* the rank that has not answered in time; -1: there is none */
    struct probe_state states[MUSTER_MAX_RANKS];
    struct fork_watch fork;
};

void probe_init(struct probe *probe, const struct muster_member *regions, int size, int self);
void probe_done(struct probe *probe);
/* Sends questions and reads answers, without waiting. Returns true if probe->silent is set. */
bool probe_look(struct probe *probe);
