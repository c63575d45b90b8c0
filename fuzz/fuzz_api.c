/* Sends requests as hostile clients send them, through the whole router into a store in memory:
 * requests of Kubernetes, and of /muster/v1 with a state folder of its own.
 *
 * Input: "METHOD PATH?QUERY", a line with the Content-Type, then the body. Whatever the input is,
 * the reply is answered or started exactly once, and the stored objects stay readable.
 */
#include "api/api.h"
#include "api/query_pairs.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/history/sweep.h"
#include "daemon/route/routes.h"
#include "invariant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 16, TEXT_BYTES_MAX = 4096, OBJECTS_MAX = 100 };

struct sink {
    struct http_reply reply; /* first */
    int answers;
    bool open;
};

static void sink_header(struct http_reply *reply, const char *name, const char *value)
{
    (void)reply;
    assert(*name && !strpbrk(value, "\r\n"));
}

static void sink_send(struct http_reply *reply, int status, const char *type, const void *bytes,
                      size_t count)
{
    (void)type;
    (void)bytes;
    (void)count;
    assert(status >= 200 && status < 600);
    ((struct sink *)reply)->answers++;
}

static int sink_start(struct http_reply *reply, int status, const char *type)
{
    (void)status;
    (void)type;
    ((struct sink *)reply)->answers++;
    ((struct sink *)reply)->open = true;
    return 0;
}

static int sink_write(struct http_reply *reply, const void *bytes, size_t count)
{
    (void)bytes;
    assert(((struct sink *)reply)->open);
    return count > TEXT_BYTES_MAX ? MUSTER_EAGAIN : 0;
}

static void sink_end(struct http_reply *reply)
{
    assert(((struct sink *)reply)->open);
    ((struct sink *)reply)->open = false;
}

static int sink_upgrade(struct http_reply *reply, const char *protocol,
                        void (*take)(void *arg, int fd), void *arg)
{
    (void)reply;
    (void)protocol;
    (void)take;
    (void)arg;
    return MUSTER_EUNSUPPORTED;
}

static int sink_leave(struct http_reply *reply, const char *protocol,
                      void (*take)(void *arg, struct http_socket *socket), void *arg)
{
    (void)reply;
    (void)protocol;
    (void)take;
    (void)arg;
    return MUSTER_EUNSUPPORTED;
}

static const struct http_reply_ops ops = {sink_header, sink_send,    sink_start, sink_write,
                                          sink_end,    sink_upgrade, sink_leave};

static char folder[] = "/dev/shm/muster-fuzz-api-XXXXXX";
static struct store *store;
static struct api *api;
static uv_loop_t loop;

/* Linked in place of the agent's function: no ranks exist that could be asked. */
void __wrap_agent_stacks(struct agent *agent, const char *uid, struct http_reply *reply);
void __wrap_agent_stacks(struct agent *agent, const char *uid, struct http_reply *reply)
{
    (void)agent;
    http_reply_send(reply, *uid ? 404 : 400, "application/json", "{}", 2);
}

static void remove_folder(void)
{
    (void)file_remove(folder, NULL);
}

static void start_routes(struct api_hooks *ret_hooks)
{
    static struct home home = {.path = folder};
    static struct gpus gpus;
    static struct routes *routes;
    static struct sweep *sweep;
    struct routes_options options = {
        .loop = &loop, .home = &home, .store = store, .gpus = &gpus, .node_name = "node"};
    invariant(mkdtemp(folder), "a folder is made", folder);
    (void)atexit(remove_folder);
    int r = leases_new(&loop, store, &options.leases, NULL);
    invariant(r == 0, "leases", "");
    r = environments_new(&loop, store, &home, &options.environments, NULL);
    invariant(r == 0, "environments", "");
    r = sweep_new(&loop, store, &home, options.leases, &sweep, NULL);
    options.sweep = sweep;
    invariant(r == 0, "sweep", "");
    r = routes_new(&options, &routes, ret_hooks, NULL);
    invariant(r == 0, "routes", "");
}

static void start(void)
{
    const struct store_options options = {
        .objects_max = OBJECTS_MAX, .changes_max = 50, .grace_s = api_grace_s, .fill = api_fill};
    struct muster_err err = MUSTER_ERR_INIT;
    uv_loop_init(&loop);
    int r = store_open(":memory:", &options, &store, &err);
    assert(r == 0);
    static struct api_hooks hooks;
    start_routes(&hooks);
    r = api_new(&loop, store, &hooks, &api, &err);
    assert(r == 0);
}

/* Returns the text up to the next newline, which is replaced by NUL; *at moves behind it. */
static char *take_line(char **at)
{
    char *line = *at;
    char *end = strchrnul(line, '\n');
    *at = *end ? end + 1 : end;
    *end = '\0';
    return line;
}

static void send_request(char *text)
{
    char *body = text;
    char *method = take_line(&body);
    char *type = take_line(&body);
    char *path = strchr(method, ' ');
    char *query = path ? strchr(path, '?') : NULL;
    struct http_pair pairs[PAIRS_MAX];
    const struct http_pair headers[] = {{"Content-Type", type}, {"Accept", type}};
    if (!path) {
        return;
    }
    *path++ = '\0';
    if (query) {
        *query++ = '\0';
    }
    const struct http_request request = {.method = method,
                                         .path = path,
                                         .query = pairs,
                                         .query_count = query_pairs(query, pairs, PAIRS_MAX),
                                         .headers = headers,
                                         .header_count = 2,
                                         .body = body,
                                         .body_bytes = strlen(body)};
    struct sink sink = {.reply = {.ops = &ops}};
    api_handle(api, &request, &sink.reply);
    while (sink.answers == 0) { /* a request that waits for the disk is answered later */
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert(sink.answers == 1);
    if (sink.open) {
        sink.reply.on_gone(sink.reply.arg);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert(api_watch_count(api) == 0 && api_lease_count(api) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (!api) {
        start();
    }
    if (libfyaml_leaks(bytes, count)) {
        return 0;
    }
    muster_auto(free) char *text = strndup((const char *)bytes, count);
    send_request(text);
    return 0;
}
