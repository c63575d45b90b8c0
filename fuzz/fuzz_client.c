/* The client of a hostile controller: a thread serves the input, part by part, as the answers to a
 * get, a table, a list, its watch and a log.
 *
 * Parts are separated by a record separator (0x1e). A part's first byte chooses the status; 'r'
 * sends the rest as it is, without a header. */
#include "base/cleanup.h"
#include "base/file.h"
#include "invariant.h"
#include "kube/kube.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    REQUEST_BYTES = 8192,
    INPUT_BYTES_MAX = 1 << 20,
    TURNS_MAX = 20,
    TURN_MS = 5,
    SEPARATOR = 0x1e
};

/* On a busy machine an answer may still be under way when the next input comes: its bytes are then
 * those of either input. */
static struct {
    int listener;
    pthread_mutex_t mutex; /* guards the next two */
    const uint8_t *at;
    const uint8_t *end;
    atomic_int answered;
    uint8_t input[INPUT_BYTES_MAX];
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uv_loop_t loop;
static struct kube *kube;

static void serve_next(const uint8_t *data, size_t size)
{
    pthread_mutex_lock(&server.mutex);
    memcpy(server.input, data, size);
    server.at = server.input;
    server.end = server.input + size;
    pthread_mutex_unlock(&server.mutex);
}

/* Takes the next part. The last part is given again and again, so that every request is answered.
 */
static size_t take_part(const uint8_t **ret)
{
    pthread_mutex_lock(&server.mutex);
    *ret = server.at;
    size_t length = (size_t)(server.end - server.at);
    const uint8_t *stop = memchr(server.at, SEPARATOR, length);
    if (stop) {
        length = (size_t)(stop - server.at);
        server.at = stop + 1;
    }
    pthread_mutex_unlock(&server.mutex);
    return length;
}

static void send_all(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;
    ssize_t sent = 1;
    while (count > 0 && (sent = send(fd, at, count, MSG_NOSIGNAL)) > 0) {
        at += sent;
        count -= (size_t)sent;
    }
}

/* A header line that goes on in the next one: with two answers on one handle libcurl before 8.0
 * reads freed memory there (Curl_headers_push). That bug is not ours to find. */
static bool folds_headers(const uint8_t *part, size_t length)
{
    for (size_t i = 0; i + 1 < length && part[i] != '{'; i++) {
        if (part[i] == '\n' && (part[i + 1] == ' ' || part[i + 1] == '\t')) {
            return true;
        }
    }
    return false;
}

static void answer(int fd)
{
    static const char *const statuses[] = {"200 OK", "404 Not Found", "409 Conflict", "410 Gone",
                                           "500 Internal Server Error"};
    const uint8_t *part;
    size_t length = take_part(&part);
    if (length > 0 && *part == 'r') {
        send_all(fd, part + 1, folds_headers(part, length) ? 0 : length - 1);
        return;
    }
    size_t which = length > 0 ? *part % (sizeof statuses / sizeof statuses[0]) : 0;
    char header[128];
    int n = snprintf(header, sizeof header, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n",
                     statuses[which]);
    send_all(fd, header, (size_t)n);
    send_all(fd, part + 1, length > 0 ? length - 1 : 0);
}

static void *serve(void *unused)
{
    (void)unused;
    for (int fd; (fd = accept(server.listener, NULL, NULL)) >= 0; close(fd)) {
        char request[REQUEST_BYTES];
        if (read(fd, request, sizeof request) >
            0) { /* a client that only looks whether the server exists sends nothing */
            answer(fd);
            atomic_fetch_add(&server.answered, 1);
            (void)shutdown(fd, SHUT_WR);
        }
    }
    return NULL;
}

static char home[] = "/tmp/muster-fuzz-client-XXXXXX";

static void remove_home(void)
{
    (void)file_remove(home, NULL);
}

static void start(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_t thread;
    if (!mkdtemp(home)) {
        abort();
    }
    atexit(remove_home);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/api.sock", home);
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = bind(server.listener, (struct sockaddr *)&address, sizeof address);
    r = r < 0 ? r : listen(server.listener, 64);
    invariant(r == 0, "the socket listens", "");
    (void)setenv("MUSTER_HOME", home, 1);
    uv_loop_init(&loop);
    /* Requests before the first input need an answer, too. */
    serve_next((const uint8_t *)"", 0);
    r = pthread_create(&thread, NULL, serve, NULL);
    r = r != 0 ? -1 : kube_open(&loop, KUBE_RUNNING, &kube, &err);
    invariant(r == 0, "the client finds its server", err.text);
}

static void on_changed(void *context, enum kube_change change, const json_t *object)
{
    (void)change;
    invariant(json_is_object(object), "what changed is an object", "");
    ++*(int *)context;
}

static void on_data(void *context, const char *bytes, size_t count)
{
    (void)bytes;
    (void)count;
    invariant(*(int *)context == 0, "no data after the end", "");
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    invariant(code == 0 || *err->text, "an end says why", "");
    ++*(int *)context;
}

/* Runs the loop until the server has answered `answers` requests and no callback is left. */
static void turn(int answers)
{
    for (int i = 0; i < TURNS_MAX && atomic_load(&server.answered) < answers; i++) {
        struct pollfd ready = {uv_backend_fd(&loop), POLLIN, 0};
        (void)poll(&ready, 1, TURN_MS);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 3; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

static void ask(const struct kube_ref *ref, bool table)
{
    json_t *answer = NULL;
    const struct kube_query query = {.table = table};
    struct muster_err err = MUSTER_ERR_INIT;
    int r =
        table ? kube_list(kube, ref, &query, &answer, &err) : kube_get(kube, ref, &answer, &err);
    invariant(r == 0 ? answer != NULL : *err.text != '\0', "an answer or a sentence", err.text);
    (void)kube_status(kube);
    json_decref(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    if (!started) {
        start();
        started = true;
    }
    serve_next(data, size);
    const struct kube_ref pods = {.resource = kube_resource_find("pods"), .namespace = "default"};
    struct kube_ref pod = pods;
    pod.name = "a";
    ask(&pod, false);
    ask(&pods, true);

    int changes = 0, ends = 0;
    struct kube_watch *watch = NULL;
    const struct kube_watch_events watched = {on_changed, &changes};
    struct kube_query table = {.table = size % 2 != 0};
    if (kube_watch_start(kube, &pods, &table, &watched, &watch, NULL) == 0) {
        turn(atomic_load(&server.answered) + 1);
        kube_watch_stop(watch);
    }
    pod.subresource = "log";
    struct kube_stream *stream = NULL;
    const struct kube_stream_events events = {on_data, on_end, &ends};
    if (kube_stream_open(kube, &pod, &(struct kube_query){0}, &events, &stream, NULL) == 0) {
        turn(atomic_load(&server.answered) + 1);
        if (ends == 0) {
            kube_stream_close(stream);
        }
    }
    turn(0);
    return 0;
}
