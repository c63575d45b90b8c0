/* HTTP for the API, with whole or streamed replies: libmicrohttpd under libuv.
 *
 * Layer: services. Thread: the loop's. A handler gets a whole request (its body is bounded) and a
 * reply, which it completes now or later, by http_reply_send, or by http_reply_start, any number of
 * http_reply_write, and http_reply_end.
 *
 * Lifetimes: the request lives until the handler returns. The reply belongs to the server: after
 * send or end it is gone; when the client leaves before that, on_gone is called exactly once, and
 * it is gone after that. (A handler that answers at once need not set hooks.)
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct http_pair {
    const char *name;
    const char *value;
};

struct http_request {
    const char *method; /* "GET" */
    const char *path;   /* decoded, without the query; starts with '/' */
    const struct http_pair *query;
    size_t query_count;
    const struct http_pair *headers;
    size_t header_count;
    const char *body; /* NUL-terminated; "" if there is no body */
    size_t body_bytes;
    bool too_large;         /* the body was over its limit and is not here; the handler must
                               answer 413 */
    size_t body_bytes_max;  /* the limit of the body */
    const char *head_fault; /* a sentence that says why path, query or headers cannot be read as
                               they were meant (NUL bytes, no UTF-8, %2F in the path, too many
                               parameters, two lengths of the body): the handler must answer 400;
                               or NULL */
};

/* Returns a value of the query or of a header: NULL if it is missing, the first value if it is
 * there twice. Names of headers ignore case. */
const char *http_query(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);

/* Whether the parameter is "1", "t" or "true", in any case, or has no value. Any other value, or a
 * missing parameter, is false. */
bool http_query_bool(const struct http_request *request, const char *name);

/* ---- Replies: an interface, so that handlers can be tested without sockets ---- */

struct http_reply;
struct http_socket;

struct http_reply_ops {
    void (*header)(struct http_reply *reply, const char *name, const char *value);
    void (*send)(struct http_reply *reply, int status, const char *type, const void *bytes,
                 size_t count);
    int (*start)(struct http_reply *reply, int status, const char *type);
    int (*write)(struct http_reply *reply, const void *bytes, size_t count);
    void (*end)(struct http_reply *reply);
    int (*upgrade)(struct http_reply *reply, const char *protocol, void (*take)(void *arg, int fd),
                   void *arg);
    int (*leave)(struct http_reply *reply, const char *protocol,
                 void (*take)(void *arg, struct http_socket *socket), void *arg);
};

struct http_reply {
    const struct http_reply_ops *ops;
    void (*on_gone)(void *arg);    /* the client has left; may be NULL */
    void (*on_drained)(void *arg); /* less than half of the queue's limit is used again; may be
                                      NULL */
    void *arg;                     /* the argument of the two hooks */
};

/* Adds a header; must be called before send or start. */
static inline void http_reply_header(struct http_reply *reply, const char *name, const char *value)
{
    reply->ops->header(reply, name, value);
}

/* Sends the whole answer; bytes are copied. */
static inline void http_reply_send(struct http_reply *reply, int status, const char *type,
                                   const void *bytes, size_t count)
{
    reply->ops->send(reply, status, type, bytes, count);
}

/* Begins a stream, and sends its headers at once. */
static inline int http_reply_start(struct http_reply *reply, int status, const char *type)
{
    return reply->ops->start(reply, status, type);
}

/* Queues a copy of the bytes. Returns MUSTER_EAGAIN, and takes nothing, if the queue is full: then
 * wait for on_drained, or call end. Never calls a hook. */
static inline int http_reply_write(struct http_reply *reply, const void *bytes, size_t count)
{
    return reply->ops->write(reply, bytes, count);
}

/* Ends the stream; bytes that are queued are still sent. */
static inline void http_reply_end(struct http_reply *reply)
{
    reply->ops->end(reply);
}

/* Answers 101 Switching Protocols: from then on the connection carries bytes both ways, without
 * HTTP. `take` is called once, from the loop: with the connection's socket, which blocks and which
 * `take` must close, or with -1 if the client has left. The reply may not be used any more. Returns
 * MUSTER_EUNSUPPORTED on a server that has no Unix socket. */
static inline int http_reply_upgrade(struct http_reply *reply, const char *protocol,
                                     void (*take)(void *arg, int fd), void *arg)
{
    return reply->ops->upgrade(reply, protocol, take, arg);
}

/* Does the same for a handler that speaks the next protocol in this loop, over TLS too. `take` is
 * called once: with the connection, or with NULL if the client has left. */
static inline int http_reply_leave(struct http_reply *reply, const char *protocol,
                                   void (*take)(void *arg, struct http_socket *socket), void *arg)
{
    return reply->ops->leave(reply, protocol, take, arg);
}

/* These functions are for a connection that has left HTTP. Its descriptor does not block, and may
 * only be polled. `on_end` is called when the server stops: after it the descriptor does not exist
 * any more. */
int http_socket_fd(const struct http_socket *socket);
void http_socket_on_end(struct http_socket *socket, void (*on_end)(void *arg), void *arg);
/* They return the same as recv and send: 0 at the end, and -1 with errno. */
ssize_t http_socket_read(struct http_socket *socket, void *bytes, size_t room);
ssize_t http_socket_write(struct http_socket *socket, const void *bytes, size_t count);
/* Whether bytes can be read although polling does not report them. */
bool http_socket_pending(const struct http_socket *socket);
/* The socket may be NULL. */
void http_socket_close(struct http_socket *socket);

/* ---- Server ---- */

struct http_server;

struct http_limits {
    unsigned connections_max; /* default 512. Over TCP one user gets an eighth of them (one
                                 address, where the user is not known), and all users but the
                                 owner together get half */
    unsigned owner_uid;       /* the user who may use all connections; 0: the effective user */
    size_t body_bytes_max;    /* default 3 MiB, as for a Kubernetes API server */
    size_t queue_bytes_max;   /* for each stream, default 4 MiB */
    size_t queues_bytes_max;  /* for all streams together, default 64 MiB: above it a stream
                                 counts as full as soon as its client has left any byte unread */
    unsigned head_timeout_ms; /* limit for TLS handshake and headers: from the connection's start
                                 to the end of its first request's headers, or from the end of a
                                 request to the end of the next one's headers, which may also
                                 wait idle_timeout_s; default 20 s */
    unsigned body_timeout_ms; /* from the end of the headers to the end of the body; default 60 s */
    unsigned idle_timeout_s;  /* limit for a connection without progress, but not for a stream
                                 that waits; default 120 */
};

struct http_options {
    const char *socket_path; /* AF_UNIX, mode 0600; an existing file is replaced. Or: */
    int port;                /* 0 chooses a free one */
    const char *address;     /* the IPv4 address of that port; NULL: 127.0.0.1 */
    bool tls;                /* must be set if the certificate is set later */
    const char *key_pem;     /* with cert_pem: TLS; without both, and without tls: plain HTTP */
    const char *cert_pem;
    const char *token;        /* requests must have "Authorization: Bearer TOKEN"; NULL: no check */
    const char *refused_type; /* answer (401) to a request without it; NULL: plain text */
    const char *refused_body;
    struct http_limits limits; /* 0: the default */
};

typedef void (*http_handler)(void *arg, const struct http_request *request,
                             struct http_reply *reply);

/* Returns MUSTER_EUNAVAIL if the port is taken, MUSTER_ECREATE if the socket cannot be made. The
 * strings are copied. */
int http_server_start(uv_loop_t *loop, const struct http_options *options, http_handler handler,
                      void *arg, struct http_server **ret, struct muster_err *err);
int http_server_port(const struct http_server *server);

/* For a server with TLS: sets the certificate of connections that begin from now on; open ones keep
 * theirs. The texts are copied. Returns MUSTER_ECONFIG, and changes nothing, if key and certificate
 * cannot be read or do not belong together. */
int http_server_set_certificate(struct http_server *server, const char *key_pem,
                                const char *cert_pem, struct muster_err *err);

/* The number of open connections, idle ones included. */
unsigned http_server_connections(const struct http_server *server);

/* Closes every connection (and calls on_gone for open streams); the server then frees itself, from
 * the loop. Run the loop once more after this. `server` may be NULL. */
void http_server_stop(struct http_server *server);
