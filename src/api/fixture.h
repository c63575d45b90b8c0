/* An API without sockets, for tests: requests are handed in, replies are collected in memory.
 *
 * Tests only. */
#pragma once

#include "api/api.h"
#include "api/query_pairs.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIXTURE_QUERY_MAX = 8, FIXTURE_BYTES_MAX = 1 << 20 };

struct fake_reply {
    struct http_reply reply; /* must be the first member */
    int status;
    bool ended;
    size_t room; /* bytes that it accepts before EAGAIN; 0: all */
    struct buf headers;
    struct buf bytes;
};

struct fixture {
    char folder[TEST_FOLDER_BYTES];
    uv_loop_t loop;
    struct store *store;
    struct api *api;
    struct muster_err err;
    struct fake_reply last; /* the answer to the last fixture_call */
    json_t *doc;            /* its JSON, or NULL */
};

static inline void fake_header(struct http_reply *reply, const char *name, const char *value)
{
    buf_format(&((struct fake_reply *)reply)->headers, "%s: %s\n", name, value);
}

static inline void fake_send(struct http_reply *reply, int status, const char *type,
                             const void *bytes, size_t count)
{
    struct fake_reply *f = (struct fake_reply *)reply;
    (void)type;
    assert_int_equal(f->status, 0); /* answered once */
    f->status = status;
    f->ended = true;
    buf_add(&f->bytes, bytes, count);
}

static inline int fake_start(struct http_reply *reply, int status, const char *type)
{
    (void)type;
    ((struct fake_reply *)reply)->status = status;
    return 0;
}

static inline int fake_write(struct http_reply *reply, const void *bytes, size_t count)
{
    struct fake_reply *f = (struct fake_reply *)reply;
    if (f->room && f->bytes.used + count > f->room) {
        return MUSTER_EAGAIN;
    }
    buf_add(&f->bytes, bytes, count);
    return 0;
}

static inline void fake_end(struct http_reply *reply)
{
    ((struct fake_reply *)reply)->ended = true;
}

static inline int fake_upgrade(struct http_reply *reply, const char *protocol,
                               void (*take)(void *arg, int fd), void *arg)
{
    (void)reply;
    (void)protocol;
    (void)take;
    (void)arg;
    return MUSTER_EUNSUPPORTED; /* as over TLS */
}

static inline int fake_leave(struct http_reply *reply, const char *protocol,
                             void (*take)(void *arg, struct http_socket *socket), void *arg)
{
    (void)reply;
    (void)protocol;
    (void)take;
    (void)arg;
    return MUSTER_EUNSUPPORTED;
}

static inline void fake_init(struct fake_reply *f)
{
    static const struct http_reply_ops ops = {fake_header, fake_send,    fake_start, fake_write,
                                              fake_end,    fake_upgrade, fake_leave};
    *f = (struct fake_reply){.reply = {.ops = &ops}};
    buf_init(&f->headers, FIXTURE_BYTES_MAX);
    buf_init(&f->bytes, FIXTURE_BYTES_MAX);
}

static inline void fake_done(struct fake_reply *f)
{
    buf_done(&f->headers);
    buf_done(&f->bytes);
}

static inline void fixture_init(struct fixture *f, const struct api_hooks *hooks)
{
    *f = (struct fixture){0};
    test_folder_make(f->folder);
    muster_auto(free) char *path = file_join(f->folder, "store.db");
    const struct store_options options = {.grace_s = api_grace_s, .fill = api_fill};
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(store_open(path, &options, &f->store, &f->err), 0);
    assert_int_equal(api_new(&f->loop, f->store, hooks, &f->api, &f->err), 0);
    fake_init(&f->last);
}

static inline void fixture_done(struct fixture *f)
{
    f->api = api_free(f->api);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    f->store = store_close(f->store);
    json_decref(f->doc);
    fake_done(&f->last);
    test_folder_remove(f->folder);
}

/* Sends a request whose answer goes into any reply; `body` is JSON with ' for ". type and accept
 * may be NULL. */
static inline void fixture_send(struct fixture *f, struct fake_reply *into, const char *method,
                                const char *target, const char *body, const char *type,
                                const char *accept)
{
    muster_auto(free) char *path = strdup(target);
    muster_auto(free) char *text = strdup(body ? body : "");
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    char *mark = strchr(path, '?');
    if (mark) {
        *mark++ = '\0';
    }
    struct http_pair query[FIXTURE_QUERY_MAX];
    const struct http_pair headers[] = {{"Content-Type", type ? type : "application/json"},
                                        {"Accept", accept ? accept : "application/json"}};
    const struct http_request request = {
        .method = method,
        .path = path,
        .query = query,
        .query_count = query_pairs(mark, query, FIXTURE_QUERY_MAX),
        .headers = headers,
        .header_count = 2,
        .body = text,
        .body_bytes = strlen(text),
    };
    api_handle(f->api, &request, &into->reply);
}

/* Sends a request that is answered at once; returns the status, and f->doc is the JSON. */
static inline int fixture_call_as(struct fixture *f, const char *method, const char *target,
                                  const char *body, const char *type, const char *accept)
{
    fake_done(&f->last);
    fake_init(&f->last);
    json_decref(f->doc);
    f->doc = NULL;
    fixture_send(f, &f->last, method, target, body, type, accept);
    assert_true(f->last.ended);
    f->doc = json_loads(buf_str(&f->last.bytes), 0, NULL);
    return f->last.status;
}

static inline int fixture_call(struct fixture *f, const char *method, const char *target,
                               const char *body)
{
    return fixture_call_as(f, method, target, body, NULL, NULL);
}

/* Returns a field of the last answer as text. */
static inline const char *answer(struct fixture *f, const char *path)
{
    return doc_text(f->doc, path, "");
}

#define JOBS "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
#define PODS "/api/v1/namespaces/default/pods"
#define CONFIG_MAPS "/api/v1/namespaces/default/configmaps"
#define CLAIMS "/api/v1/namespaces/default/persistentvolumeclaims"

#define REPLICA(replicas)                                                                          \
    "{'replicas':" #replicas ",'restartPolicy':'Never','template':{'spec':{'containers':["         \
    "{'name':'pytorch','image':'x','command':['true']}]}}}"
#define JOB(name)                                                                                  \
    "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'" name "'},'spec':{"  \
    "'pytorchReplicaSpecs':{'Master':" REPLICA(1) ",'Worker':" REPLICA(2) "}}}"
#define CONFIG_MAP(name) "{'metadata':{'name':'" name "','labels':{'l':'v'}},'data':{'k':'v'}}"
#define POD(name)                                                                                  \
    "{'metadata':{'name':'" name "'},'spec':{'containers':[{'name':'main','image':'x'}]}}"
