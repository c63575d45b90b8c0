/* See routes.h. */
#include "daemon/route/routes.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "daemon/machine/admission.h"
#include "daemon/object/elastic.h"
#include "daemon/object/jobs.h"
#include "daemon/route/end_all.h"
#include "daemon/route/environment.h"
#include "daemon/route/exec.h"
#include "daemon/route/history.h"
#include "daemon/route/pod.h"
#include "daemon/stream/logs.h"
#include "daemon/stream/streams.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { SPACE_BYTES_MIN = 8 << 20, REMOVALS_MAX = 512 };

struct routes {
    struct routes_options options;
    const char *server;
    struct muster_err server_error; /* why the API is not served to kubectl */
    char *keep_path;                /* if this file exists, the controller stays */
    bool keep;
    enum routes_leaving leaving;
    struct streams *streams;
    struct disk *removals;
    void (*asked_to_leave)(void *data); /* or NULL */
    void *asked_data;
};

/* Handles one route of ours; `rest` is what follows the route's prefix. */
typedef void (*route_fn)(struct routes *routes, const char *rest,
                         const struct http_request *request, struct http_reply *reply);

static int count_live_jobs(struct routes *routes, size_t *ret, struct muster_err *err)
{
    struct store_page page = {0};
    const struct store_query query = {.resource = "pytorchjobs"};
    int r = store_list(routes->options.store, &query, &page, err);
    size_t i, live = 0;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        live += !jobs_is_finished(job);
    }
    store_page_done(&page);
    *ret = live;
    return r;
}

static void get_status(struct routes *routes, const char *rest, const struct http_request *request,
                       struct http_reply *reply)
{
    (void)rest;
    (void)request;
    size_t live = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *program = realpath("/proc/self/exe", NULL);
    int r = count_live_jobs(routes, &live, &err);
    api_send_json(reply, 200,
                  json_pack("{s:i, s:s, s:s, s:o*, s:s*, s:b, s:s, s:s, s:s, s:I}", "pid",
                            (int)getpid(), "version", MUSTER_VERSION, "home",
                            routes->options.home->path, "jobs",
                            r < 0 ? NULL : json_integer((json_int_t)live), "storeError",
                            r < 0 ? err.text : NULL, "keep", (int)routes->keep, "server",
                            routes->server ? routes->server : "", "serverError",
                            routes->server_error.text, "loadedFrom", program ? program : "", "gpus",
                            (json_int_t)routes->options.gpus->count));
}

static int parse_body(const struct http_request *request, json_t **ret, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = doc_parse(request->body, request->body_bytes, ret, &err);
    if (r < 0) {
        api_send_error(reply, &err);
    }
    return r;
}

static void put_keep(struct routes *routes, const char *rest, const struct http_request *request,
                     struct http_reply *reply)
{
    muster_auto(doc) json_t *body = NULL;
    if (parse_body(request, &body, reply) < 0) {
        return;
    }
    struct muster_err err = MUSTER_ERR_INIT;
    routes->keep = doc_bool(body, "keep", true);
    if (!routes->keep) {
        (void)unlink(routes->keep_path);
    } else if (file_put(routes->keep_path, "", 0, 0600, &err) < 0) {
        api_send_error(reply, &err);
        return;
    }
    get_status(routes, rest, request, reply);
}

static void post_shutdown(struct routes *routes, const char *rest,
                          const struct http_request *request, struct http_reply *reply)
{
    muster_auto(doc) json_t *body = NULL;
    if (parse_body(request, &body, reply) < 0) {
        return;
    }
    bool end = strcmp(doc_text(body, "jobs", "end"), "keep") != 0;
    struct muster_err err = MUSTER_ERR_INIT;
    if (end && end_all(routes->options.store, &err) < 0) {
        api_send_error(reply, &err); /* it stays: jobs that are not ended would hold it */
        return;
    }
    (void)unlink(routes->keep_path);
    routes->keep = false;
    routes->leaving = end ? ROUTES_LEAVE_WHEN_DONE : ROUTES_LEAVE_NOW;
    if (routes->asked_to_leave) {
        routes->asked_to_leave(routes->asked_data);
    }
    get_status(routes, rest, request, reply);
}

static void put_environment(struct routes *routes, const char *id,
                            const struct http_request *request, struct http_reply *reply)
{
    environment_routes_put(routes->options.environments, id, request, reply);
}

static void delete_environment(struct routes *routes, const char *id,
                               const struct http_request *request, struct http_reply *reply)
{
    (void)request;
    environments_withdraw(routes->options.environments, id);
    api_send_json(reply, 200, json_object());
}

static void get_pods(struct routes *routes, const char *rest, const struct http_request *request,
                     struct http_reply *reply)
{
    const struct pod_routes pods = {routes->options.loop, routes->options.home,
                                    routes->options.store, routes->options.agent};
    pod_routes_handle(&pods, rest, request, reply);
}

static void post_exec(struct routes *routes, const char *rest, const struct http_request *request,
                      struct http_reply *reply)
{
    exec_routes_handle(routes->options.home, routes->options.store, rest, request, reply);
}

static void on_history(struct routes *routes, const char *rest, const struct http_request *request,
                       struct http_reply *reply)
{
    const struct history_routes history = {
        routes->options.loop,
        {routes->options.home, routes->options.store, routes->options.sweep},
        routes->removals};
    muster_auto(free) char *path = NULL;
    /* The route without "/" has no rest; for the other route the "/" was cut off. */
    if (asprintf(&path, "%s%s", *rest ? "/" : "", rest) < 0) {
        struct muster_err err = MUSTER_ERR_INIT;
        err_no_memory(&err);
        path = NULL;
        api_send_error(reply, &err);
        return;
    }
    history_routes_handle(&history, path, request, reply);
}

static const struct route {
    const char *method;
    const char *prefix;
    route_fn handle;
} routes_table[] = {
    {"GET", "status", get_status},
    {"PUT", "keep", put_keep},
    {"POST", "shutdown", post_shutdown},
    {"GET", "namespaces/", get_pods},
    {"POST", "namespaces/", post_exec},
    {"PUT", "environments/", put_environment},
    {"DELETE", "environments/", delete_environment},
    {"GET", "history", on_history},
    {"DELETE", "history", on_history},
    {"GET", "history/", on_history},
};

/* Whether the route matches: "status" as a whole, "namespaces/" as a prefix. */
static bool matches(const struct route *route, const char *rest)
{
    size_t length = strlen(route->prefix);
    bool open = route->prefix[length - 1] == '/';
    return strncmp(rest, route->prefix, length) == 0 && (open || rest[length] == '\0');
}

static void on_muster(void *arg, const char *rest, const struct http_request *request,
                      struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_fail(&err, MUSTER_ENOENT, "there is no /muster/v1/%s", rest);
    for (size_t i = 0; i < sizeof routes_table / sizeof routes_table[0]; i++) {
        const struct route *route = &routes_table[i];
        if (!matches(route, rest)) {
            continue;
        }
        if (strcmp(route->method, request->method) == 0) {
            route->handle(arg, rest + strlen(route->prefix), request, reply);
            return;
        }
        muster_fail(&err, MUSTER_EMETHOD, "/muster/v1/%s takes %s", rest, route->method);
    }
    api_send_error(reply, &err);
}

static void on_lease_opened(void *arg, const char *id)
{
    struct routes *routes = arg;
    leases_opened(routes->options.leases, id);
}

static void on_lease_closed(void *arg, const char *id)
{
    struct routes *routes = arg;
    leases_closed(routes->options.leases, id);
}

static void on_pod_log(void *arg, const struct api_log_query *query, const json_t *pod,
                       struct http_reply *reply)
{
    struct routes *routes = arg;
    logs_stream(routes->options.loop, routes->options.home, query, pod, reply);
}

static void on_pod_stream(void *arg, const char *what, const json_t *pod,
                          const struct http_request *request, struct http_reply *reply)
{
    struct routes *routes = arg;
    streams_handle(routes->streams, what, pod, request, reply);
}

/* Checks that the disk has room: on an almost full disk an object could still be created, but its
 * later states could not be written. */
static int check_space(const char *home, struct muster_err *err)
{
    struct statvfs disk;
    if (statvfs(home, &disk) < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot look at %s: %s", home, strerror(errno));
    }
    uint64_t left_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return left_bytes >= SPACE_BYTES_MIN
               ? 0
               : muster_fail(err, MUSTER_ECREATE,
                             "the disk of %s is full (%llu KiB left): free some space, or set "
                             "MUSTER_HOME to a folder elsewhere",
                             home, (unsigned long long)left_bytes >> 10);
}

static void on_add_live(void *arg, const char *resource, json_t *object)
{
    struct routes *routes = arg;
    if (strcmp(resource, "pytorchjobs") == 0) {
        elastic_add(routes->options.home, object);
    }
}

static int on_admit(void *arg, const char *resource, const json_t *object,
                    struct job_problems *problems, struct muster_err *err)
{
    struct routes *routes = arg;
    if (routes->leaving != ROUTES_STAY && strcmp(resource, "pytorchjobs") == 0) {
        return muster_fail(err, MUSTER_EAGAIN, "the controller is shutting down; try again");
    }
    int r = check_space(routes->options.home->path, err);
    if (r < 0) {
        return r;
    }
    const struct admission admission = {routes->options.gpus, routes->options.leases,
                                        routes->options.home};
    admission_check(&admission, resource, object, problems);
    return 0;
}

int routes_new(const struct routes_options *options, struct routes **ret,
               struct api_hooks *ret_hooks, struct muster_err *err)
{
    struct routes *routes = calloc(1, sizeof *routes);
    char *keep_path = home_file(options->home, "keep");
    struct streams *streams = NULL;
    struct disk *removals = NULL;
    int r = routes && keep_path ? disk_new(options->loop, REMOVALS_MAX, &removals, err)
                                : err_no_memory(err);
    r = r < 0 ? r : streams_new(options->loop, options->home, options->store, &streams, err);
    if (r < 0) {
        disk_free(removals);
        free(routes);
        free(keep_path);
        return r;
    }
    routes->streams = streams;
    routes->removals = removals;
    routes->options = *options;
    routes->keep_path = keep_path;
    routes->keep = file_exists(keep_path);
    *ret = routes;
    *ret_hooks = (struct api_hooks){.arg = routes,
                                    .pod_log = on_pod_log,
                                    .pod_stream = on_pod_stream,
                                    .lease_opened = on_lease_opened,
                                    .lease_closed = on_lease_closed,
                                    .muster = on_muster,
                                    .admit = on_admit,
                                    .add_live = on_add_live};
    return 0;
}

struct routes *routes_free(struct routes *routes)
{
    if (routes) {
        streams_close(routes->streams);
        disk_free(routes->removals);
        free(routes->keep_path);
        free(routes);
    }
    return NULL;
}

void routes_serve_at(struct routes *routes, const char *server, const struct muster_err *why_not)
{
    assert(server || why_not->code < 0);
    routes->server = server;
    routes->server_error = *why_not;
}

bool routes_keep(const struct routes *routes)
{
    return routes->keep;
}

enum routes_leaving routes_leaving(const struct routes *routes)
{
    return routes->leaving;
}

void routes_on_shutdown(struct routes *routes, void (*asked)(void *data), void *data)
{
    routes->asked_to_leave = asked;
    routes->asked_data = data;
}
