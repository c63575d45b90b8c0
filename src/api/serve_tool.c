/* A server without a controller, for tests that drive the API from outside (kubectl, curl):
 *
 *     api_serve HOME        serves HOME/api.sock and TLS until SIGTERM or end of standard input;
 * prints one line when ready
 *
 * Logs are made up: "line 1" … "line 3", then, when followed, one more each 50 ms.
 * Layer: tests only.
 */
#include "api/api.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct follow {
    uv_timer_t timer; /* first */
    struct http_reply *reply;
    int line;
};

static void free_follow(uv_handle_t *handle)
{
    free(handle);
}

static void stop_follow(void *arg)
{
    struct follow *follow = arg;
    uv_timer_stop(&follow->timer);
    uv_close((uv_handle_t *)&follow->timer, free_follow);
}

static void write_line(uv_timer_t *timer)
{
    struct follow *follow = (struct follow *)timer;
    char text[32];
    int n = snprintf(text, sizeof text, "line %d\n", ++follow->line);
    (void)http_reply_write(follow->reply, text, (size_t)n);
    if (follow->line == 6) {
        http_reply_end(follow->reply);
        stop_follow(follow);
    }
}

static void pod_log(void *loop, const struct api_log_query *query, const json_t *pod,
                    struct http_reply *reply)
{
    (void)pod;
    static const char text[] = "line 1\nline 2\nline 3\n";
    if (!query->follow) {
        http_reply_send(reply, 200, "text/plain", text, sizeof text - 1);
        return;
    }
    struct follow *follow = calloc(1, sizeof *follow);
    uv_timer_init(loop, &follow->timer);
    follow->reply = reply;
    follow->line = 3;
    reply->on_gone = stop_follow;
    reply->arg = follow;
    (void)http_reply_start(reply, 200, "text/plain");
    (void)http_reply_write(reply, text, sizeof text - 1);
    uv_timer_start(&follow->timer, write_line, 50, 50);
}

static struct api *served;

static void count_lives(void *arg, const char *rest, const struct http_request *request,
                        struct http_reply *reply)
{
    (void)arg;
    (void)rest;
    (void)request;
    api_send_json(reply, 200,
                  json_pack("{s:i, s:i}", "watches", (int)api_watch_count(served), "leases",
                            (int)api_lease_count(served)));
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

static int fail(const struct muster_err *err)
{
    fprintf(stderr, "api_serve: %s\n", err->text);
    return muster_code_exit(err->code);
}

int main(int argc, char **argv)
{
    struct muster_err err = {0};
    struct muster_err tls_err = {0};
    struct store *store = NULL;
    struct api_endpoint *endpoint = NULL;
    uv_loop_t *loop = uv_default_loop();
    if (argc != 2) {
        fprintf(stderr, "usage: api_serve HOME\n");
        return 64;
    }
    muster_auto(free) char *db = file_join(argv[1], "store.db");
    muster_auto(free) char *socket_path = file_join(argv[1], "api.sock");
    const struct store_options options = {.grace_s = api_grace_s, .fill = api_fill};
    const struct api_hooks hooks = {.arg = loop, .pod_log = pod_log, .muster = count_lives};
    if (store_open(db, &options, &store, &err) < 0 ||
        api_new(loop, store, &hooks, &served, &err) < 0 ||
        api_endpoint_open(loop, served, argv[1], socket_path, &endpoint, &tls_err, &err) < 0) {
        return fail(&err);
    }
    uv_signal_t signal;
    uv_signal_init(loop, &signal);
    uv_signal_start(&signal, on_signal, SIGTERM);
    const char *server = api_endpoint_server(endpoint);
    printf("ready %s\n", server ? server : tls_err.text);
    fflush(stdout);
    uv_run(loop, UV_RUN_DEFAULT);
    api_free(served);
    api_endpoint_close(endpoint);
    uv_close((uv_handle_t *)&signal, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    store_close(store);
    return uv_loop_close(loop) == 0 ? 0 : 70;
}
