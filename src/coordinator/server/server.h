/* `muster coordinator`: the arbiter with a journal, a clock, sockets, and an eye on the processes
 * of this machine.
 *
 * The arbiter's decisions are written to the journal before they are sent. If the journal cannot be
 * written (a full disk), nothing is sent: members train on, and the coordinator begins again from
 * the journal, in a new term, once it can be written. With a lease (lease.h) the same holds while
 * another coordinator has it.
 *
 * Layer: program (coordinator). Memory: within the call. Thread: one, the loop's.
 */
#pragma once

#include "coordinator/server/lease.h"
#include "rendezvous/rendezvous.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <uv.h>

enum { SERVER_LISTENERS_MAX = 8, SERVER_SIZE_MAX = 10000 };

struct server_options {
    const char *listen[SERVER_LISTENERS_MAX]; /* see listener.h */
    size_t listen_count;
    const char *journal;  /* a folder; it is created if it does not exist */
    size_t compact_bytes; /* the size at which the journal is compacted */
    bool durable;         /* announced decisions survive even the end of the host */
    uint8_t token[WIRE_TOKEN_BYTES];
    struct rendezvous_config sizes; /* max_size: SERVER_SIZE_MAX at most */
    uint32_t micro_batches;         /* if workers do not set it; 0 for 1 */
    int64_t pass_ms, pass_max_ms;   /* of struct arbiter_options */
    uint64_t max_steps;             /* … of that struct, too */
    int64_t first_ms;               /* how long the first generation waits for first_size */
    const char *ready_file;     /* NULL, or gets the addresses, one on a line, once they serve */
    const char *status_file;    /* NULL, or shows the progress of the job: status.h */
    bool marks_done;            /* see server_listener_note_end */
    bool progress;              /* lines on standard error: report_progress */
    struct server_lease *lease; /* NULL: no other coordinator exists */
};

/* Runs until the job is done: returns 0, with a summary on standard output. After SIGTERM or SIGINT
 * it returns 128 and the number; the journal stays. MUSTER_ECONFLICT: another coordinator has the
 * journal, or another program the address; MUSTER_EDATA: the journal, or workers, contradict
 * themselves. */
int server_run(uv_loop_t *loop, const struct server_options *options, struct muster_err *err);
