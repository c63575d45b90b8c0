/* The Kubernetes REST shape over the store: resources, verbs, watches, tables, discovery.
 *
 * What it serves is in docs/api.md; the resources are in base/resources.def. Requests and replies
 * are http/http.h's, so the router runs without sockets in tests.
 *
 * Layer: services. Thread: the loop's. Ownership: api_new/api_free. Every watch is bounded (bytes
 * queued, count) and ends with its client.
 */
#pragma once

#include "http/http.h"
#include "store/store.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdint.h>

struct api;

/* The query of GET …/pods/NAME/log. "Ours" marks parameters that Kubernetes does not have. */
struct api_log_query {
    const char *container; /* never NULL: a container of the pod, init containers included */
    bool follow;
    bool previous;
    bool timestamps;
    int64_t attempt;       /* ours: the run after `attempt` restarts; -1: the newest, or previous */
    int64_t tail_lines;    /* -1: all */
    int64_t since_unix_ms; /* 0: from the beginning (from sinceSeconds or sinceTime) */
    int64_t limit_bytes;   /* -1: all */
    bool frames;           /* ours (process/log/log.h); the routes of Kubernetes send only bytes */
    bool watermarks;       /* ours */
    bool as_written;       /* ours */
    int64_t from;          /* ours: bytes to skip */
};

/* Reads the query from a request; the container's name is borrowed from the request or the pod.
 * Returns MUSTER_EINVAL if there is no such container, or a value is not a number. */
int api_log_query_read(const struct http_request *request, const json_t *pod,
                       struct api_log_query *ret, struct muster_err *err);

struct job_problems;

/* What the controller adds. Each function may be NULL: then the API answers 501. */
struct api_hooks {
    void *arg;

    /* Streams the log as text/plain and completes the reply. The pod and the container exist;
     * `query` and `pod` live until this returns. */
    void (*pod_log)(void *arg, const struct api_log_query *query, const json_t *pod,
                    struct http_reply *reply);

    /* Answers GET (or POST) …/pods/NAME/exec, attach, portforward: `what` is the last word.
     * Completes the reply. The pod lives until this returns. */
    void (*pod_stream)(void *arg, const char *what, const json_t *pod,
                       const struct http_request *request, struct http_reply *reply);

    /* Checks, before an object is created and after its own check, what this machine must have for
     * it. An error among the problems refuses the object (422 Invalid); a negative result refuses
     * the request. */
    int (*admit)(void *arg, const char *resource, const json_t *object,
                 struct job_problems *problems, struct muster_err *err);

    /* Returns a new CustomResourceDefinition of jobs, which describes their fields. */
    json_t *(*definition)(void);

    /* Returns a new OpenAPI schema of the fields of a kind, or NULL if the fields are not known. */
    json_t *(*schema)(const char *api_version, const char *kind);

    /* Adds what is known of an object now and is not in the store, when an object is read by
     * name. */
    void (*add_live)(void *arg, const char *resource, json_t *object);

    /* Called when GET /muster/v1/leases/ID is open, and when its client has disconnected (once
     * each, per connection). */
    void (*lease_opened)(void *arg, const char *id);
    void (*lease_closed)(void *arg, const char *id);

    /* Answers every other path under /muster/v1/: `rest` is what follows ("status"). Must complete
     * the reply. */
    void (*muster)(void *arg, const char *rest, const struct http_request *request,
                   struct http_reply *reply);
};

/* Creates the namespace "default" if it does not exist. `hooks` is copied. */
int api_new(uv_loop_t *loop, struct store *store, const struct api_hooks *hooks, struct api **ret,
            struct muster_err *err);

/* Ends every watch and lease (without lease_closed). Run the loop once more after this, before
 * closing it. */
struct api *api_free(struct api *api);

/* An http_handler; `api` is the struct api. */
void api_handle(void *api, const struct http_request *request, struct http_reply *reply);

/* Numbers of the watches and leases that are open now. */
size_t api_watch_count(const struct api *api);
size_t api_lease_count(const struct api *api);

/* Returns the grace period of a deleted object, for store_options.grace_s: a pod that is bound to a
 * node and not finished has its terminationGracePeriodSeconds (30 by default). */
int64_t api_grace_s(const char *resource, const json_t *object);

/* Fills in the defaults, for store_options.fill. */
int api_fill(const char *resource, json_t *object);

/* ---- For the hooks ---- */

/* Sends a JSON answer; takes `doc`. */
void api_send_json(struct http_reply *reply, int status, json_t *doc);

/* Sends an error as a Status object, with the HTTP status and reason of its code. */
void api_send_error(struct http_reply *reply, const struct muster_err *err);

/* ---- The two listeners ---- */

struct api_endpoint;

/* Serves api_handle on socket_path and, with TLS and the token, on 127.0.0.1. The port is the one
 * that server.json in home_path has (a free one at first), and server.json is written:
 * {"server":"https://127.0.0.1:PORT"}. If the TLS port is taken, the socket still serves and
 * `tls_err` (never NULL) says why; otherwise tls_err->code is 0. */
int api_endpoint_open(uv_loop_t *loop, struct api *api, const char *home_path,
                      const char *socket_path, struct api_endpoint **ret,
                      struct muster_err *tls_err, struct muster_err *err);
void api_endpoint_close(struct api_endpoint *endpoint);
unsigned api_endpoint_connections(const struct api_endpoint *endpoint);

/* Returns "https://127.0.0.1:PORT", or NULL without TLS. Borrowed. */
const char *api_endpoint_server(const struct api_endpoint *endpoint);
