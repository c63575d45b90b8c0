/* A client that may not send any more sends none of its requests: if one turn of the loop would
 * send several requests, permission is asked for each of them. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "kube/cluster/kube_cluster.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 4, CONNECTIONS_MAX = 2 * REQUESTS, BYTES = 4096, TIMEOUT_MS = 60000 };

static const struct cluster_resource pods = {"", "v1", "pods", "Pod", true};

/* ---- A server that keeps connections, and counts the bodies that it receives ---- */

struct server {
    int listener;
    int port;
    pthread_t thread;
    int bodies; /* used by the thread until it is joined */
};

static bool serve(struct server *s, int fd)
{
    char request[BYTES + 1];
    ssize_t count = read(fd, request, BYTES);
    if (count <= 0) {
        close(fd);
        return false;
    }
    request[count] = '\0';
    if (strstr(request, "\"name\":\"written\"")) {
        s->bodies++;
        dprintf(fd, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                    "Content-Length: 2\r\n\r\n{}");
    }
    return true;
}

static void *serve_all(void *context)
{
    struct server *s = context;
    struct pollfd fds[1 + CONNECTIONS_MAX] = {{.fd = s->listener, .events = POLLIN}};
    nfds_t count = 1;
    while (count > 1 || fds[0].fd >= 0) {
        (void)poll(fds, count, -1);
        for (nfds_t i = count; i-- > 1;) {
            if (fds[i].revents && !serve(s, fds[i].fd)) {
                fds[i] = fds[--count];
            }
        }
        if (fds[0].revents) {
            int fd = accept(s->listener, NULL, NULL);
            fds[0].fd = fd < 0 ? -1 : fds[0].fd;
            if (fd >= 0) {
                fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
            }
        }
    }
    return NULL;
}

static void start_server(struct server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    *s = (struct server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->listener, CONNECTIONS_MAX), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &bytes), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve_all, s), 0);
}

static void stop_server(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

/* ---- The client ---- */

struct client {
    uv_loop_t loop;
    struct cluster *cluster;
    int allowed; /* how many requests it may still send; < 0: any number */
    int refused;
    int answers;
};

static bool may_send(void *arg)
{
    struct client *c = arg;
    bool may = c->allowed != 0;
    c->allowed -= c->allowed > 0;
    c->refused += !may;
    return may;
}

static void on_answer(void *arg, const struct cluster_answer *answer)
{
    struct client *c = arg;
    c->answers += answer->code == 0;
}

static void start_client(struct client *c, int port)
{
    char url[64];
    struct muster_err err = MUSTER_ERR_INIT;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    *c = (struct client){.allowed = -1};
    assert_int_equal(uv_loop_init(&c->loop), 0);
    struct target target = {.server = strdup(url)};
    const struct kube_cluster_options options = {.qps = -1, .may_send = may_send, .arg = c};
    assert_int_equal(kube_cluster_open(&c->loop, &target, &options, &c->cluster, &err), 0);
}

static void create_all(struct client *c)
{
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *body = json_pack("{s:{s:s}}", "metadata", "name", "written");
    const struct cluster_request request = {.verb = CLUSTER_CREATE,
                                            .resource = &pods,
                                            .namespace = "default",
                                            .body = body,
                                            .timeout_ms = TIMEOUT_MS};
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(c->cluster->backend->send(c->cluster, &request, on_answer, c, NULL, &err),
                         0);
    }
    json_decref(body);
}

static void stop_client(struct client *c)
{
    kube_cluster_close(c->cluster);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&c->loop), 0);
}

/* The second time all connections exist, so that one turn of the loop sends all requests. */
static void each_request_is_asked_for(void **state)
{
    (void)state;
    struct server s;
    struct client c;
    start_server(&s);
    start_client(&c, s.port);
    create_all(&c);
    for (int64_t end = 0; c.answers < REQUESTS;) {
        assert_true(test_turn(&end));
        uv_run(&c.loop, UV_RUN_NOWAIT);
    }
    c.allowed = 1; /* the first request may be sent … */
    create_all(&c);
    for (int64_t end = 0; c.refused == 0;) { /* … and another is refused */
        assert_true(test_turn(&end));
        uv_run(&c.loop, UV_RUN_NOWAIT);
    }
    stop_client(&c);
    stop_server(&s);
    assert_int_equal(s.bodies, REQUESTS);
    assert_int_equal(c.answers, REQUESTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_request_is_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
