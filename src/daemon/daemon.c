/* The controller program: takes the lock, opens the store, wires the parts together, and leaves
 * when nobody needs it.
 *
 * Layer: program. Thread: one, the loop's. What it wires:
 *     endpoint ─ api ─ store ─┬─ controller (what an operator decides)
 *                             ├─ agent      (runs pods)
 *                             ├─ leases     (jobs that live as long as a `muster run`)
 *                             ├─ sweep      (folders of deleted jobs, and the history)
 *                             └─ environments (of the submitters' shells)
 */
#include "daemon/daemon.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/system/soft_limits.h"
#include "daemon/agent/agent.h"
#include "daemon/boot.h"
#include "daemon/controller.h"
#include "daemon/history/sweep.h"
#include "daemon/machine/environments.h"
#include "daemon/machine/node.h"
#include "daemon/object/leases.h"
#include "daemon/own_log.h"
#include "daemon/route/routes.h"
#include "deploy/definition.h"
#include "deploy/kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

enum {
    POLL_MS = 500,         /* how often it checks whether it is still needed */
    SHUTDOWN_POLL_MS = 20, /* how often it checks, while it leaves, whether all has ended */
    IDLE_MS_MAX = 3000,    /* how long it runs without clients and jobs */
};

struct daemon {
    uv_loop_t loop;
    struct home home;
    int lock_fd;
    struct store *store;
    struct gpus gpus;
    char node[NODE_NAME_BYTES];
    struct controller *controller;
    struct agent *agent;
    struct leases *leases;
    struct sweep *sweep;
    struct environments *environments;
    struct api *api;
    struct api_endpoint *endpoint;
    struct routes *routes;
    uv_timer_t look;
    uv_signal_t on_term;
    uv_signal_t on_int;
    int64_t idle_since_ms; /* 0: there are clients or jobs */
};

/* Takes the lock. If another controller has it, this is not an error: the command that started this
 * program needs only a running controller. */
static int take_lock(struct daemon *d, bool *ret_taken, struct muster_err *err)
{
    muster_auto(free) char *path = home_file(&d->home, "lock");
    d->lock_fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (d->lock_fd < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", path ? path : "the lock",
                           strerror(errno));
    }
    *ret_taken = flock(d->lock_fd, LOCK_EX | LOCK_NB) == 0;
    return 0;
}

static void log_trouble(const struct muster_err *trouble)
{
    log_event(LOG_ERROR, "store.trouble", "%s", trouble->text);
}

static int open_store(struct daemon *d, struct muster_err *err)
{
    muster_auto(free) char *path = home_file(&d->home, "store.db");
    const struct store_options options = {
        .grace_s = api_grace_s, .fill = api_fill, .on_trouble = log_trouble};
    return path ? store_open(path, &options, &d->store, err) : err_no_memory(err);
}

static int open_parts(struct daemon *d, struct muster_err *err)
{
    gpus_discover(&d->gpus, "", getenv("MUSTER_GPUS"));
    node_name(d->node);
    const struct agent_options agent = {&d->loop, d->store, &d->home, &d->gpus, d->node};
    int r = boot_check(&d->home, d->store, err);
    r = r < 0 ? r : node_register(d->store, &d->gpus, err);
    r = r < 0 ? r : leases_new(&d->loop, d->store, &d->leases, err);
    r = r < 0 ? r : sweep_new(&d->loop, d->store, &d->home, d->leases, &d->sweep, err);
    r = r < 0 ? r : environments_new(&d->loop, d->store, &d->home, &d->environments, err);
    r = r < 0 ? r : agent_new(&agent, &d->agent, err);
    return r < 0 ? r : controller_new(&d->loop, d->store, &d->controller, err);
}

static int open_api(struct daemon *d, struct muster_err *err)
{
    const struct routes_options options = {.loop = &d->loop,
                                           .home = &d->home,
                                           .store = d->store,
                                           .leases = d->leases,
                                           .gpus = &d->gpus,
                                           .node_name = d->node,
                                           .agent = d->agent,
                                           .sweep = d->sweep,
                                           .environments = d->environments};
    struct muster_err tls_err = MUSTER_ERR_INIT;
    struct api_hooks hooks;
    int r = routes_new(&options, &d->routes, &hooks, err);
    hooks.definition = definition_new;
    hooks.schema = kinds_schema;
    r = r < 0 ? r : api_new(&d->loop, d->store, &hooks, &d->api, err);
    r = r < 0 ? r
              : api_endpoint_open(&d->loop, d->api, d->home.path, d->home.socket, &d->endpoint,
                                  &tls_err, err);
    if (r == 0 && tls_err.code) {
        log_event(LOG_WARN, "api.tls", "%s", tls_err.text);
    }
    if (r == 0) {
        routes_serve_at(d->routes, api_endpoint_server(d->endpoint), &tls_err);
    }
    return r;
}

static bool is_needed(const struct daemon *d)
{
    return routes_keep(d->routes) || controller_busy(d->controller) ||
           agent_live_pods(d->agent) > 0 || api_endpoint_connections(d->endpoint) > 0;
}

static bool may_leave(struct daemon *d)
{
    switch (routes_leaving(d->routes)) {
    case ROUTES_STAY: break;
    case ROUTES_LEAVE_NOW: return true;
    case ROUTES_LEAVE_WHEN_DONE:
        return controller_live_jobs(d->controller) == 0 && agent_live_pods(d->agent) == 0;
    }
    int64_t now_ms = (int64_t)uv_now(&d->loop);
    if (is_needed(d)) {
        d->idle_since_ms = 0;
    } else if (d->idle_since_ms == 0) {
        d->idle_since_ms = now_ms;
    }
    return d->idle_since_ms && now_ms - d->idle_since_ms >= IDLE_MS_MAX;
}

static void on_look(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    own_log_bound(&d->home);
    sweep_look(d->sweep);
    if (may_leave(d)) {
        log_event(LOG_INFO, "daemon.leave", "no clients and no jobs are left");
        uv_stop(&d->loop);
    }
}

static void on_shutdown(void *data)
{
    struct daemon *d = data;
    uv_timer_start(&d->look, on_look, SHUTDOWN_POLL_MS, SHUTDOWN_POLL_MS);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;
    log_event(LOG_INFO, "daemon.signal", "signal %d: leaving, jobs go on", number);
    uv_stop(&d->loop);
}

static void watch_signals(struct daemon *d)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    d->look.data = d->on_term.data = d->on_int.data = d;
    uv_timer_init(&d->loop, &d->look);
    uv_signal_init(&d->loop, &d->on_term);
    uv_signal_init(&d->loop, &d->on_int);
    uv_timer_start(&d->look, on_look, POLL_MS, POLL_MS);
    uv_signal_start(&d->on_term, on_signal, SIGTERM);
    uv_signal_start(&d->on_int, on_signal, SIGINT);
}

/* Closes from the outside to the inside: first requests, then the parts that act on them, then the
 * store. */
static void close_parts(struct daemon *d)
{
    api_endpoint_close(d->endpoint);
    api_free(d->api);
    routes_free(d->routes);
    controller_free(d->controller);
    agent_free(d->agent);
    environments_free(d->environments);
    sweep_free(d->sweep);
    leases_free(d->leases);
    uv_close((uv_handle_t *)&d->look, NULL);
    uv_close((uv_handle_t *)&d->on_term, NULL);
    uv_close((uv_handle_t *)&d->on_int, NULL);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    store_close(d->store);
    uv_loop_close(&d->loop);
}

static int serve(struct daemon *d, struct muster_err *err)
{
    int r = uv_loop_init(&d->loop);
    if (r < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start an event loop: %s", uv_strerror(r));
    }
    watch_signals(d);
    r = open_store(d, err);
    r = r < 0 ? r : open_parts(d, err);
    r = r < 0 ? r : open_api(d, err);
    if (r == 0) {
        routes_on_shutdown(d->routes, on_shutdown, d);
        log_event(LOG_INFO, "daemon.start", "serving %s, pid %d", d->home.path, (int)getpid());
        uv_run(&d->loop, UV_RUN_DEFAULT);
    }
    close_parts(d);
    return r;
}

static int run(struct daemon *d, struct muster_err *err)
{
    bool taken = false;
    int r = home_open(&d->home, err);
    r = r < 0 ? r : take_lock(d, &taken, err);
    if (r == 0 && taken) {
        own_log_bound(&d->home);
        r = serve(d, err);
    }
    return r;
}

int daemon_main(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "muster: daemon takes no argument \"%s\"; use muster up\n", argv[1]);
        return muster_code_exit(MUSTER_EINVAL);
    }
    soft_limits_raise();
    const char *debug = getenv("MUSTER_DEBUG");
    log_to(STDERR_FILENO, debug && *debug ? LOG_DEBUG : LOG_INFO);
    struct daemon d = {.lock_fd = -1};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = soft_limits_check(&err);
    r = r < 0 ? r : run(&d, &err);
    if (r < 0) {
        fprintf(stderr, "muster: %s\n", err.text);
    }
    if (d.lock_fd >= 0) {
        close(d.lock_fd);
    }
    home_done(&d.home);
    return r < 0 ? muster_code_exit(r) : 0;
}
