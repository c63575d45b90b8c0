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

/* A kind the API serves. Static data. */
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

/* Finds it by any of its names ("pods", "po", "PyTorchJob"), ignoring case; NULL when there is
 * none. */
const struct kube_resource *kube_resource_find(const char *name);
/* Finds it by an object's own kind, and its apiVersion where several groups have the kind; NULL
 * when the API does not serve it. */
const struct kube_resource *kube_resource_of(const json_t *object);

/* One object, or with name NULL a collection; namespace NULL means all of them. Borrowed strings.
 */
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
    bool table;       /* ask for a Table, ready to print */
};

enum kube_start {
    KUBE_START,   /* a controller that is missing is started in the background */
    KUBE_RUNNING, /* only one that runs; else MUSTER_EUNAVAIL */
};

/* The loop is the caller's; after kube_close it must run until its handles are gone. */
int kube_open(uv_loop_t *loop, enum kube_start start, struct kube **ret, struct muster_err *err);
void kube_close(struct kube *kube);

/* The API server of a kubeconfig's context (see kubeconfig_load for NULLs). Nothing is asked of it
 * before the first request. It has none of our own paths: leases, kube_muster_path, upgrades. */
int kube_open_cluster(uv_loop_t *loop, const char *file, const char *context, struct kube **ret,
                      struct muster_err *err);
bool kube_is_cluster(const struct kube *kube);

/* The namespace of requests that name none: the context's, "default" with our own controller.
 * Borrowed. */
const char *kube_namespace(const struct kube *kube);

/* The state folder in use; not of a cluster. Borrowed. */
const char *kube_home(const struct kube *kube);

/* The Status object of the last request that the API refused, or NULL. Borrowed until the next. */
const json_t *kube_status(const struct kube *kube);

int kube_get(struct kube *kube, const struct kube_ref *ref, json_t **ret, struct muster_err *err);
int kube_list(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
              json_t **ret, struct muster_err *err);
int kube_create(struct kube *kube, const struct kube_ref *ref, const json_t *object, json_t **ret,
                struct muster_err *err);
/* A JSON merge patch (RFC 7396). */
int kube_patch(struct kube *kube, const struct kube_ref *ref, const json_t *patch, json_t **ret,
               struct muster_err *err);
/* PUT of bytes of any kind to a path of ours. */
int kube_put_bytes(struct kube *kube, const char *path, const void *bytes, size_t count,
                   struct muster_err *err);

/* The process that listens on the socket, whether it answers or hangs; 0: none, or it cannot be
 * seen from here. */
pid_t kube_controller_pid(const struct kube *kube);

/* From now on a request that is not answered within seconds has failed: a user waits for the end.
 */
void kube_hurry(struct kube *kube);

/* The same from when *flag is not 0, also for the request that waits then. */
void kube_hurry_when(struct kube *kube, const volatile sig_atomic_t *flag);

/* `say` is called when our own controller has not answered a request for `waited_s` seconds: once
 * for each request, which goes on waiting. It may not ask the controller anything. */
void kube_say_slow(struct kube *kube, void (*say)(const struct kube *kube, int waited_s));

/* While something is watched of our own controller, which is silent when nothing changes, `look` is
 * called every few seconds; no request is late then. *controller: 0 at first, and kept for it, as
 * is what it returned last (`said`). It may not ask the controller anything. */
void kube_look(struct kube *kube,
               bool (*look)(const struct kube *kube, pid_t *controller, bool said));

/* While on, creations and patches are dry runs: checked as in earnest, kept nowhere. */
void kube_set_dry_run(struct kube *kube, bool on);
bool kube_is_dry_run(const struct kube *kube);
/* One object: MUSTER_EINVAL where `ref` has no name, as with kube_patch. grace_s < 0: the object's
 * own grace period. */
int kube_delete(struct kube *kube, const struct kube_ref *ref, int64_t grace_s,
                struct muster_err *err);

/* Any path of the API, for what Kubernetes has no word for. body and ret may be NULL. */
int kube_call(struct kube *kube, const char *method, const char *path, const json_t *body,
              json_t **ret, struct muster_err *err);

/* POSTs `body` (or NULL) and leaves HTTP behind: *ret_fd is the connection's socket, which blocks;
 * the caller closes. Blocks until the controller has answered. */
int kube_upgrade(struct kube *kube, const char *path, const char *protocol, const json_t *body,
                 int *ret_fd, struct muster_err *err);

/* Bytes as they come (a log). `end` is called once, with 0 when the server closed the stream in
 * order; the stream is freed after it. Callbacks may open and close streams, this one too. */
struct kube_stream;
struct kube_stream_events {
    void (*data)(void *context, const char *bytes, size_t count);
    void (*end)(void *context, int code, const struct muster_err *err);
    void *context;
};
int kube_stream_open(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
                     const struct kube_stream_events *events, struct kube_stream **ret,
                     struct muster_err *err);
/* The same of any path of the API. */
int kube_stream_open_path(struct kube *kube, const char *path,
                          const struct kube_stream_events *events, struct kube_stream **ret,
                          struct muster_err *err);
/* Paused, it reads no more from its connection; what has come already is still given to `data`. */
void kube_stream_pause(struct kube_stream *stream, bool pause);
/* No callback comes after this; NULL is fine. */
void kube_stream_close(struct kube_stream *stream);

/* Every object of a collection now, then each change. A restarted controller or an expired version
 * is bridged by listing again: what went meanwhile comes as KUBE_DELETED. */
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

/* A connection that a job's life hangs on: jobs annotated with its id end when it closes. Returns
 * when the controller says that it holds the lease; renewed with the same id when the controller
 * is a new one. */
struct kube_lease;
int kube_lease_start(struct kube *kube, const char *id, struct kube_lease **ret,
                     struct muster_err *err);
void kube_lease_stop(struct kube_lease *lease);

/* True when the controller that held it first has gone. Asked when a request has failed;
 * takes 0.1 s at most, to be sure. */
bool kube_lease_was_lost(struct kube_lease *lease);

/* The path below /muster/v1 of the parts, each percent-encoded, to a NULL; the caller frees. NULL:
 * out of memory, or too long. */
char *kube_muster_path(const char *first, ...) __attribute__((sentinel));

/* A path of ours with a query, the same way. */
char *kube_path_with(const char *path, const struct kube_query *query);

/* The path of a reference with its query, percent-encoded; the caller frees. NULL: out of memory.
 */
char *kube_path(const struct kube_ref *ref, const struct kube_query *query);
