/* A listening socket of the coordinator: a Unix socket or a TCP port that accepts connections.
 *
 * Layer: program (coordinator). Memory: the caller's struct, open/close; it must not move while it
 * is open. Thread: the loop's.
 */
#pragma once

#include <muster/err.h>

#include <stdbool.h>
#include <uv.h>

enum { SERVER_ADDRESS_BYTES = 320 };

typedef void server_accepted(void *data, int fd);

struct server_listener {
    int fd;
    int spare; /* closed for a moment when no descriptors are left */
    bool is_unix;
    bool polled;
    char address[SERVER_ADDRESS_BYTES]; /* with the actual port */
    uv_poll_t poll;
    server_accepted *accepted; /* gets a descriptor, which it owns, and which never blocks */
    void *data;
};

/* Opens "unix:PATH" or "tcp:HOST:PORT"; port 0: a free one, no host: all addresses. No connection
 * is accepted before it serves. MUSTER_EINVAL, MUSTER_ENOHOST; MUSTER_ECONFLICT: another program
 * listens there. */
int server_listener_open(struct server_listener *listener, const char *address,
                         struct muster_err *err);
void server_listener_serve(struct server_listener *listener, uv_loop_t *loop,
                           server_accepted *accepted, void *data);
/* Stops to accept: connections wait in the kernel's queue. */
void server_listener_pause(struct server_listener *listener);
void server_listener_close(struct server_listener *listener);
/* Whether a process listens at the path of a Unix socket. */
bool server_listener_is_used(const char *address);
/* Leaves PATH.done beside the Unix socket of an address, whether or not a process listens there: a
 * worker that comes late, because it was started again, need not wait for a coordinator. The next
 * process that listens there removes the file. failure: why the job has failed, or "" if it is
 * done. */
void server_listener_note_end(const char *address, const char *failure);
