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
    /* Answer with listener_answer. */
    void (*message)(void *data, struct listener_client *client, const json_t *message);
    /* A client came or went. */
    void (*changed)(void *data);
};

/* Replaces what lies there. The socket is in the folder (mode 0600); its path may be longer than a
 * socket's address: it goes through /proc/self/fd. */
int listener_open(uv_loop_t *loop, const char *job_folder, const struct listener_hooks *hooks,
                  void *data, struct listener **ret, struct muster_err *err);
/* A connection that is there already. Takes the descriptor. */
int listener_add(struct listener *listener, int fd, struct muster_err *err);

size_t listener_client_count(const struct listener *listener);
void listener_answer(struct listener_client *client, json_t *message); /* takes it */
void listener_tell_all(struct listener *listener, const json_t *message);

/* Removes the socket: nobody new comes. */
void listener_stop(struct listener *listener);
/* Stops, and closes when everything is out. */
void listener_close(struct listener *listener);

/* The address of a socket in an open folder, whose own path may be of any length. */
void listener_address(int folder_fd, const char *name, struct sockaddr_un *ret);

/* A connected descriptor. MUSTER_EUNAVAIL: nobody listens. */
int listener_connect(const char *job_folder, int *ret_fd, struct muster_err *err);
