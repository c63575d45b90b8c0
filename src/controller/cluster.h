/* A cluster as a controller sees it: requests that are answered later, and watches. Two back ends:
 * the embedded store (src/daemon) and a Kubernetes API server (src/kube). No code: data and types.
 *
 * Layer: services, no I/O of its own. Thread: the loop's; every callback comes on it.
 *
 * What a back end guarantees
 *
 * Requests
 *  1. send never calls `done` from within itself, nor from within cancel, watch or unwatch. `done`
 *     is called once for each request, but not after cancel, nor after the back end was closed,
 *     which cancels all requests. Requests may overtake each other: a caller that needs an order
 *     waits for the answer. The arguments of send stay the caller's; the back end copies or
 *     references what it needs (a body may not be changed until the answer).
 *  2. `code` and `reason` are the server's answer, see the table below. If no server answered, the
 *     code is MUSTER_EUNAVAIL or MUSTER_ETIMEDOUT, and the reason is "".
 *  3. `unsure` is true when a write that failed may have been carried out all the same (the
 *     connection broke after the request was sent, the time ran out, a 5xx from a proxy, 504). A
 *     back end repeats a write by itself only if it is sure that the write was not carried out
 *     (refused connection, 429), or if the server asks for it (5xx with Retry-After). In the second
 *     case the server may have carried it out before, and `repeated` is true. Reads may be repeated
 *     at any time. All tries end after `timeout_ms`.
 *  4. Preconditions are the server's: a replace whose body has a resourceVersion, a delete with uid
 *     or version, a patch whose body has metadata.uid or resourceVersion. The back end adds none,
 *     and takes none away.
 *  5. After cancel, the request may have been carried out, or may still be, or never is.
 *
 * Answers of an API server that callers must expect
 *     code               HTTP reason                     note
 *     0                  2xx
 *     MUSTER_ENOENT      404  NotFound                   also: the kind is not installed
 *     MUSTER_EEXIST      409  AlreadyExists              create only
 *     MUSTER_ECONFLICT   409  Conflict                   a precondition; on create: a quota that
 *                                                        changed meanwhile, not the object
 *     MUSTER_EGONE       410  Expired, Gone              a list's `next`; of a watch see below
 *     MUSTER_EUNAUTH     401  Unauthorized
 *     MUSTER_EPERM       403  Forbidden                  no right; over a quota; the namespace is
 *                                                        terminating (cause NamespaceTerminating)
 *     MUSTER_EINVAL      400, 422  BadRequest, Invalid   will not get better by itself
 *     MUSTER_EMETHOD     405  MethodNotAllowed
 *     MUSTER_ETOOBIG     413  RequestEntityTooLarge
 *     MUSTER_EAGAIN      429  TooManyRequests            retry_after_ms; an eviction that a
 *                                                        disruption budget refuses, too
 *     MUSTER_EUNAVAIL    500, 503  InternalError, ServiceUnavailable …  webhooks that cannot be
 *                                                        reached, a full etcd
 *     MUSTER_ETIMEDOUT   504  Timeout, ServerTimeout     unsure
 *     MUSTER_EPROTO      an answer that is not a JSON object, or is too large
 *  A delete that succeeds may give the object as it is now (deletionTimestamp: its grace runs, or a
 *  finalizer holds it), the object as it was last, or only a Status: whether it is gone is known
 *  from a watch or a get, never from the answer.
 *
 * Watches
 *  6. A watch lists, then follows, for ever. Its callbacks are
 *         BEGIN (OBJECT…) SYNCED (OBJECT | GONE | BOOKMARK | TROUBLE)… and again BEGIN … SYNCED
 *     A cut connection is resumed from the last version, without a callback. When the server has
 *     forgotten that version (410), a new BEGIN comes: an object that is not in the new listing no
 *     longer exists, and there is no GONE for it. A listing that breaks off begins again with
 *     BEGIN.
 *  7. Between two BEGINs the versions of one object never decrease; the same one may come twice.
 *     States may be left out, but never the last one. Each listing is a consistent read: it is not
 *     older than the state that this watch, or an answer to this cluster's requests, showed before.
 *  8. Nothing is guaranteed from one watch to another: pods may be newer or older than their job.
 *  9. TROUBLE says why no news come at present (no right, no server); the back end keeps trying,
 *     with growing and random pauses.
 * 10. ANSWERED may come at any time, and is not about an object; a watch that was in TROUBLE
 *     because no server answered has one again.
 * 11. Callbacks may call any function of this interface, also unwatch of the same watch.
 */
#pragma once

#include "base/text.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Static data: a request holds only the pointer. */
struct cluster_resource {
    const char *group;   /* "" for the core group */
    const char *version; /* "v1"; NULL: the path is at the root of the server: "/version" */
    const char *plural;  /* "pods" */
    const char *kind;    /* "Pod" */
    bool namespaced;
};

enum cluster_verb {
    CLUSTER_GET,
    CLUSTER_LIST,
    CLUSTER_CREATE,
    CLUSTER_REPLACE, /* PUT */
    CLUSTER_PATCH,
    CLUSTER_DELETE,
};

enum cluster_patch {
    CLUSTER_PATCH_MERGE,     /* RFC 7396 */
    CLUSTER_PATCH_STRATEGIC, /* not for custom resources */
    CLUSTER_PATCH_JSON,      /* RFC 6902; the body is an array */
    CLUSTER_PATCH_APPLY,     /* server-side apply: field_manager, force */
};

/* The priority of requests when the budget of requests is short. LEASE is outside the budget. */
enum cluster_lane {
    CLUSTER_LANE_LEASE,
    CLUSTER_LANE_JOBS,  /* jobs and their status */
    CLUSTER_LANE_PARTS, /* what jobs are made of: pods, Services, claims */
    CLUSTER_LANE_EVENTS,
};

enum cluster_propagation {
    CLUSTER_PROPAGATION_DEFAULT, /* the server's default: background for what we delete */
    CLUSTER_PROPAGATION_BACKGROUND,
    CLUSTER_PROPAGATION_FOREGROUND,
    CLUSTER_PROPAGATION_ORPHAN,
};

enum { CLUSTER_GRACE_DEFAULT = -1, CLUSTER_TIMEOUT_MS = 30000 };

/* All zero is a valid start, but `resource` is always needed. NULL and "" mean the same. */
struct cluster_request {
    enum cluster_verb verb;
    enum cluster_lane lane;
    const struct cluster_resource *resource;
    const char *namespace;   /* empty: the object has no namespace, or with LIST, all namespaces */
    const char *name;        /* not for LIST; for CREATE the name is in the body */
    const char *subresource; /* "status", "scale", "eviction", "log" … */
    json_t *body;            /* CREATE, REPLACE: the object; PATCH: the patch */
    int64_t timeout_ms;      /* in total, with the wait in its lane; 0: CLUSTER_TIMEOUT_MS */
    bool without_managers;   /* the answer may lack metadata.managedFields */

    /* PATCH */
    enum cluster_patch patch;
    const char *field_manager;
    bool force;

    /* DELETE */
    const char *uid;     /* preconditions */
    const char *version; /* resourceVersion */
    int64_t grace_s;     /* CLUSTER_GRACE_DEFAULT: the object's own; 0: at once */
    enum cluster_propagation propagation;

    /* LIST */
    const char *labels; /* selectors */
    const char *fields;
    int64_t limit;    /* size of a page; 0: all */
    const char *next; /* metadata.continue of the previous page */

    bool any_version; /* GET, LIST: the server may answer from its cache (resourceVersion=0) */
};

/* Borrowed for the callback; take a reference with json_incref to keep `object`; never change
 * it. */
struct cluster_answer {
    int code;           /* 0, or negative as in the table above */
    const char *reason; /* of the Status object, or "" */
    const char *message;
    int http_status;        /* 0: no server answered, or the back end has no HTTP */
    int64_t retry_after_ms; /* the delay that the server asked for; 0: none */
    bool unsure;            /* the request failed, but may have been carried out */
    bool repeated;          /* a try before this answer may have been carried out */
    json_t *object;         /* the object, the list, or NULL; after a refusal, the Status */
};

typedef void cluster_done_fn(void *arg, const struct cluster_answer *answer);

enum cluster_news {
    CLUSTER_BEGIN,    /* a listing begins */
    CLUSTER_OBJECT,   /* `object` exists, in this state */
    CLUSTER_SYNCED,   /* the listing is complete */
    CLUSTER_GONE,     /* `object` was deleted: its last state, with the version of its deletion */
    CLUSTER_BOOKMARK, /* nothing up to `version` is missing */
    CLUSTER_TROUBLE,  /* code, message */
    CLUSTER_ANSWERED, /* the server has answered: it has begun to follow */
};

/* Borrowed for the callback. */
struct cluster_change {
    enum cluster_news news;
    json_t *object;      /* OBJECT, GONE */
    const char *version; /* SYNCED, BOOKMARK */
    int code;            /* TROUBLE */
    const char *message; /* TROUBLE; else NULL */
};

typedef void cluster_watch_fn(void *arg, const struct cluster_change *change);

struct cluster_scope {
    const struct cluster_resource *resource;
    const char *namespace; /* empty: all */
    const char *labels;    /* selectors; empty: all */
    const char *fields;
    bool without_managers; /* metadata.managedFields may be left out */
};

struct cluster;
struct cluster_call;  /* in progress; owned by the back end, valid until its `done` returns */
struct cluster_watch; /* owned by the back end */

/* Each back end provides one of these. */
struct cluster_backend {
    /* Returns 0 and sets *ret (ret may be NULL), or returns MUSTER_ENOMEM; then `done` is not
     * called. */
    int (*send)(struct cluster *cluster, const struct cluster_request *request,
                cluster_done_fn *done, void *arg, struct cluster_call **ret,
                struct muster_err *err);
    void (*cancel)(struct cluster_call *call);
    /* Objects that exist already may be reported from within watch. */
    int (*watch)(struct cluster *cluster, const struct cluster_scope *scope, cluster_watch_fn *fn,
                 void *arg, struct cluster_watch **ret, struct muster_err *err);
    void (*unwatch)(struct cluster_watch *watch); /* accepts NULL; no callback comes after it */
};

/* The first member of each back end's own struct. The back end's functions open and close it. */
struct cluster {
    const struct cluster_backend *backend;
};

/* Compares like strcmp. A resourceVersion is a decimal number without leading zeros and orders the
 * states of one object (documented since Kubernetes 1.35; every released server with etcd behaved
 * so). A missing version is older than all others. */
static inline int cluster_version_compare(const char *a, const char *b)
{
    return text_compare_numbers(a ? a : "", b ? b : "");
}
