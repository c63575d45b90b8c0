/* The asynchronous client (src/kube/cluster) as a program, for tests in Python: a line of JSON on
 * standard input asks, a line on standard output answers.
 *
 *     speaker [--kubeconfig FILE] [--context NAME] [--in-cluster FOLDER] [--socket PATH]
 *             [--qps N] [--burst N] [--under-way N]
 *
 *     {"id": 7, "verb": "create", "plural": "pods", "kind": "Pod", "namespace": "default", "body":
 * {…}}
 *     {"cancel": 7}
 *     {"watch": 1, "plural": "pods", "kind": "Pod", "labels": "a=b"}
 *     {"unwatch": 1}
 *
 * Group "" and version "v1" where none is named; "cluster_wide": true for what has no namespace. It
 * ends when its standard input does.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/config/kubeconfig.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES_MAX = 64 << 20, READ_BYTES = 64 << 10, SLOTS = 100000 };

/* A call or a watch that is under way; the id is the number that the test gave it. */
struct slot {
    int id;
    struct cluster_resource resource;
    json_t *said; /* the line with the request; it owns the texts of resource */
    struct cluster_call *call;
    struct cluster_watch *watch;
};

static struct {
    struct cluster *cluster;
    uv_pipe_t input;
    struct buf lines;
    char bytes[READ_BYTES];
    struct slot *slots[SLOTS];
} speaker;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "speaker: %s: %s\n", what, why);
    exit(1);
}

static void print_line(json_t *line)
{
    char *text = doc_print(line);
    if (!text || puts(text) < 0 || fflush(stdout) != 0) {
        die("cannot answer", "standard output");
    }
    free(text);
    json_decref(line);
}

static struct slot *new_slot(const json_t *said, const char *key)
{
    int64_t id = doc_int(said, key, -1);
    if (id < 0 || id >= SLOTS || speaker.slots[id]) {
        die("a bad number", key);
    }
    struct slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        die("no memory", key);
    }
    slot->id = (int)id;
    slot->said = json_incref((json_t *)(uintptr_t)said);
    slot->resource = (struct cluster_resource){
        .group = doc_text(said, "group", ""),
        .version = doc_text(said, "version", "v1"),
        .plural = doc_text(said, "plural", ""),
        .kind = doc_text(said, "kind", ""),
        .namespaced = !doc_bool(said, "cluster_wide", false),
    };
    speaker.slots[id] = slot;
    return slot;
}

static void free_slot(struct slot *slot)
{
    speaker.slots[slot->id] = NULL;
    json_decref(slot->said);
    free(slot);
}

static void on_done(void *arg, const struct cluster_answer *a)
{
    struct slot *slot = arg;
    print_line(json_pack("{s:i, s:i, s:i, s:s, s:s, s:b, s:I, s:O?}", "id", slot->id, "code",
                         a->code, "http", a->http_status, "reason", a->reason, "message",
                         a->message, "unsure", a->unsure, "retry_after_ms",
                         (json_int_t)a->retry_after_ms, "object", a->object));
    free_slot(slot);
}

/* The place of a word in a list of them, which ends with NULL. */
static int word_of(const char *const *words, const json_t *said, const char *key,
                   const char *fallback)
{
    const char *word = doc_text(said, key, fallback);
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    die(key, word);
    return -1;
}

static void ask(const json_t *said)
{
    static const char *const verbs[] = {"get",   "list",   "create", "replace",
                                        "patch", "delete", NULL};
    static const char *const lanes[] = {"lease", "jobs", "parts", "events", NULL};
    static const char *const patches[] = {"merge", "strategic", "json", "apply", NULL};
    static const char *const propagations[] = {"", "Background", "Foreground", "Orphan", NULL};
    struct slot *slot = new_slot(said, "id");
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_request request = {
        .verb = (enum cluster_verb)word_of(verbs, said, "verb", ""),
        .lane = (enum cluster_lane)word_of(lanes, said, "lane", "jobs"),
        .resource = &slot->resource,
        .namespace = doc_text(said, "namespace", NULL),
        .name = doc_text(said, "name", NULL),
        .subresource = doc_text(said, "subresource", NULL),
        .body = doc_at(said, "body"),
        .timeout_ms = doc_int(said, "timeout_ms", 0),
        .patch = (enum cluster_patch)word_of(patches, said, "patch", "merge"),
        .field_manager = doc_text(said, "field_manager", NULL),
        .force = doc_bool(said, "force", false),
        .uid = doc_text(said, "uid", NULL),
        .version = doc_text(said, "resource_version", NULL),
        .grace_s = doc_int(said, "grace_s", CLUSTER_GRACE_DEFAULT),
        .propagation = (enum cluster_propagation)word_of(propagations, said, "propagation", ""),
        .labels = doc_text(said, "labels", NULL),
        .fields = doc_text(said, "fields", NULL),
        .limit = doc_int(said, "limit", 0),
        .next = doc_text(said, "next", NULL),
        .any_version = doc_bool(said, "any_version", false),
    };
    const struct cluster_backend *b = speaker.cluster->backend;
    if (b->send(speaker.cluster, &request, on_done, slot, &slot->call, &err) < 0) {
        die("cannot send", err.text);
    }
}

static void on_change(void *arg, const struct cluster_change *change)
{
    static const char *const news[] = {"BEGIN", "OBJECT", "SYNCED", "GONE", "BOOKMARK", "TROUBLE"};
    struct slot *slot = arg;
    if (change->news == CLUSTER_ANSWERED) {
        return; /* it comes at any time, and tests read the others in their order */
    }
    print_line(json_pack("{s:i, s:s, s:O?, s:s?, s:i, s:s?}", "watch", slot->id, "news",
                         news[change->news], "object", change->object, "version", change->version,
                         "code", change->code, "message", change->message));
}

static void watch(const json_t *said)
{
    struct slot *slot = new_slot(said, "watch");
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_scope scope = {
        .resource = &slot->resource,
        .namespace = doc_text(said, "namespace", NULL),
        .labels = doc_text(said, "labels", NULL),
        .fields = doc_text(said, "fields", NULL),
    };
    const struct cluster_backend *b = speaker.cluster->backend;
    if (b->watch(speaker.cluster, &scope, on_change, slot, &slot->watch, &err) < 0) {
        die("cannot watch", err.text);
    }
}

static void end_slot(int64_t id)
{
    struct slot *slot = id >= 0 && id < SLOTS ? speaker.slots[id] : NULL;
    if (slot && slot->watch) {
        speaker.cluster->backend->unwatch(slot->watch);
    } else if (slot) {
        speaker.cluster->backend->cancel(slot->call);
    }
    if (slot) {
        free_slot(slot);
    }
    print_line(json_pack("{s:I}", "ended", (json_int_t)id));
}

static void take_line(const char *line, size_t bytes)
{
    muster_auto(doc) json_t *said = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (doc_parse(line, bytes, &said, &err) < 0) {
        die("a bad line", err.text);
    }
    if (json_object_get(said, "id")) {
        ask(said);
    } else if (json_object_get(said, "watch")) {
        watch(said);
    } else {
        end_slot(doc_int(said, json_object_get(said, "cancel") ? "cancel" : "unwatch", -1));
    }
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    (void)handle, (void)size;
    *ret = uv_buf_init(speaker.bytes, sizeof speaker.bytes);
}

static void on_input(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    if (got < 0) {
        kube_cluster_close(speaker.cluster);
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    buf_add(&speaker.lines, buf->base, (size_t)got);
    size_t at = 0;
    for (char *end; speaker.lines.used > at && (end = memchr(speaker.lines.data + at, '\n',
                                                             speaker.lines.used - at)) != NULL;) {
        size_t length = (size_t)(end - speaker.lines.data) - at;
        take_line(speaker.lines.data + at, length);
        at += length + 1;
    }
    buf_consume(&speaker.lines, at);
}

static void open_cluster(uv_loop_t *loop, int argc, char **argv)
{
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, 'k'}, {"context", required_argument, NULL, 'c'},
        {"in-cluster", required_argument, NULL, 'i'}, {"socket", required_argument, NULL, 's'},
        {"qps", required_argument, NULL, 'q'},        {"burst", required_argument, NULL, 'b'},
        {"under-way", required_argument, NULL, 'u'},  {NULL, 0, NULL, 0}};
    const char *file = NULL, *context = NULL, *folder = NULL, *socket = NULL;
    struct kube_cluster_options o = {.qps = -1};
    struct target target = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        file = c == 'k' ? optarg : file;
        context = c == 'c' ? optarg : context;
        folder = c == 'i' ? optarg : folder;
        socket = c == 's' ? optarg : socket;
        o.qps = c == 'q' ? strtod(optarg, NULL) : o.qps;
        o.burst = c == 'b' ? (int)strtol(optarg, NULL, 10) : o.burst;
        o.under_way_max = c == 'u' ? (int)strtol(optarg, NULL, 10) : o.under_way_max;
    }
    int r = folder   ? target_in_cluster(folder, &target, &err)
            : socket ? target_socket(socket, &target, &err)
                     : kubeconfig_load(file, context, &target, &err);
    if (r < 0 || kube_cluster_open(loop, &target, &o, &speaker.cluster, &err) < 0) {
        die("cannot open", err.text);
    }
}

int main(int argc, char **argv)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    open_cluster(&loop, argc, argv);
    buf_init(&speaker.lines, LINE_BYTES_MAX);
    uv_pipe_init(&loop, &speaker.input, 0);
    if (uv_pipe_open(&speaker.input, STDIN_FILENO) < 0 ||
        uv_read_start((uv_stream_t *)&speaker.input, on_alloc, on_input) < 0) {
        die("standard input", "is no pipe");
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    for (int i = 0; i < SLOTS; i++) {
        if (speaker.slots[i]) {
            free_slot(speaker.slots[i]);
        }
    }
    buf_done(&speaker.lines);
    return uv_loop_close(&loop) < 0; /* a handle is left */
}
