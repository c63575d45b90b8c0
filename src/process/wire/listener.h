/* The supervisor's socket and its clients: JOB/supervisor.sock, and how to reach one of any length.
 *
 * Layer: services; the client's side uses listener_connect only. Thread: the loop's.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>
#include <uv.h>

struct listener;
struct listener_client;

struct listener_hooks {
    /* Gets a message of a client; the answer is sent with listener_answer. */
    void (*message)(void *data, struct listener_client *client, const json_t *message);
    /* A client has connected or gone. */
    void (*changed)(void *data);
};

/* Replaces an earlier socket. The socket is in the folder (mode 0600); its path may be longer than
 * a socket address permits, since /proc/self/fd is used. */
int listener_open(uv_loop_t *loop, const char *job_folder, const struct listener_hooks *hooks,
                  void *data, struct listener **ret, struct muster_err *err);
/* Adds an existing connection. Takes the descriptor. */
int listener_add(struct listener *listener, int fd, struct muster_err *err);

size_t listener_client_count(const struct listener *listener);
void listener_answer(struct listener_client *client, json_t *message); /* takes the message */
void listener_tell_all(struct listener *listener, const json_t *message);

/* Removes the socket: no new client can connect. */
void listener_stop(struct listener *listener);
/* Stops, and closes when everything was sent. */
void listener_close(struct listener *listener);

/* Makes the address of a socket in an open folder, whose own path may be of any length. */
void listener_address(int folder_fd, const char *name, struct sockaddr_un *ret);

/* Returns a connected descriptor. MUSTER_EUNAVAIL: no supervisor listens. */
int listener_connect(const char *job_folder, int *ret_fd, struct muster_err *err);
