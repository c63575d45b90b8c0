/* See endpoints.h. */
#include "operator/endpoints.h"

#include "base/err.h"
#include "base/log.h"
#include "operator/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_BYTES_MAX = 8 << 20, TROUBLE_BYTES = 1024 };

struct endpoints {
    struct endpoints_options options;
    struct http_server *metrics, *health;
};

static void say(struct http_reply *reply, int status, const char *text)
{
    http_reply_send(reply, status, "text/plain; charset=utf-8", text, strlen(text));
}

static bool is_read(const struct http_request *request)
{
    return strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

static void serve_metrics(void *arg, const struct http_request *request, struct http_reply *reply)
{
    struct endpoints *e = arg;
    if (strcmp(request->path, "/metrics") != 0 || !is_read(request)) {
        say(reply, 404, "there is GET /metrics\n");
        return;
    }
    struct buf out;
    buf_init(&out, METRICS_BYTES_MAX);
    e->options.print_metrics(e->options.arg, &out);
    if (buf_failed(&out)) {
        say(reply, 500, "no memory\n");
    } else {
        http_reply_send(reply, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&out),
                        out.used);
    }
    buf_done(&out);
}

static void say_ready(const struct endpoints *e, struct http_reply *reply)
{
    const char *trouble = e->options.trouble(e->options.arg);
    char text[TROUBLE_BYTES];
    (void)snprintf(text, sizeof text, "%s\n", trouble ? trouble : "ok");
    say(reply, trouble ? 503 : 200, text);
}

static void serve_health(void *arg, const struct http_request *request, struct http_reply *reply)
{
    struct endpoints *e = arg;
    if (!is_read(request)) {
        say(reply, 404, "there are GET /healthz and GET /readyz\n");
    } else if (strcmp(request->path, "/healthz") == 0) {
        say(reply, 200, "ok\n");
    } else if (strcmp(request->path, "/readyz") != 0) {
        say(reply, 404, "there are GET /healthz and GET /readyz\n");
    } else {
        say_ready(e, reply);
    }
}

static int open_one(uv_loop_t *loop, struct endpoints *e, const char *flag, const char *address,
                    http_handler handler, struct http_server **ret, struct muster_err *err)
{
    char host[OPERATOR_HOST_BYTES];
    int port = 0;
    int r = operator_address_read(flag, address, host, &port, err);
    if (r < 0 || !*host) {
        return r;
    }
    const struct http_options options = {.address = host, .port = port};
    r = http_server_start(loop, &options, handler, e, ret, err);
    if (r == 0) {
        log_event(LOG_INFO, "operator.listen", "%s: %s:%d", flag, host, http_server_port(*ret));
    }
    return r < 0 ? muster_wrap(err, "--%s", flag) : 0;
}

int endpoints_open(uv_loop_t *loop, const struct endpoints_options *options, struct endpoints **ret,
                   struct muster_err *err)
{
    struct endpoints *e = calloc(1, sizeof *e);
    if (!e) {
        return err_no_memory(err);
    }
    e->options = *options;
    int r = open_one(loop, e, "metrics-bind-address", options->metrics_address, serve_metrics,
                     &e->metrics, err);
    r = r < 0 ? r
              : open_one(loop, e, "health-probe-bind-address", options->health_address,
                         serve_health, &e->health, err);
    if (r < 0) {
        endpoints_close(e);
        return r;
    }
    *ret = e;
    return 0;
}

void endpoints_close(struct endpoints *e)
{
    if (e) {
        http_server_stop(e->metrics);
        http_server_stop(e->health);
        free(e);
    }
}
