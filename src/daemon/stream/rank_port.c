/* See rank_port.h. The rank's monitor gives unconnected sockets of its network (handover.h); what
 * is connected is the first whose loopback address answers: IPv4's, then IPv6's.
 *
 * A descriptor is closed after its watch, not before: libuv would take another one of the same
 * number out of its set. */
#include "daemon/stream/rank_port.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "control/objects.h"
#include "daemon/machine/placement.h"
#include "daemon/object/jobs.h"
#include "daemon/stream/supervisor_socket.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DIAL_MS = 10000, WATCHES_MAX = 1 + PASSING_FDS_MAX };

struct rank_port {
    struct rank_port_hooks hooks;
    int port;
    int asked_fd; /* receives the monitor's answer */
    int fds[PASSING_FDS_MAX];
    size_t count, next;
    int problem;                  /* errno of the first descriptor that failed */
    uv_poll_t polls[WATCHES_MAX]; /* one for each descriptor, in the same order */
    size_t watched;
    uv_timer_t limit;
    size_t open_handles;
};

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct rank_port *dial = handle->data;
    if (--dial->open_handles == 0) {
        free(dial);
    }
}

void rank_port_cancel(struct rank_port *dial)
{
    if (!dial) {
        return;
    }
    for (size_t i = 0; i < dial->watched; i++) {
        uv_close((uv_handle_t *)&dial->polls[i], on_closed);
    }
    uv_close((uv_handle_t *)&dial->limit, on_closed);
    passing_close(&dial->asked_fd, 1);
    passing_close(dial->fds, dial->count);
}

static void finish(struct rank_port *dial, int fd, const char *why)
{
    const struct rank_port_hooks hooks = dial->hooks;
    rank_port_cancel(dial);
    hooks.on_done(hooks.arg, fd, why);
}

static void fail(struct rank_port *dial, int problem)
{
    char why[128];
    (void)snprintf(why, sizeof why, "connect to port %d of the rank: %s", dial->port,
                   strerror(problem));
    finish(dial, -1, why);
}

static void on_limit(uv_timer_t *timer)
{
    fail(timer->data, ETIMEDOUT);
}

/* ---- connecting ---- */

static int watch(struct rank_port *dial, uv_loop_t *loop, int fd, int events, uv_poll_cb call)
{
    uv_poll_t *poll = &dial->polls[dial->watched];
    assert(dial->watched < WATCHES_MAX);
    if (uv_poll_init(loop, poll, fd) != 0) {
        return MUSTER_EOS;
    }
    poll->data = dial;
    dial->watched++;
    dial->open_handles++;
    (void)uv_poll_start(poll, events, call);
    return 0;
}

/* Connects to the loopback. Returns 0, or an errno: after EINPROGRESS wait until it is writable. */
static int connect_loopback(int fd, int port)
{
    int family = 0;
    socklen_t length = sizeof family;
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in6 here6 = {.sin6_family = AF_INET6,
                                       .sin6_port = htons((uint16_t)port),
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
    int r = family == AF_INET6 ? connect(fd, (const struct sockaddr *)&here6, sizeof here6)
                               : connect(fd, (const struct sockaddr *)&here, sizeof here);
    return r == 0 ? 0 : errno;
}

/* Gives the connected descriptor to the hook. */
static void succeed(struct rank_port *dial)
{
    int fd = dial->fds[dial->next];
    dial->fds[dial->next] = -1;
    finish(dial, fd, NULL);
}

static void give_up(struct rank_port *dial, int problem)
{
    dial->problem = dial->problem ? dial->problem : problem;
    dial->next++;
}

static void on_writable(uv_poll_t *poll, int status, int events);

static void try_next(struct rank_port *dial, uv_loop_t *loop)
{
    while (dial->next < dial->count) {
        int fd = dial->fds[dial->next];
        int problem = connect_loopback(fd, dial->port);
        if (problem == 0) {
            succeed(dial);
            return;
        }
        if (problem == EINPROGRESS && watch(dial, loop, fd, UV_WRITABLE, on_writable) == 0) {
            return;
        }
        give_up(dial, problem);
    }
    fail(dial, dial->problem);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct rank_port *dial = poll->data;
    int problem = 0;
    socklen_t length = sizeof problem;
    (void)status;
    (void)events;
    (void)getsockopt(dial->fds[dial->next], SOL_SOCKET, SO_ERROR, &problem, &length);
    uv_poll_stop(poll);
    if (problem == 0) {
        succeed(dial);
    } else {
        give_up(dial, problem);
        try_next(dial, poll->loop);
    }
}

/* ---- asking ---- */

static void on_answer(uv_poll_t *poll, int status, int events)
{
    struct rank_port *dial = poll->data;
    char byte;
    (void)status;
    (void)events;
    ssize_t n = passing_receive(dial->asked_fd, &byte, 1, dial->fds, &dial->count);
    if (n == -EAGAIN || n == -EINTR) {
        return;
    }
    uv_poll_stop(poll);
    if (dial->count == 0) {
        finish(dial, -1, "the rank does not run (any more)");
    } else {
        try_next(dial, poll->loop);
    }
}

static int ask(const struct home *home, const json_t *pod, int *ret_fd, struct muster_err *err)
{
    struct handover_packet packet = {.kind = HANDOVER_NETWORK};
    (void)snprintf(packet.id, sizeof packet.id, "%s/", doc_text(pod, "metadata.uid", ""));
    return supervisor_socket(home, pod, &packet, SOCK_SEQPACKET, ret_fd, err);
}

static bool is_master_port(const json_t *pod, int port)
{
    const json_t *labels = doc_at(pod, "metadata.labels");
    const char *role = json_string_value(json_object_get(labels, CONTROL_LABEL("replica-type")));
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod, "spec.containers"), i, container) {
        const json_t *named = doc_find(doc_at(container, "ports"), "name", "pytorchjob-port");
        if (doc_int(named, "containerPort", 0) == port) {
            return role && strcmp(role, "master") == 0;
        }
    }
    return false;
}

/* Returns the port on this machine. If the job shares the machine's network, the Master's port is
 * leased, and MASTER_PORT has its number. */
static int local_port(const struct home *home, const json_t *pod, int port)
{
    muster_auto(free) char *folder = NULL;
    struct placement placement;
    if (!is_master_port(pod, port) ||
        asprintf(&folder, "%s/jobs/%s", home->path, jobs_folder_uid(pod)) < 0) {
        folder = NULL;
        return port;
    }
    if (placement_open(&placement, folder, NULL) < 0) {
        return port;
    }
    int local = (int)doc_int(placement.doc, "ports.master", port);
    placement_done(&placement);
    return local;
}

int rank_port_dial(uv_loop_t *loop, const struct home *home, const json_t *pod, int port,
                   const struct rank_port_hooks *hooks, struct rank_port **ret,
                   struct muster_err *err)
{
    struct rank_port *dial = calloc(1, sizeof *dial);
    int fd = -1;
    int r = dial ? ask(home, pod, &fd, err) : err_no_memory(err);
    if (r < 0) {
        free(dial);
        return r;
    }
    *dial = (struct rank_port){
        .hooks = *hooks, .port = local_port(home, pod, port), .asked_fd = fd, .open_handles = 1};
    (void)uv_timer_init(loop, &dial->limit);
    dial->limit.data = dial;
    (void)uv_timer_start(&dial->limit, on_limit, DIAL_MS, 0);
    if (watch(dial, loop, fd, UV_READABLE, on_answer) < 0) {
        rank_port_cancel(dial);
        return muster_fail(err, MUSTER_EOS, "cannot watch a socket");
    }
    *ret = dial;
    return 0;
}
