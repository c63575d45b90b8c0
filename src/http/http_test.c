/* The server over real sockets: a child process is the client, the loop runs here.
 *
 * Each client is a function that returns when it has seen what it must see and asserts by its exit
 * status; the parent runs the loop until the child is gone.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "certificate/certificate.h"
#include "http/http.h"
#include "http/identity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEW = 2, CLIENTS = 200, CHUNK = 1000, QUEUE = 64 << 10, BODY = 4096 };

struct world {
    char folder[TEST_FOLDER_BYTES];
    char socket_path[96];
    uv_loop_t loop;
    struct http_server *server;
    struct http_reply *held; /* the reply of /hold and /stream */
    int open;                /* streams whose client is connected */
    int gone;
    size_t written;                         /* bytes that /flood has written */
    const struct certificate_pair *renewed; /* the certificate that /renew sets */
    bool child_gone;
    int child_status;
    struct muster_err err;
};

/* ---- handlers ---- */

static void note_gone(void *arg)
{
    struct world *w = arg;
    w->open--;
    w->gone++;
    w->held = NULL;
}

/* Writes until the queue is full; on_drained calls it again. */
static void flood(void *arg)
{
    struct world *w = arg;
    char chunk[CHUNK];
    memset(chunk, 'x', sizeof chunk);
    while (w->written < 1000 * CHUNK) {
        if (http_reply_write(w->held, chunk, sizeof chunk) < 0) {
            return;
        }
        w->written += sizeof chunk;
    }
    http_reply_end(muster_take(w->held));
    w->open--;
}

static void stream(struct world *w, struct http_reply *reply)
{
    reply->on_gone = note_gone;
    reply->arg = w;
    w->held = reply;
    w->open++;
    assert_int_equal(http_reply_start(reply, 200, "text/plain"), 0);
}

/* Echoes what one read returns, then closes. A client that left before it was answered gets
 * nothing. */
static void echo(void *arg, int fd)
{
    struct world *w = arg;
    char bytes[64];
    w->open--;
    w->gone += fd < 0;
    if (fd >= 0) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&readable, 1, test_limit_ms()), 1);
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        assert_true(n >= 0 || errno == ECONNRESET);
        assert_true(n <= 0 || send(fd, bytes, (size_t)n, MSG_NOSIGNAL) == n);
        close(fd);
    }
}

static void answer(void *arg, const struct http_request *request, struct http_reply *reply)
{
    struct world *w = arg;
    if (request->head_fault) {
        http_reply_send(reply, 400, "text/plain", request->head_fault, strlen(request->head_fault));
    } else if (strcmp(request->path, "/stream") == 0) {
        stream(w, reply);
    } else if (strcmp(request->path, "/flood") == 0) {
        stream(w, reply);
        reply->on_drained = flood;
        flood(w);
    } else if (strcmp(request->path, "/upgrade") == 0) {
        w->open++;
        assert_int_equal(http_reply_upgrade(reply, "echo", echo, w), 0);
    } else if (strcmp(request->path, "/hold") == 0) {
        reply->on_gone = note_gone;
        reply->arg = w;
        w->open++;
    } else if (request->too_large) {
        assert_int_equal(request->body_bytes, 0);
        http_reply_send(reply, 413, "text/plain", "", 0);
    } else {
        if (strcmp(request->path, "/renew") == 0) {
            assert_int_equal(http_server_set_certificate(w->server, w->renewed->key_pem,
                                                         w->renewed->cert_pem, NULL),
                             0);
        }
        char text[256];
        const char *q = http_query(request, "q");
        int n = snprintf(text, sizeof text, "%s %s q=%s body=%zu", request->method, request->path,
                         q ? q : "-", request->body_bytes);
        http_reply_header(reply, "X-Test", "yes");
        http_reply_send(reply, 200, "text/plain", text, (size_t)n);
    }
}

/* ---- the world ---- */

static void world_init(struct world *w)
{
    *w = (struct world){0};
    test_folder_make(w->folder);
    (void)snprintf(w->socket_path, sizeof w->socket_path, "%s/sock", w->folder);
    assert_int_equal(uv_loop_init(&w->loop), 0);
}

static void serve(struct world *w, struct http_options options)
{
    options.limits.queue_bytes_max = QUEUE;
    options.limits.body_bytes_max = BODY;
    int r = http_server_start(&w->loop, &options, answer, w, &w->server, &w->err);
    if (r < 0) {
        fail_msg("%s", w->err.text);
    }
}

static void world_done(struct world *w)
{
    http_server_stop(w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(w->open, 0);
    test_folder_remove(w->folder);
}

static void on_tick(uv_timer_t *timer)
{
    struct world *w = timer->data;
    int status;
    if (!w->child_gone && waitpid((pid_t)w->child_status, &status, WNOHANG) > 0) {
        w->child_gone = true;
        w->child_status = status;
    }
}

/* Runs the loop until done(w), at most for test_limit_ms(). */
static void run_until(struct world *w, bool (*done)(const struct world *))
{
    uv_timer_t tick;
    uv_timer_init(&w->loop, &tick);
    tick.data = w;
    uv_timer_start(&tick, on_tick, 1, 1);
    uint64_t start = uv_now(&w->loop);
    while (!done(w) && uv_now(&w->loop) - start < (uint64_t)test_limit_ms()) {
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    bool fine = done(w);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_true(fine);
}

static bool child_is_gone(const struct world *w)
{
    return w->child_gone;
}

static void run_client(struct world *w, int (*client)(struct world *))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(client(w));
    }
    w->child_gone = false;
    w->child_status = (int)child;
    run_until(w, child_is_gone);
    if (!WIFEXITED(w->child_status) || WEXITSTATUS(w->child_status) != 0) {
        fail_msg("the client ended with status %d", WEXITSTATUS(w->child_status));
    }
}

/* ---- clients, in the child: they return 0, or the number of the line that failed ---- */

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__ % 255 + 1;                                                             \
        }                                                                                          \
    } while (0)

static int dial_port(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static int dial(const struct world *w)
{
    if (http_server_port(w->server) != 0) {
        return dial_port(http_server_port(w->server));
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, w->socket_path, strlen(w->socket_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* Sends the text, and reads until `until` has arrived (NULL: until the end). Returns a static
 * buffer. */
static const char *converse(int fd, const char *text, const char *until)
{
    static char got[4 << 20];
    size_t used = 0;
    got[0] = '\0';
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        return "cannot write";
    }
    while (used < sizeof got - 1) {
        ssize_t n = read(fd, got + used, sizeof got - 1 - used);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
        got[used] = '\0';
        if (until && strstr(got, until)) {
            break;
        }
    }
    return got;
}

static int ask_twice(struct world *w)
{
    int fd = dial(w);
    const char *got = converse(fd, "GET /a%20b?q=x%2Cy HTTP/1.1\r\nHost: h\r\n\r\n", "body=0");
    EXPECT(strstr(got, "200 OK") && strstr(got, "GET /a b q=x,y body=0") &&
           strstr(got, "X-Test: yes"));
    got = converse(fd, "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", "body=5");
    EXPECT(strstr(got, "POST /p q=- body=5"));
    return 0;
}

/* A target that would be cut at a NUL, or that is not UTF-8, reaches no route. */
static int ask_for_no_text(struct world *w)
{
    static const char *const targets[] = {"/a%00b", "/a?q=x%00y", "/a%ff", "/a?q=%c3", "/%C3%28"};
    int fd = dial(w);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "DELETE %s HTTP/1.1\r\nHost: h\r\n\r\n", targets[i]);
        const char *got = converse(fd, text, "\r\n\r\n");
        EXPECT(strstr(got, " 400 "));
        if (!strstr(got, "no text")) {
            EXPECT(strstr(converse(fd, "", "no text"), "no text"));
        }
    }
    const char *got = converse(fd, "GET /%C3%A4%zz%?q=%41 HTTP/1.1\r\nHost: h\r\n\r\n", "body=0");
    EXPECT(strstr(got, "GET /\xc3\xa4%zz% q=A body=0"));
    return 0;
}

/* In the path an encoded slash would become a separator; in a query it is data. */
static int ask_for_encoded_slashes(struct world *w)
{
    static const char *const targets[] = {"/a%2Fb", "/%2f", "/a/b%2Fstatus?q=x"};
    int fd = dial(w);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "DELETE %s HTTP/1.1\r\nHost: h\r\n\r\n", targets[i]);
        EXPECT(strstr(converse(fd, text, "contains one"), " 400 "));
    }
    const char *got = converse(fd, "GET /a%2?q=%2F HTTP/1.1\r\nHost: h\r\n\r\n", "body=0");
    EXPECT(strstr(got, "GET /a%2 q=/ body=0"));
    return 0;
}

/* libmicrohttpd itself never answers a request with too many parameters. */
static int ask_with_many_parameters(struct world *w)
{
    static const int counts[] = {100, 101, 961, 5000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int fd = dial(w);
        struct buf text;
        buf_init(&text, 64 << 10);
        buf_text(&text, "GET /x?q=y");
        for (int count = 1; count < counts[i]; count++) {
            buf_text(&text, "&a=b");
        }
        buf_text(&text, " HTTP/1.1\r\nHost: h\r\n\r\n");
        bool fits = counts[i] <= 100;
        const char *got = converse(fd, buf_str(&text), fits ? "q=y body=0" : "too many parameters");
        EXPECT(strstr(got, fits ? " 200 " : " 400 "));
        buf_done(&text);
        close(fd);
    }
    return 0;
}

/* The server does not wait for a body that is announced as endless. */
static int say_what_is_no_body(struct world *w)
{
    static const struct {
        const char *headers, *status, *words;
    } heads[] = {
        {"Content-Length: 4294967296", " 413 ", NULL},
        {"Expect: 100-continue\r\nContent-Length: 4294967296", " 413 ", NULL},
        {"Content-Length: 2\r\nContent-Length: 3", " 400 ", "two lengths"},
        {"Content-Length: 2\r\nTransfer-Encoding: chunked", " 400 ", "one of the two must go"},
        {"Transfer-Encoding: gzip, chunked", " 400 ", "can only be chunked"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "POST /x HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n%s",
                       heads[i].headers, strstr(heads[i].headers, "chunked") ? "0\r\n\r\n" : "{}x");
        const char *got = converse(dial(w), text, heads[i].words);
        if (!strstr(got, heads[i].status)) {
            (void)fprintf(stderr, "%s: %s\n", heads[i].headers, got);
            return 1;
        }
    }
    return 0;
}

static int send_too_much(struct world *w)
{
    char text[BODY + 256];
    int n = snprintf(
        text, sizeof text,
        "POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", BODY + 1);
    memset(text + n, 'x', BODY + 1);
    text[n + BODY + 1] = '\0';
    EXPECT(strstr(converse(dial(w), text, NULL), " 413 "));
    return 0;
}

static int come_when_it_is_full(struct world *w)
{
    static const char ask[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    int inside[FEW];
    for (int i = 0; i < FEW; i++) {
        inside[i] = dial(w);
        EXPECT(strstr(converse(inside[i], ask, "body=0"), "200 OK"));
    }
    int waiting = dial(w);
    EXPECT(waiting >= 0);
    for (int i = 0; i < FEW; i++) {
        close(inside[i]);
    }
    EXPECT(strstr(converse(waiting, ask, "body=0"), "200 OK"));
    return 0;
}

enum { PLACES = 16, SHARE = PLACES / 8, SLOW_MS = 200 };

/* Whether the server closes the connection before it has sent anything. */
static bool is_turned_away(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

/* The client is a user who is not the owner: connections are served up to the share, the next one
 * is refused, and one is accepted again when another has left. */
static int stay_within_the_share(struct world *w)
{
    static const char ask[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    int inside[SHARE];
    for (int i = 0; i < SHARE; i++) {
        inside[i] = dial(w);
        EXPECT(strstr(converse(inside[i], ask, "body=0"), "200 OK"));
    }
    EXPECT(is_turned_away(dial(w)));
    close(inside[0]);
    for (;;) { /* until the server has noticed that one has left */
        int fd = dial(w);
        (void)send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL);
        bool refused = is_turned_away(fd);
        close(fd);
        if (!refused) {
            return 0;
        }
    }
}

static int take_every_place(struct world *w)
{
    static const char ask[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    for (int i = 0; i < PLACES; i++) {
        EXPECT(strstr(converse(dial(w), ask, "body=0"), "200 OK"));
    }
    return 0;
}

/* Sends a byte at a time, as long as the server accepts it: each byte is progress. */
static int send_slowly(int fd, const char *beginning)
{
    EXPECT(send(fd, beginning, strlen(beginning), MSG_NOSIGNAL) == (ssize_t)strlen(beginning));
    struct pollfd end = {.fd = fd, .events = POLLIN};
    while (poll(&end, 1, SLOW_MS / 10) == 0) {
        (void)send(fd, "a", 1, MSG_NOSIGNAL);
    }
    return 0;
}

static int send_a_head_slowly(struct world *w)
{
    return send_slowly(dial(w), "GET /x HTTP/1.1\r\nX-Long: ");
}

static int send_a_body_slowly(struct world *w)
{
    return send_slowly(dial(w), "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n\r\n");
}

static int send_nothing(struct world *w)
{
    return is_turned_away(dial(w)) ? 0 : 1;
}

/* Waits longer than any limit: limits are for what the client sends, not for the answer. */
static int wait_for_an_answer(struct world *w)
{
    int fd = dial(w);
    static const char ask[] = "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n";
    EXPECT(send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) == (ssize_t)sizeof ask - 1);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    EXPECT(poll(&end, 1, 5 * SLOW_MS) == 0);
    return 0;
}

/* The server sends the headers at once, before the first byte of the body. */
static int open_and_leave(struct world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        const char *target = i % 2 ? "/stream" : "/hold";
        char text[128];
        (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", target);
        int fd = dial(w);
        EXPECT(fd >= 0);
        if (i % 2) {
            EXPECT(strstr(converse(fd, text, "\r\n\r\n"), "200 OK"));
        } else {
            EXPECT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        }
    }
    return 0; /* the descriptors close with the process */
}

static int read_flood(struct world *w)
{
    const char *got =
        converse(dial(w), "GET /flood HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", NULL);
    size_t count = 0;
    for (const char *c = strstr(got, "\r\n\r\n"); c && *c; c++) {
        count += *c == 'x';
    }
    EXPECT(count == 1000 * CHUNK);
    return 0;
}

/* ---- tests ---- */

static void requests_are_answered_on_one_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path});
    struct stat info;
    assert_int_equal(stat(w.socket_path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    run_client(&w, ask_twice);
    run_client(&w, ask_for_no_text);
    run_client(&w, ask_for_encoded_slashes);
    run_client(&w, ask_with_many_parameters);
    run_client(&w, say_what_is_no_body);
    run_client(&w, send_too_much);
    world_done(&w);
}

static void who_comes_when_it_is_full_gets_in_when_others_leave(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path, .limits.connections_max = FEW});
    run_client(&w, come_when_it_is_full);
    world_done(&w);
}

static void one_user_gets_a_share_and_the_owner_all(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.limits.connections_max = PLACES,
                                    .limits.owner_uid = geteuid() + 1});
    run_client(&w, stay_within_the_share);
    world_done(&w);
    world_init(&w);
    serve(&w, (struct http_options){.limits.connections_max = PLACES});
    run_client(&w, take_every_place);
    world_done(&w);
}

static void what_a_client_sends_has_a_time_limit(void **state)
{
    (void)state;
    struct world w;
    const struct http_limits limits = {.head_timeout_ms = SLOW_MS, .body_timeout_ms = SLOW_MS};
    for (int tcp = 0; tcp < 2; tcp++) {
        world_init(&w);
        serve(&w,
              (struct http_options){.socket_path = tcp ? NULL : w.socket_path, .limits = limits});
        run_client(&w, send_nothing);
        run_client(&w, send_a_head_slowly);
        run_client(&w, send_a_body_slowly);
        run_client(&w, wait_for_an_answer);
        run_client(&w, ask_twice);
        world_done(&w);
    }
}

static bool all_left(const struct world *w)
{
    return w->gone == CLIENTS && http_server_connections(w->server) == 0;
}

static void clients_that_leave_are_noticed_and_forgotten(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path});
    run_client(&w, open_and_leave);
    run_until(&w, all_left);
    world_done(&w);
}

static void a_flood_waits_for_its_reader(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path});
    run_client(&w, read_flood);
    assert_int_equal(w.written, 1000 * CHUNK);
    world_done(&w);
}

static int hold_one(struct world *w)
{
    EXPECT(*converse(dial(w), "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n", NULL) == '\0');
    return 0;
}

static bool one_is_open(const struct world *w)
{
    return w->open == 1;
}

static void stopping_the_server_ends_what_is_open(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path});
    pid_t child = fork();
    if (child == 0) {
        _exit(hold_one(&w));
    }
    w.child_status = (int)child;
    run_until(&w, one_is_open);
    world_done(&w);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- TLS ---- */

static int tls_open(const struct world *w, const char *cert_pem, gnutls_session_t *ret)
{
    gnutls_certificate_credentials_t trust;
    const gnutls_datum_t pem = {(unsigned char *)cert_pem, (unsigned)strlen(cert_pem)};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)http_server_port(w->server))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    gnutls_certificate_allocate_credentials(&trust);
    EXPECT(gnutls_certificate_set_x509_trust_mem(trust, &pem, GNUTLS_X509_FMT_PEM) == 1);
    gnutls_init(ret, GNUTLS_CLIENT);
    gnutls_set_default_priority(*ret);
    gnutls_credentials_set(*ret, GNUTLS_CRD_CERTIFICATE, trust);
    gnutls_session_set_verify_cert(*ret, "localhost", 0);
    gnutls_transport_set_int(*ret, fd);
    EXPECT(gnutls_handshake(*ret) == 0);
    return 0;
}

/* Sends a request, and reads until `until` has arrived. */
static int tls_say(gnutls_session_t session, const char *path, const char *token, const char *until,
                   char *ret, size_t room)
{
    char text[512];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n",
                     path, token);
    EXPECT(gnutls_record_send(session, text, (size_t)n) == n);
    size_t used = 0;
    for (ret[0] = '\0'; !strstr(ret, until); ret[used] = '\0') {
        ssize_t got = gnutls_record_recv(session, ret + used, room - 1 - used);
        EXPECT(got > 0);
        used += (size_t)got;
    }
    return 0;
}

static int tls_ask(const struct world *w, const char *cert_pem, const char *token,
                   const char *until, char *ret, size_t room)
{
    gnutls_session_t session;
    EXPECT(tls_open(w, cert_pem, &session) == 0);
    return tls_say(session, "/x", token, until, ret, room);
}

/* Returns the result of a handshake that offers only one version. */
static int shake_hands(struct world *w, const char *priority)
{
    gnutls_certificate_credentials_t any;
    gnutls_session_t session;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)http_server_port(w->server))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return 1;
    }
    gnutls_certificate_allocate_credentials(&any);
    gnutls_init(&session, GNUTLS_CLIENT);
    int r = gnutls_priority_set_direct(session, priority, NULL);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, any);
    gnutls_transport_set_int(session, fd);
    r = r < 0 ? 1 : gnutls_handshake(session);
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(any);
    close(fd);
    return r;
}

static int offer_old_versions(struct world *w)
{
    EXPECT(shake_hands(w, "NORMAL:-VERS-ALL:+VERS-TLS1.3") == 0);
    EXPECT(shake_hands(w, "NORMAL:-VERS-ALL:+VERS-TLS1.2") == 0);
    EXPECT(shake_hands(w, "NORMAL:-VERS-ALL:+VERS-TLS1.1") < 0);
    EXPECT(shake_hands(w, "NORMAL:-VERS-ALL:+VERS-TLS1.0") < 0);
    return 0;
}

static int visit_with_and_without_token(struct world *w)
{
    struct http_identity identity;
    EXPECT(http_identity_load(w->folder, &identity, NULL) == 0);
    char token[128];
    char got[4096];
    (void)snprintf(token, sizeof token, "Bearer %s", identity.token);
    EXPECT(tls_ask(w, identity.cert_pem, token, "body=0", got, sizeof got) == 0);
    EXPECT(strstr(got, " 200 "));
    token[sizeof "Bearer "] ^= 1;
    EXPECT(tls_ask(w, identity.cert_pem, token, "go away", got, sizeof got) == 0);
    EXPECT(strstr(got, " 401 "));
    EXPECT(tls_ask(w, identity.cert_pem, "Bearer ", "go away", got, sizeof got) == 0);
    EXPECT(tls_ask(w, identity.cert_pem, "x", "go away", got, sizeof got) == 0);
    return 0;
}

static void tls_asks_for_the_token(void **state)
{
    (void)state;
    struct world w;
    struct http_identity identity;
    world_init(&w);
    assert_int_equal(http_identity_load(w.folder, &identity, &w.err), 0);
    serve(&w, (struct http_options){.key_pem = identity.key_pem,
                                    .cert_pem = identity.cert_pem,
                                    .token = identity.token,
                                    .refused_type = "text/plain",
                                    .refused_body = "go away"});
    run_client(&w, visit_with_and_without_token);
    run_client(&w, offer_old_versions);
    struct http_server *second = NULL;
    const struct http_options same = {.port = http_server_port(w.server)};
    assert_int_equal(http_server_start(&w.loop, &same, answer, &w, &second, &w.err),
                     MUSTER_EUNAVAIL);
    http_identity_done(&identity);
    world_done(&w);
}

/* The certificates of a_certificate_is_exchanged_while_it_serves. */
static struct certificate_pair pair_before, pair_after;

static void make_pair(struct certificate_pair *ret)
{
    static const char *const names[] = {"localhost", NULL};
    const struct certificate_order order = {
        .subject = "test",
        .names = names,
        .authority = true,
        .until_unix_ms = INT64_C(4102444800000), /* 2100 */
    };
    assert_int_equal(certificate_make(&order, ret, NULL), 0);
}

static int visit_before_there_is_one(struct world *w)
{
    EXPECT(shake_hands(w, "NORMAL") < 0);
    return 0;
}

/* An open connection keeps its certificate; the next connection gets the other one. */
static int visit_while_it_changes(struct world *w)
{
    gnutls_session_t before;
    gnutls_session_t after;
    char got[4096];
    EXPECT(tls_open(w, pair_before.cert_pem, &before) == 0);
    EXPECT(tls_say(before, "/renew", "", "body=0", got, sizeof got) == 0);
    EXPECT(tls_open(w, pair_after.cert_pem, &after) == 0);
    EXPECT(tls_say(after, "/x", "", "body=0", got, sizeof got) == 0);
    EXPECT(tls_say(before, "/x", "", "body=0", got, sizeof got) == 0);
    return 0;
}

static void a_certificate_is_exchanged_while_it_serves(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    make_pair(&pair_before);
    make_pair(&pair_after);
    serve(&w, (struct http_options){.tls = true});
    run_client(&w, visit_before_there_is_one);
    assert_int_equal(
        http_server_set_certificate(w.server, pair_before.key_pem, pair_before.cert_pem, &w.err),
        0);
    assert_int_equal(
        http_server_set_certificate(w.server, pair_before.key_pem, pair_after.cert_pem, &w.err),
        MUSTER_ECONFIG);
    assert_int_equal(http_server_set_certificate(w.server, "none", "none", &w.err), MUSTER_ECONFIG);
    w.renewed = &pair_after;
    run_client(&w, visit_while_it_changes);
    world_done(&w);
    certificate_pair_done(&pair_before);
    certificate_pair_done(&pair_after);
}

static int visit_and_leave_http(struct world *w)
{
    int fd = dial(w);
    EXPECT(fd >= 0);
    const char *head = converse(fd,
                                "POST /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                                "Upgrade: echo\r\nContent-Length: 2\r\n\r\n{}",
                                "\r\n\r\n");
    EXPECT(strstr(head, " 101 ") && strstr(head, "Upgrade: echo"));
    EXPECT(strcmp(converse(fd, "hello", NULL), "hello") == 0);
    close(fd);
    fd = dial(w); /* a client that leaves before it is answered */
    static const char request[] = "POST /upgrade HTTP/1.1\r\nHost: x\r\n\r\n";
    EXPECT(send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1);
    close(fd);
    fd = dial(w);
    EXPECT(strstr(converse(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "body=0"), " 200 "));
    return 0;
}

static bool nothing_is_open(const struct world *w)
{
    return w->open == 0;
}

static void a_connection_leaves_http_behind(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.socket_path = w.socket_path});
    run_client(&w, visit_and_leave_http);
    run_until(&w, nothing_is_open);
    world_done(&w);
}

/* The kernel accepts a connection before the server does. */
static bool connects(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    int r = connect(fd, (const struct sockaddr *)&address, sizeof address);
    close(fd);
    return r == 0;
}

static void the_address_is_the_one_that_was_asked_for(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    serve(&w, (struct http_options){.address = "127.0.0.2"});
    assert_true(connects("127.0.0.2", http_server_port(w.server)));
    assert_false(connects("127.0.0.1", http_server_port(w.server)));
    struct http_server *second = NULL;
    const struct http_options bad = {.address = "nowhere"};
    assert_int_equal(http_server_start(&w.loop, &bad, answer, &w, &second, &w.err), MUSTER_EINVAL);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_address_is_the_one_that_was_asked_for),
        cmocka_unit_test(requests_are_answered_on_one_connection),
        cmocka_unit_test(who_comes_when_it_is_full_gets_in_when_others_leave),
        cmocka_unit_test(one_user_gets_a_share_and_the_owner_all),
        cmocka_unit_test(what_a_client_sends_has_a_time_limit),
        cmocka_unit_test(clients_that_leave_are_noticed_and_forgotten),
        cmocka_unit_test(a_flood_waits_for_its_reader),
        cmocka_unit_test(stopping_the_server_ends_what_is_open),
        cmocka_unit_test(tls_asks_for_the_token),
        cmocka_unit_test(a_certificate_is_exchanged_while_it_serves),
        cmocka_unit_test(a_connection_leaves_http_behind),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
