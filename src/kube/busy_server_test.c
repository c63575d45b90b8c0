/* The client of a cluster whose API server is busy. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/time/clock.h"
#include "kube/kube.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_BYTES = 8192, PATH_BYTES = 512, AFTER_S = 1, MS_PER_S = 1000 };

struct server {
    int listener;
    int port;
    int asked;
    int64_t answered_ms; /* when it last answered */
    pthread_t thread;
};

static void *refuse_all(void *context)
{
    struct server *s = context;
    char request[REQUEST_BYTES];
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0; close(fd)) {
        if (read(fd, request, sizeof request) > 0) {
            s->asked++;
            s->answered_ms = clock_ms();
            dprintf(fd,
                    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: %d\r\nContent-Length: 0\r\n"
                    "Connection: close\r\n\r\n",
                    AFTER_S);
        }
    }
    return NULL;
}

static void start(struct server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    *s = (struct server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &bytes), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, refuse_all, s), 0);
}

static void stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

/* A client that will not try again does not wait, either. */
static void after_the_last_try_nobody_waits(void **state)
{
    (void)state;
    struct server s;
    uv_loop_t loop;
    struct kube *kube = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    char folder[TEST_FOLDER_BYTES], path[PATH_BYTES], text[PATH_BYTES];
    start(&s);
    test_folder_make(folder);
    snprintf(path, sizeof path, "%s/kubeconfig", folder);
    snprintf(text, sizeof text,
             "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
             "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
             "users: [{name: u, user: {}}]\ncurrent-context: c\n",
             s.port);
    assert_int_equal(file_write(path, text, strlen(text), 0600, &err), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(kube_open_cluster(&loop, path, NULL, &kube, &err), 0);
    const struct kube_ref ref = {kube_resource_find("pods"), "default", "a", NULL};
    muster_auto(doc) json_t *object = NULL;
    int64_t begun_ms = clock_ms();
    assert_int_equal(kube_get(kube, &ref, &object, &err), MUSTER_EAGAIN);
    int64_t ended_ms = clock_ms();
    kube_close(kube);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    stop(&s);
    test_folder_remove(folder);
    assert_int_equal(s.asked, 3);
    assert_true(ended_ms - begun_ms >= 2 * AFTER_S * MS_PER_S);
    assert_true(ended_ms - s.answered_ms < AFTER_S * MS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_the_last_try_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
