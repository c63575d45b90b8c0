/* What the files of src/api share; nobody else includes this.
 *
 * A call is one request on a resource, while it is handled. Verbs return 0 when they have answered,
 * or an error which the dispatcher turns into a Status. Thread: the loop's.
 */
#pragma once

#include "api/api.h"
#include "api/form.h"
#include "api/patch/owners.h"
#include "api/resource.h"

#include "job/problem.h"

#include "base/time/timestamp.h"
#include <uv.h>

enum { LIVE_MAX = 4096 }; /* watches and leases together */

struct live;

/* The value of ?fieldValidation=; see fields.h. */
enum fields_mode { FIELDS_WARN, FIELDS_IGNORE, FIELDS_STRICT };

/* What a call's error is about other than the object: it decides the words of its Status. */
enum api_refusal {
    REFUSED_OBJECT,
    REFUSED_FIELDS,  /* unknown fields, with fieldValidation=Strict */
    REFUSED_OPTIONS, /* the query, or DeleteOptions */
    REFUSED_VERSION, /* a version that does not exist yet */
    REFUSED_FORM,    /* the form of the answer; see form.h */
    REFUSED_APPLY,   /* other managers own fields */
};

struct api {
    uv_loop_t *loop;
    struct store *store;
    struct api_hooks hooks;
    struct live *lives; /* open watches and leases */
    bool closing;       /* we end the replies, not their clients */
    size_t watch_count;
    size_t lease_count;
};

struct api_call {
    struct api *api;
    const struct http_request *request;
    struct http_reply *reply;
    struct route route;
    json_t *body;                 /* parsed; NULL if there is no body */
    struct job_problems problems; /* problems of admission; warnings become headers */
    struct form form;
    bool dry_run;
    bool applied; /* server-side apply has set the owners of the fields */
    enum fields_mode fields;
    enum api_refusal refusal;
    const char *options_kind; /* with REFUSED_OPTIONS: for example "ListOptions" */
};

/* ---- status.c ---- */

/* Sends a Status for the error, with the words of Kubernetes for the call's object. */
void status_send(struct api_call *call, const struct muster_err *err);
/* Returns {"status":"Success"} with the object's details. */
json_t *status_deleted(const struct resource *resource, const json_t *object);

/* ---- verbs: each answers, or returns an error ---- */

typedef int (*api_verb)(struct api_call *call, struct muster_err *err);

int verb_get(struct api_call *call, struct muster_err *err);
int verb_list(struct api_call *call, struct muster_err *err);
int verb_watch(struct api_call *call, struct muster_err *err);
int verb_create(struct api_call *call, struct muster_err *err);
int verb_update(struct api_call *call, struct muster_err *err);
int verb_patch(struct api_call *call, struct muster_err *err);
int verb_delete(struct api_call *call, struct muster_err *err);
int verb_delete_all(struct api_call *call, struct muster_err *err);
int verb_evict(struct api_call *call, struct muster_err *err);
int verb_log(struct api_call *call, struct muster_err *err);
int verb_stream(struct api_call *call, struct muster_err *err);
int verb_get_scale(struct api_call *call, struct muster_err *err);
int verb_set_scale(struct api_call *call, struct muster_err *err);

/* ---- call.c: what verbs read from a call ---- */

struct store_key call_key(const struct api_call *call);

/* labelSelector and fieldSelector of the query. Call call_selectors_done also after a failure. */
struct call_selectors {
    struct selector labels;
    struct selector fields;
};
int call_selectors(const struct api_call *call, struct call_selectors *ret, struct muster_err *err);
void call_selectors_done(struct call_selectors *selectors);

/* Reads a number from 0 up from the query; *ret is unchanged if the query has none. */
int query_number(const struct http_request *request, const char *name, int64_t *ret,
                 struct muster_err *err);

/* Whether the body has this media type, with any parameters. */
bool request_is_type(const struct http_request *request, const char *type);

/* Ends the transaction of a verb with the result `r`: an error or a dry run rolls everything
 * back. */
int call_finish(struct api_call *call, int r, struct muster_err *err);

/* ---- answer.c: what verbs answer with ---- */

/* Sends the object in the form that the client wants. */
int call_send_object(struct api_call *call, int status, json_t *object, struct muster_err *err);
/* Sends the same, with warnings about the object. */
int call_send_written(struct api_call *call, int status, json_t *object, struct muster_err *err);
/* Sends a page of objects in the form that the client wants. */
int call_send_page(struct api_call *call, const struct store_page *page, struct muster_err *err);

/* ---- write.c and admit.c ---- */

/* Refuses a body in which a value has another type than its field. The answer is 400, as from an
 * API server, and comes before all other checks, because such a body cannot be used for
 * anything. */
int call_check_types(const struct api_call *call, const json_t *object, struct muster_err *err);

/* Writes `object` over `before` after admission, and answers. */
int call_store_update(struct api_call *call, const json_t *before, json_t *object,
                      struct muster_err *err);

/* Returns a new Namespace object. */
json_t *namespace_make(const char *name);

/* Checks what call_store_update and verb_create write to the store, and fills in the defaults. The
 * call's problems say what is wrong; `before` is NULL for a new object. Returns MUSTER_EDATA when
 * there are errors. */
int admit(struct api_call *call, const json_t *before, json_t *object, struct muster_err *err);

/* ---- owner.c ---- */

enum { CALLER_NAME_BYTES = 129 };

/* The texts that a struct owner points to. */
struct caller {
    char name[CALLER_NAME_BYTES];
    char now[TIMESTAMP_BYTES];
};

struct owner caller_read(const struct api_call *call, const char *operation, struct caller *ret);

/* Sets the owner of the fields of the body, which is a new object. Without apply, no owner is
 * kept. */
int call_own_new(struct api_call *call, bool applied, struct muster_err *err);
/* Makes the caller the owner of the fields that the call changed. */
int call_own_changes(const struct api_call *call, const json_t *before, json_t *object,
                     struct muster_err *err);

/* ---- discovery.c ---- */

/* Answers /api, /apis, /version, /healthz …; returns false for any other path. */
bool discovery_handle(const struct api *api, const struct http_request *request,
                      struct http_reply *reply);

/* ---- openapi.c ---- */

/* Answers /openapi/v3 and the paths below it, and /openapi/v2; returns false for any other path. */
bool openapi_handle(const struct api *api, const struct http_request *request,
                    struct http_reply *reply);

/* ---- beside.c ---- */

/* A kind that is answered and not stored. */
struct beside_kind {
    const char *group;
    const char *api_version; /* "authorization.k8s.io/v1" */
    const char *plural;
    const char *singular;
    const char *kind;
    const char *verbs[3];       /* ends with NULL */
    const char *short_names[3]; /* … */
    json_t *(*review)(void);    /* returns the status of a new one; NULL: it is not a review */
};

extern const struct beside_kind beside_kinds[];
extern const size_t beside_kind_count;

/* Answers access reviews and custom resource definitions, and requests for what is not served;
 * returns false for any other path. */
bool beside_handle(const struct api *api, const struct http_request *request,
                   struct http_reply *reply);

/* ---- live.c: replies that stay open ---- */

/* The first member of a watch or a lease. */
struct live {
    struct api *api;
    struct live *previous;
    struct live *next;
    size_t *count;                    /* the counter of the api that includes this reply */
    void (*close)(struct live *live); /* frees it; the reply has already ended */
    struct http_reply *reply;
};

int live_add(struct api *api, struct live *live, struct http_reply *reply, size_t *count,
             void (*close)(struct live *), struct muster_err *err);
/* Takes `live` out of the list and calls close. */
void live_close(struct live *live);
/* Ends the reply, then closes. */
void live_end(struct live *live);

/* lease.c */
void lease_open(struct api *api, const char *id, struct http_reply *reply);
