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
    PAIRS_MAX = 100, /* most parameters of a query, and headers of a request */
    HEADER_BYTES_MAX = 4096,
    CONNECTION_MEMORY_BYTES = 64 << 10, /* for request line and headers of one connection */
};

struct http_server {
    struct MHD_Daemon *daemon;
    uv_loop_t *loop;
    uv_poll_t poll;   /* the daemon's epoll descriptor */
    uv_timer_t timer; /* the daemon's next timeout */
    int open_handles;
    void (*on_stopped)(struct http_server *server);
    int runs_owed; /* runs of the daemon that must still follow a resume */
    int port;
    struct certificate_pair certificate; /* for new connections; without it they fail */
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
    struct visitor *visitors;    /* the users or addresses from which they come */
    struct visitor *arriving;    /* its connection was admitted and has not started yet */
    uv_timer_t check;            /* for the visits' time limits; runs while there are any */
};

enum exchange_state {
    EXCHANGE_READING,    /* the body is being received */
    EXCHANGE_HANDLING,   /* the handler has been called and has not answered yet */
    EXCHANGE_ANSWERED,   /* there is a response, which libmicrohttpd has not got yet */
    EXCHANGE_RESPONDING, /* the response is being sent */
    EXCHANGE_LEAVING,    /* over TLS: the connection leaves HTTP, and is suspended from then on */
};

struct exchange {
    struct http_reply reply; /* what the handler sees; must be first */
    struct http_server *server;
    struct exchange *previous;
    struct exchange *next;
    struct MHD_Connection *connection;
    char *path;
    struct buf body;
    enum exchange_state state;
    bool stranger;          /* it has no token: its body is not kept, and the handler not called */
    const char *head_fault; /* NULL: no fault; with a fault the body is not kept either */
    bool oversized;         /* its headers announce a body that is too large: the body is not
                               waited for */
    bool in_callback;       /* libmicrohttpd is calling us, and then continues by itself */
    bool suspended;
    bool released; /* the handler has ended it, or knows that the client has left */
    bool gone;
    int status;
    struct MHD_Response *response;
    char *headers[HEADERS_MAX][2];
    size_t header_count;
    struct buf queue;                /* the bytes of a stream */
    size_t sent;                     /* bytes of the queue that were sent */
    bool full;                       /* a write was refused: on_drained must be called */
    void (*take)(void *arg, int fd); /* for an upgrade; NULL once it was called */
    void (*take_socket)(void *arg, struct http_socket *socket); /* the same, if it takes a socket */
    void *take_arg;
    const char *protocol; /* the protocol after HTTP, over TLS; a literal */
    uv_poll_t *watch;     /* notices that the client leaves while the connection is suspended */
};

/* ---- drive.c: server.poll and server.timer run server.daemon ---- */

void drive_start(struct http_server *server);
/* `on_stopped` is called when the loop has closed both. */
void drive_stop(struct http_server *server, void (*on_stopped)(struct http_server *server));
/* Runs the daemon again from the loop. A resumed connection continues only in the run after the one
 * that noticed the resume, and libmicrohttpd's own timeout does not allow for that run (0.9.75,
 * TLS). */
void drive_wake(struct http_server *server);

/* ---- entry.c: what is decided before a body is read ---- */

/* libmicrohttpd's URI logger: returns the place of the request: a fault of its target, or NULL. */
void *entry_look_at(void *server, const char *target, struct MHD_Connection *connection);
/* Returns what is wrong with the request's target, as a sentence; NULL if the place is an exchange
 * or NULL. */
const char *entry_target_fault(const void *place);
/* Returns what is wrong with the request's headers, as a sentence; or NULL. */
const char *entry_headers_fault(struct MHD_Connection *connection);
/* Returns the size of the body according to the headers; 0 if they give none. */
uint64_t entry_announced_bytes(struct MHD_Connection *connection);

/* Whether the request has the server's token, or the server needs none. */
bool entry_permits(const struct http_server *server, struct MHD_Connection *connection);
void entry_refuse(struct exchange *x);

/* ---- visits.c: a share of the connections for each user, and time limits ---- */

/* libmicrohttpd's callbacks: whether a client may connect, and that a connection began or ended. */
enum MHD_Result visits_admit(void *server, const struct sockaddr *address, socklen_t length);
void visits_notice(void *server, struct MHD_Connection *connection, void **place,
                   enum MHD_ConnectionNotificationCode what);
/* The client must have sent its next part within this time; 0: there is no limit. */
void visits_expect(struct MHD_Connection *connection, unsigned within_ms);
void visits_done(struct http_server *server);
/* Returns the server of a connection; NULL if it is not known. */
struct http_server *visits_server(struct MHD_Connection *connection);

/* ---- tls.c ---- */

/* libmicrohttpd's callback: returns the certificate for a connection that begins. */
gnutls_certificate_retrieve_function3 tls_retrieve;

/* ---- upgrade.c: connections that leave HTTP ---- */

/* libmicrohttpd's callback: the head of the answer was sent. */
void upgrade_done(void *exchange, struct MHD_Connection *connection, void *place, const char *early,
                  size_t early_count, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle);
/* Writes the head of the answer over TLS, and gives the connection to its taker. libmicrohttpd has
 * just suspended the connection; exchange_abandon gives it back to be closed. */
void upgrade_take_over(struct exchange *x);
/* Tells the taker, if it was not called yet, that the client has left. */
void upgrade_failed(struct exchange *x);
/* Ends each socket; called before libmicrohttpd stops. */
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

/* Calls the handler's on_gone, if the handler has not ended the reply, and lets libmicrohttpd close
 * the connection. */
void exchange_abandon(struct exchange *x);

/* A suspended connection waits for a write, which resumes it; both may be called repeatedly. */
void exchange_suspend(struct exchange *x);
void exchange_resume(struct exchange *x);

/* After this call the handler may not touch the reply. */
void exchange_release(struct exchange *x);

/* Calls the server's handler with the request. */
void exchange_call(struct exchange *x, const char *method);
