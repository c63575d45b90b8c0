/* JOB/handover.sock: the connection of a client, as an open descriptor, from the controller to the
 * job's supervisor. From then on the two talk without the controller, at their own pace.
 *
 * Layer: services. Thread: the loop's. Ownership: open/close; handover_send leaves the caller's
 * descriptors open.
 */
#pragma once

#include "process/wire/passing.h"
#include "process/wire/record.h"

#include <muster/err.h>
#include <uv.h>

enum handover_kind {
    HANDOVER_EXEC,    /* a session's socket, and a file that says what to run (session.h) */
    HANDOVER_STDIN,   /* the standard input of all attempts whose spec says "stdin", or of the one
                         that `id` names */
    HANDOVER_NETWORK, /* a Unix socket (packets), on which the supervisor sends one packet of one
                         byte with TCP sockets of the container's network, not connected: one for
                         IPv4, and one for IPv6 if there is IPv6. If the container does not run, it
                         is closed without a packet */
};

struct handover_packet {
    enum handover_kind kind;
    char id[RECORD_ID_BYTES_MAX]; /* "POD/CONTAINER/": its running attempt; "" for the job */
};

struct handover;

/* The hook owns the descriptors. */
typedef void (*handover_hook)(void *data, const struct handover_packet *packet, const int *fds,
                              size_t count);

int handover_open(uv_loop_t *loop, const char *job_folder, handover_hook hook, void *data,
                  struct handover **ret, struct muster_err *err);
void handover_close(struct handover *handover);

/* MUSTER_EUNAVAIL: no supervisor runs (any more), or too many packets wait for it. */
int handover_send(const char *job_folder, const struct handover_packet *packet, const int *fds,
                  size_t count, struct muster_err *err);
