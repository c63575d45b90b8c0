/* The client of a server that misbehaves: connections that break, versions that are too old,
 * answers that are not valid. */
#include "base/cleanup.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "kube/kube.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { REQUEST_BYTES = 8192 };

/* The expected next request, and its answer; NULL: the connection is closed without an answer. */
struct act {
    const char *asked; /* the beginning of the request */
    const char *status;
    const char *body;
};

struct server {
    char home[TEST_FOLDER_BYTES];
    int listener;
    const struct act *acts;
    size_t count, done;
    char strange[REQUEST_BYTES]; /* a request that was not expected */
    pthread_t thread;
};

static void answer(int fd, const struct act *act)
{
    if (act->status) {
        dprintf(fd,
                "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n%s",
                act->status, strlen(act->body), act->body);
    }
}

/* Serves one connection; a client that only checks whether the server is there sends no request. */
static void serve_one(struct server *s, int fd)
{
    char request[REQUEST_BYTES] = "";
    ssize_t got = read(fd, request, sizeof request - 1);
    if (got <= 0) {
        return;
    }
    const struct act *act = s->done < s->count ? &s->acts[s->done] : NULL;
    if (act && strncmp(request, act->asked, strlen(act->asked)) == 0) {
        s->done++;
        answer(fd, act);
    } else if (act) { /* after the last act nothing is answered */
        snprintf(s->strange, sizeof s->strange, "%s", request);
    }
}

static void *serve(void *context)
{
    struct server *s = context;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0;) {
        serve_one(s, fd);
        close(fd);
    }
    return NULL;
}

static void start(struct server *s, const struct act *acts, size_t count)
{
    *s = (struct server){.acts = acts, .count = count};
    test_folder_make(s->home);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/api.sock", s->home);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    setenv("MUSTER_HOME", s->home, 1);
}

static void stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    assert_string_equal(s->strange, "");
    assert_int_equal(s->done, s->count);
    test_folder_remove(s->home);
}

struct client {
    uv_loop_t loop;
    struct kube *kube;
    struct muster_err err;
};

static void open_client(struct client *c)
{
    assert_int_equal(uv_loop_init(&c->loop), 0);
    if (kube_open(&c->loop, KUBE_RUNNING, &c->kube, &c->err) < 0) {
        fail_msg("%s", c->err.text);
    }
}

static void close_client(struct client *c)
{
    kube_close(c->kube);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&c->loop), 0);
}

#define MAPS "/api/v1/namespaces/default/configmaps"
#define ACTS(list) list, sizeof(list) / sizeof((list)[0])

static struct kube_ref map_a(void)
{
    return (struct kube_ref){kube_resource_find("configmaps"), "default", "a", NULL};
}

/* The controller was killed during the request: a request that does no harm twice is sent again. */
static void what_may_be_asked_twice_is(void **state)
{
    (void)state;
    static const struct act acts[] = {
        {"GET " MAPS "/a ", NULL, NULL},
        {"GET " MAPS "/a ", "200 OK", "{\"kind\":\"ConfigMap\"}"},
        {"DELETE " MAPS "/a ", NULL, NULL},
        {"DELETE " MAPS "/a ", "200 OK", "{}"},
        {"POST " MAPS " ", NULL, NULL},
    };
    struct server s;
    struct client c = {0};
    start(&s, ACTS(acts));
    open_client(&c);
    muster_auto(doc) json_t *object = NULL;
    const struct kube_ref ref = map_a();
    assert_int_equal(kube_get(c.kube, &ref, &object, &c.err), 0);
    assert_int_equal(kube_delete(c.kube, &ref, -1, &c.err), 0);
    muster_auto(doc) json_t *empty = json_object();
    assert_int_equal(kube_create(c.kube, &ref, empty, NULL, &c.err), MUSTER_EUNAVAIL);
    close_client(&c);
    stop(&s);
}

static void answers_that_are_none_are_told(void **state)
{
    (void)state;
    static const struct act acts[] = {
        {"GET ", "200 OK", "<html>"},
        {"GET ", "500 Oops", "{\"kind\":"},
        {"GET ", "404 Not Found", "{\"kind\":\"Status\",\"reason\":7,\"message\":[]}"},
        {"GET ", "200 OK", "11"},
    };
    struct server s;
    struct client c = {0};
    start(&s, ACTS(acts));
    open_client(&c);
    const struct kube_ref ref = map_a();
    static const char *const said[] = {"the controller's answer to GET", "answered 500",
                                       "not found", "is not a JSON object"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        muster_auto(doc) json_t *object = NULL;
        assert_true(kube_get(c.kube, &ref, &object, &c.err) < 0);
        if (!strstr(c.err.text, said[i])) {
            fail_msg("\"%s\" does not say \"%s\"", c.err.text, said[i]);
        }
    }
    close_client(&c);
    stop(&s);
}

struct seen {
    char text[256];
    size_t count;
};

static void changed(void *context, enum kube_change change, const json_t *object)
{
    static const char signs[] = {[KUBE_ADDED] = '+', [KUBE_MODIFIED] = '~', [KUBE_DELETED] = '-'};
    struct seen *seen = context;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof seen->text - used, "%c%s ", signs[change],
             doc_text(object, "metadata.name", "?"));
    seen->count++;
}

static void give_up(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void run_until(struct client *c, const struct seen *seen, size_t count)
{
    bool late = false;
    uv_timer_t timer = {.data = &late};
    uv_timer_init(&c->loop, &timer);
    uv_timer_start(&timer, give_up, (uint64_t)test_limit_ms(), 0);
    while (seen->count < count && !late) {
        uv_run(&c->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&c->loop, UV_RUN_NOWAIT);
    if (late) {
        fail_msg("only %s", seen->text);
    }
}

#define ITEM(name, version)                                                                        \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"" name                                    \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define TOO_OLD "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

/* Objects that were deleted or created while nobody watched are reported from the new list,
 * once. */
static void an_expired_watch_lists_again(void **state)
{
    (void)state;
    static const struct act acts[] = {
        {"GET " MAPS " ", "200 OK", LIST("5", ITEM("a", "1") "," ITEM("b", "2"))},
        {"GET " MAPS "?watch=true&resourceVersion=5 ", "410 Gone", TOO_OLD},
        {"GET " MAPS " ", "200 OK", LIST("9", ITEM("b", "8") "," ITEM("c", "9"))},
        {"GET " MAPS "?watch=true&resourceVersion=9 ", "200 OK",
         "{\"type\":\"ADDED\",\"object\":" ITEM("d", "10") "}\nno json\n"
                                                           "{\"type\":\"ADDED\",\"object\":7}\n"
                                                           "{\"type\":\"ERROR\",\"object\":" TOO_OLD
                                                           "}\n"},
        {"GET " MAPS " ", "200 OK", LIST("12", ITEM("b", "8") ",7")},
    };
    struct server s;
    struct client c = {0};
    start(&s, ACTS(acts));
    open_client(&c);
    struct seen seen = {0};
    const struct kube_watch_events events = {changed, &seen};
    const struct kube_ref ref = {kube_resource_find("configmaps"), "default", NULL, NULL};
    struct kube_watch *watch = NULL;
    assert_int_equal(kube_watch_start(c.kube, &ref, NULL, &events, &watch, &c.err), 0);
    run_until(&c, &seen, 8);
    assert_string_equal(seen.text, "+a +b -a ~b +c +d -c -d ");
    kube_watch_stop(watch);
    close_client(&c);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_asked_twice_is),
        cmocka_unit_test(answers_that_are_none_are_told),
        cmocka_unit_test(an_expired_watch_lists_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
