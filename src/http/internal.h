/* What the files of src/http share; nobody else includes this.
 *
 * A server is a libmicrohttpd daemon whose epoll descriptor the loop watches; an exchange is one
 * request and its reply. Thread: the loop's.
 */
#pragma once

#include "base/buf.h"
#include "certificate/certificate.h"
#include "http/http.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <stdint.h>

enum {
    HEADERS_MAX = 16,
    PAIRS_MAX = 100, /* parameters of a query, and headers of a request */
    HEADER_BYTES_MAX = 4096,
    CONNECTION_MEMORY_BYTES = 64 << 10, /* request line and headers of one connection */
};

struct http_server {
    struct MHD_Daemon *daemon;
    uv_loop_t *loop;
    uv_poll_t poll;   /* the daemon's epoll descriptor */
    uv_timer_t timer; /* the daemon's next timeout */
    int open_handles;
    void (*on_stopped)(struct http_server *server);
    int runs_owed; /* after a resume */
    int port;
    struct certificate_pair certificate; /* of new connections; none: none can be made */
    char *socket_path;
    char *token;
    char *refused_type;
    char *refused_body;
    struct http_limits limits;
    size_t queued_bytes; /* in the queues of all streams */
    http_handler handler;
    void *arg;
    struct exchange *exchanges;
    struct http_socket *sockets; /* connections that have left HTTP */
    struct visit *visits;        /* connections */
    struct visitor *visitors;    /* whose they are */
    struct visitor *arriving;    /* between admission and its connection's start */
    uv_timer_t check;            /* of the visits' time limits; runs while there are any */
};

enum exchange_state {
    EXCHANGE_READING,    /* the body comes in */
    EXCHANGE_HANDLING,   /* the handler has it and has not answered */
    EXCHANGE_ANSWERED,   /* there is a response, not yet given to libmicrohttpd */
    EXCHANGE_RESPONDING, /* it is being sent */
    EXCHANGE_LEAVING,    /* over TLS: the connection leaves HTTP, suspended from then on */
};

struct exchange {
    struct http_reply reply; /* first: the handler's view */
    struct http_server *server;
    struct exchange *previous;
    struct exchange *next;
    struct MHD_Connection *connection;
    char *path;
    struct buf body;
    enum exchange_state state;
    bool stranger; /* came without the token: the body is not kept, the handler not called */
    const char *head_fault; /* NULL: none; else its body is not kept either */
    bool oversized;         /* its body is too large, by its own head: it is not waited for */
    bool in_callback;       /* libmicrohttpd is calling us: it goes on by itself */
    bool suspended;
    bool released; /* the handler has ended it, or was told that the client is gone */
    bool gone;
    int status;
    struct MHD_Response *response;
    char *headers[HEADERS_MAX][2];
    size_t header_count;
    struct buf queue;                /* of a stream */
    size_t sent;                     /* of queue's bytes */
    bool full;                       /* a write was refused: on_drained is owed */
    void (*take)(void *arg, int fd); /* of an upgrade; NULL once it was called, */
    void (*take_socket)(void *arg, struct http_socket *socket); /* or this one */
    void *take_arg;
    const char *protocol; /* that it leaves for, over TLS; a literal */
    uv_poll_t *watch;     /* notices that the client left while we are suspended */
};

/* ---- drive.c: server.poll and server.timer run server.daemon ---- */

void drive_start(struct http_server *server);
/* `on_stopped` is called when the loop has let go of both. */
void drive_stop(struct http_server *server, void (*on_stopped)(struct http_server *server));
/* Runs the daemon again from the loop: a resumed connection goes on in the run after the one that
 * noticed it, which libmicrohttpd's own timeout forgets (0.9.75, TLS). */
void drive_wake(struct http_server *server);

/* ---- entry.c: what is decided before a body is read ---- */

/* libmicrohttpd's URI logger: the place of a request whose target cannot be routed, or NULL. */
void *entry_look_at(void *server, const char *target, struct MHD_Connection *connection);
/* What is wrong with that target, as a sentence; NULL: the place is an exchange's, or none. */
const char *entry_target_fault(const void *place);
/* What is wrong with the request's headers, as a sentence; or NULL. */
const char *entry_headers_fault(struct MHD_Connection *connection);
/* What it says its body has; 0: nothing. */
uint64_t entry_announced_bytes(struct MHD_Connection *connection);

/* Does the request carry the server's token, if one is asked for? */
bool entry_permits(const struct http_server *server, struct MHD_Connection *connection);
void entry_refuse(struct exchange *x);

/* ---- visits.c: a share of the connections for each user, and time limits ---- */

/* libmicrohttpd's callbacks: may it come in, and it came or went. */
enum MHD_Result visits_admit(void *server, const struct sockaddr *address, socklen_t length);
void visits_notice(void *server, struct MHD_Connection *connection, void **place,
                   enum MHD_ConnectionNotificationCode what);
/* What the client is to send must be there in so many ms; 0: as long as it takes. */
void visits_expect(struct MHD_Connection *connection, unsigned within_ms);
void visits_done(struct http_server *server);
/* Whose connection it is; NULL: nobody's that is known. */
struct http_server *visits_server(struct MHD_Connection *connection);

/* ---- tls.c ---- */

/* libmicrohttpd's callback: the certificate of a connection that begins. */
gnutls_certificate_retrieve_function3 tls_retrieve;

/* ---- upgrade.c: connections that leave HTTP ---- */

/* libmicrohttpd's callback: the head of the answer is out. */
void upgrade_done(void *exchange, struct MHD_Connection *connection, void *place, const char *early,
                  size_t early_count, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle);
/* Over TLS: libmicrohttpd has just suspended the connection, which it gets back, to close it, by
 * exchange_abandon. Writes the head. */
void upgrade_take_over(struct exchange *x);
/* The client has gone before that, unless it was called. */
void upgrade_failed(struct exchange *x);
/* Called before libmicrohttpd stops: ends each socket. */
void upgrade_end_all(struct http_server *server);

/* ---- reply.c: what makes and sends a reply ---- */

extern const struct http_reply_ops reply_ops;

/* ---- exchange.c and request.c ---- */

/* libmicrohttpd's callbacks. */
enum MHD_Result exchange_serve(void *server, struct MHD_Connection *connection, const char *path,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_bytes, void **place);
void exchange_completed(void *server, struct MHD_Connection *connection, void **place,
                        enum MHD_RequestTerminationCode why);

/* Tells the handler, if it still cares, and lets libmicrohttpd take the connection down. */
void exchange_abandon(struct exchange *x);

/* The connection waits for a write, and goes on by it; both may be called again. */
void exchange_suspend(struct exchange *x);
void exchange_resume(struct exchange *x);

/* After this call the handler may not touch the reply. */
void exchange_release(struct exchange *x);

/* Calls the server's handler with the request. */
void exchange_call(struct exchange *x, const char *method);
