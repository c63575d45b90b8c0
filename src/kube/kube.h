/* The client of the Kubernetes-shaped API: what every verb of the command line speaks.
 *
 * It finds the controller by the socket in MUSTER_HOME and starts one in the background when none
 * answers and the caller wants one; or it speaks to a cluster's API server, which it never starts.
 * Requests block; watches, streams and leases live on the libuv loop, outlast the controller (a new
 * one is started and they go on where they were), and call back on the loop's thread.
 *
 * Layer: services. Ownership: open/close, start/stop; results are new references. Errors: codes of
 * muster/err.def, from the HTTP status and the Status object's reason.
 */
#pragma once

#include "base/doc.h"

#include <muster/err.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

struct kube;

/* A kind that the API serves. Static data. */
struct kube_resource {
    const char *plural;
    const char *singular;
    const char *kind;
    const char *prefix; /* "/api/v1" */
    const char *api_version;
    const char *aliases; /* separated by spaces */
    bool namespaced;
};

extern const struct kube_resource kube_resources[];
extern const size_t kube_resource_count;

/* Finds the kind by any of its names ("pods", "po", "PyTorchJob"), ignoring case; NULL if there is
 * none. */
const struct kube_resource *kube_resource_find(const char *name);
/* Finds the kind of an object, by its apiVersion as well if several groups have the kind; NULL if
 * the API does not serve it. */
const struct kube_resource *kube_resource_of(const json_t *object);

/* One object, or a collection if name is NULL; namespace NULL means all namespaces. Borrowed
 * strings. */
struct kube_ref {
    const struct kube_resource *resource;
    const char *namespace;
    const char *name;
    const char *subresource; /* "log", "scale", "status", or NULL */
};

struct kube_query {
    const char *labels; /* a label selector, or NULL */
    const char *fields; /* a field selector, or NULL */
    const char *more; /* further parameters, already encoded ("follow=true&tailLines=3"), or NULL */
    bool table;       /* request a Table, ready to print */
};

enum kube_start {
    KUBE_START,   /* start a controller in the background if none runs */
    KUBE_RUNNING, /* use only a controller that runs; else MUSTER_EUNAVAIL */
};

/* Opens a client. The loop is the caller's; after kube_close it must run until its handles are
 * closed. */
int kube_open(uv_loop_t *loop, enum kube_start start, struct kube **ret, struct muster_err *err);
void kube_close(struct kube *kube);

/* Opens a client for the API server of a kubeconfig's context (see kubeconfig_load for NULLs).
 * Nothing is sent before the first request. Such a server has none of our own paths: leases,
 * kube_muster_path, upgrades. */
int kube_open_cluster(uv_loop_t *loop, const char *file, const char *context, struct kube **ret,
                      struct muster_err *err);
bool kube_is_cluster(const struct kube *kube);

/* Returns the namespace of requests that name none: the context's, or "default" with our own
 * controller. Borrowed. */
const char *kube_namespace(const struct kube *kube);

/* Returns the state folder in use; not for a cluster. Borrowed. */
const char *kube_home(const struct kube *kube);

/* Returns the Status object of the last request that the API refused, or NULL. Borrowed until the
 * next one. */
const json_t *kube_status(const struct kube *kube);

int kube_get(struct kube *kube, const struct kube_ref *ref, json_t **ret, struct muster_err *err);
int kube_list(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
              json_t **ret, struct muster_err *err);
int kube_create(struct kube *kube, const struct kube_ref *ref, const json_t *object, json_t **ret,
                struct muster_err *err);
/* Sends a JSON merge patch (RFC 7396). */
int kube_patch(struct kube *kube, const struct kube_ref *ref, const json_t *patch, json_t **ret,
               struct muster_err *err);
/* PUTs bytes of any kind to one of our own paths. */
int kube_put_bytes(struct kube *kube, const char *path, const void *bytes, size_t count,
                   struct muster_err *err);

/* Returns the process that listens on the socket, even if it hangs; 0: none, or it is not visible
 * from here. */
pid_t kube_controller_pid(const struct kube *kube);

/* Sets a limit of some seconds for requests from now on, because a user waits for the end. */
void kube_hurry(struct kube *kube);

/* Sets the same limit when *flag is not 0, also for the request that is waiting then. */
void kube_hurry_when(struct kube *kube, const volatile sig_atomic_t *flag);

/* Sets `say`, which is called when our own controller has not answered a request for `waited_s`
 * seconds: once for each request, which continues to wait. It must not send requests to the
 * controller. */
void kube_say_slow(struct kube *kube, void (*say)(const struct kube *kube, int waited_s));

/* Sets `look`, which is called every few seconds during a watch of our own controller, because the
 * controller is silent if nothing changes; no request is late then. *controller is 0 at first, and
 * kept from call to call, like its last result (`said`). It must not send requests to the
 * controller. */
void kube_look(struct kube *kube,
               bool (*look)(const struct kube *kube, pid_t *controller, bool said));

/* While on, creations and patches are dry runs: checked like real ones, but not stored. */
void kube_set_dry_run(struct kube *kube, bool on);
bool kube_is_dry_run(const struct kube *kube);
/* Deletes one object; MUSTER_EINVAL if `ref` has no name, also for kube_patch. grace_s < 0: the
 * object's own grace period. */
int kube_delete(struct kube *kube, const struct kube_ref *ref, int64_t grace_s,
                struct muster_err *err);

/* Calls any path of the API, for requests that Kubernetes does not have. body and ret may be
 * NULL. */
int kube_call(struct kube *kube, const char *method, const char *path, const json_t *body,
              json_t **ret, struct muster_err *err);

/* POSTs `body` (or NULL) and leaves HTTP: *ret_fd is the connection's socket, which is blocking;
 * the caller closes it. Blocks until the controller has answered. */
int kube_upgrade(struct kube *kube, const char *path, const char *protocol, const json_t *body,
                 int *ret_fd, struct muster_err *err);

/* A stream of bytes (a log). `end` is called once, with 0 if the server closed the stream in order;
 * then the stream is freed. Callbacks may open and close streams, also this one. */
struct kube_stream;
struct kube_stream_events {
    void (*data)(void *context, const char *bytes, size_t count);
    void (*end)(void *context, int code, const struct muster_err *err);
    void *context;
};
int kube_stream_open(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
                     const struct kube_stream_events *events, struct kube_stream **ret,
                     struct muster_err *err);
/* Opens a stream of any path of the API. */
int kube_stream_open_path(struct kube *kube, const char *path,
                          const struct kube_stream_events *events, struct kube_stream **ret,
                          struct muster_err *err);
/* A paused stream does not read from its connection; `data` still gets what has arrived already. */
void kube_stream_pause(struct kube_stream *stream, bool pause);
/* No callback comes after this; NULL is allowed. */
void kube_stream_close(struct kube_stream *stream);

/* Reports every object of a collection, then each change. After a restart of the controller or an
 * expired version the watch lists again: objects that were deleted meanwhile are reported as
 * KUBE_DELETED. */
enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED };
struct kube_watch;
struct kube_watch_events {
    void (*changed)(void *context, enum kube_change change, const json_t *object);
    void *context;
};
/* The first listing is reported from within this call. With query->table the objects are Tables. */
int kube_watch_start(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
                     const struct kube_watch_events *events, struct kube_watch **ret,
                     struct muster_err *err);
void kube_watch_stop(struct kube_watch *watch);

/* A connection that keeps jobs alive: jobs annotated with its id end when it closes.
 * kube_lease_start returns when the controller reports that it holds the lease; with a new
 * controller, the lease is renewed under the same id. */
struct kube_lease;
int kube_lease_start(struct kube *kube, const char *id, struct kube_lease **ret,
                     struct muster_err *err);
void kube_lease_stop(struct kube_lease *lease);

/* Whether the controller that held the lease first has gone. Called when a request has failed;
 * takes at most 0.1 s, to be sure. */
bool kube_lease_was_lost(struct kube_lease *lease);

/* Returns the path below /muster/v1 of the parts, each percent-encoded, up to a NULL; the caller
 * frees it. NULL: out of memory, or too long. */
char *kube_muster_path(const char *first, ...) __attribute__((sentinel));

/* Returns one of our own paths with a query, in the same way. */
char *kube_path_with(const char *path, const struct kube_query *query);

/* Returns the path of a reference with its query, percent-encoded; the caller frees it. NULL: out
 * of memory. */
char *kube_path(const struct kube_ref *ref, const struct kube_query *query);
