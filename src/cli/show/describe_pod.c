/* Prints a pod as kubectl describe does; see describe.h. */
#include "cli/show/describe.h"

#include "base/doc.h"
#include "base/memory_text.h"
#include "base/time/timestamp.h"
#include "cli/show/bytes.h"
#include "cli/show/describe_parts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 4096 };

/* Prints "2020-05-13T00:02:06Z" as "Wed, 13 May 2020 00:02:06 +0000". */
static void put_time(struct columns *c, int level, const char *label, const char *stamp)
{
    int64_t unix_ms = timestamp_read(stamp);
    if (unix_ms == TIMESTAMP_NONE) {
        return;
    }
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;
    char text[64];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &tm);
    columns_line(c, level, label, text);
}

static void put_words(struct columns *c, const char *label, const json_t *words)
{
    if (json_array_size(words) == 0) {
        return;
    }
    columns_line(c, 2, label, NULL);
    size_t i;
    json_t *word;
    json_array_foreach (words, i, word) {
        columns_text(c, 3, json_string_value(word) ? json_string_value(word) : "");
    }
}

static void put_peak(struct columns *c, int level, int64_t bytes)
{
    char text[MEMORY_TEXT_BYTES];
    if (bytes > 0) {
        columns_line(c, level, "Peak Memory", memory_text(bytes, text));
    }
}

static void put_terminated(struct columns *c, const json_t *state)
{
    char code[32];
    const char *message = doc_text(state, "message", "");
    snprintf(code, sizeof code, "%lld", (long long)doc_int(state, "exitCode", 0));
    columns_line(c, 3, "Reason", doc_text(state, "reason", ""));
    if (*message) {
        columns_line(c, 3, "Message", message);
    }
    columns_line(c, 3, "Exit Code", code);
    if (doc_int(state, "signal", 0)) {
        snprintf(code, sizeof code, "%lld", (long long)doc_int(state, "signal", 0));
        columns_line(c, 3, "Signal", code);
    }
    put_peak(c, 3, doc_int(state, "peakMemoryBytes", 0));
    put_time(c, 3, "Started", doc_text(state, "startedAt", ""));
    put_time(c, 3, "Finished", doc_text(state, "finishedAt", ""));
}

/* `state` is {"waiting"|"running"|"terminated": {…}}, or missing. */
static void put_state(struct columns *c, const char *label, const json_t *state)
{
    const json_t *running = doc_at(state, "running");
    const json_t *terminated = doc_at(state, "terminated");
    const json_t *waiting = doc_at(state, "waiting");
    if (running) {
        columns_line(c, 2, label, "Running");
        put_time(c, 3, "Started", doc_text(running, "startedAt", ""));
    } else if (terminated) {
        columns_line(c, 2, label, "Terminated");
        put_terminated(c, terminated);
    } else if (waiting) {
        columns_line(c, 2, label, "Waiting");
        columns_line(c, 3, "Reason", doc_text(waiting, "reason", ""));
    } else if (strcmp(label, "State") == 0) {
        columns_line(c, 2, label, "Waiting");
    }
}

static void put_status(struct columns *c, const json_t *status)
{
    char restarts[32];
    snprintf(restarts, sizeof restarts, "%lld", (long long)doc_int(status, "restartCount", 0));
    put_state(c, "State", doc_at(status, "state"));
    put_state(c, "Last State", doc_at(status, "lastState"));
    columns_line(c, 2, "Ready", doc_bool(status, "ready", false) ? "True" : "False");
    columns_line(c, 2, "Restart Count", restarts);
    put_peak(c, 2, doc_int(status, "peakMemoryBytes", 0));
    int64_t rotated = doc_int(status, "logBytesRotated", 0);
    if (rotated > 0) {
        char size[BYTES_TEXT], text[BYTES_TEXT + 64];
        snprintf(text, sizeof text, "the first %s were rotated away",
                 bytes_text((uint64_t)rotated, size));
        columns_line(c, 2, "Log", text);
    }
}

static void put_quantities(struct columns *c, const char *label, const json_t *quantities)
{
    if (json_object_size(quantities) == 0) {
        return;
    }
    columns_line(c, 2, label, NULL);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)quantities, key, value) {
        char text[64];
        if (json_is_integer(value)) {
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        } else {
            snprintf(text, sizeof text, "%s",
                     json_is_string(value) ? json_string_value(value) : "");
        }
        columns_line(c, 3, key, text);
    }
}

/* Prints a variable. A value that comes from elsewhere is shown as its source; a secret's value is
 * never shown. */
static void put_variable(struct columns *c, const json_t *variable)
{
    static const struct {
        const char *path;
        const char *of;
    } sources[] = {{"valueFrom.secretKeyRef", "secret"},
                   {"valueFrom.configMapKeyRef", "config map"}};
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%s", doc_text(variable, "value", ""));
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        const json_t *source = doc_at(variable, sources[i].path);
        if (source) {
            snprintf(text, sizeof text, "<set to the key '%s' in %s '%s'>",
                     doc_text(source, "key", ""), sources[i].of, doc_text(source, "name", ""));
        }
    }
    const char *field = doc_text(variable, "valueFrom.fieldRef.fieldPath", NULL);
    if (field) {
        snprintf(text, sizeof text, " (v1:%s)", field);
    }
    columns_line(c, 3, doc_text(variable, "name", ""), text);
}

static void put_environment(struct columns *c, const json_t *variables)
{
    columns_line(c, 2, "Environment", json_array_size(variables) ? NULL : "<none>");
    size_t i;
    json_t *variable;
    json_array_foreach (variables, i, variable) {
        put_variable(c, variable);
    }
}

static void put_mounts(struct columns *c, const json_t *mounts)
{
    columns_line(c, 2, "Mounts", json_array_size(mounts) ? NULL : "<none>");
    size_t i;
    json_t *mount;
    json_array_foreach (mounts, i, mount) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s from %s (%s)", doc_text(mount, "mountPath", ""),
                 doc_text(mount, "name", ""), doc_bool(mount, "readOnly", false) ? "ro" : "rw");
        columns_text(c, 3, text);
    }
}

static void put_containers(struct columns *c, const char *label, const json_t *containers,
                           const json_t *statuses)
{
    if (json_array_size(containers) == 0) {
        return;
    }
    columns_line(c, 0, label, NULL);
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        const char *name = doc_text(container, "name", "");
        columns_line(c, 1, name, NULL);
        columns_line(c, 2, "Image", doc_text(container, "image", ""));
        put_words(c, "Command", doc_at(container, "command"));
        put_words(c, "Args", doc_at(container, "args"));
        put_status(c, doc_find(statuses, "name", name));
        put_quantities(c, "Limits", doc_at(container, "resources.limits"));
        put_quantities(c, "Requests", doc_at(container, "resources.requests"));
        put_environment(c, doc_at(container, "env"));
        put_mounts(c, doc_at(container, "volumeMounts"));
    }
}

static void put_conditions(struct columns *c, const json_t *conditions)
{
    columns_line(c, 0, "Conditions", json_array_size(conditions) ? NULL : "<none>");
    if (json_array_size(conditions)) {
        columns_line(c, 1, "Type", "Status");
    }
    size_t i;
    json_t *condition;
    json_array_foreach (conditions, i, condition) {
        columns_line(c, 1, doc_text(condition, "type", ""), doc_text(condition, "status", ""));
    }
}

/* The volume's kind is the key beside its name. */
static void put_volumes(struct columns *c, const json_t *volumes)
{
    columns_line(c, 0, "Volumes", json_array_size(volumes) ? NULL : "<none>");
    size_t i;
    json_t *volume;
    json_array_foreach (volumes, i, volume) {
        const char *key;
        json_t *value;
        columns_line(c, 1, doc_text(volume, "name", ""), NULL);
        json_object_foreach (volume, key, value) {
            if (strcmp(key, "name") != 0) {
                columns_line(c, 2, "Type", key);
                const char *claim = doc_text(value, "claimName", doc_text(value, "path", ""));
                if (*claim) {
                    columns_line(c, 2, "Claim", claim);
                }
            }
        }
    }
}

static void put_owner(struct columns *c, const json_t *pod)
{
    char text[TEXT_BYTES];
    const json_t *owner = doc_at(pod, "metadata.ownerReferences.0");
    if (owner) {
        snprintf(text, sizeof text, "%s/%s", doc_text(owner, "kind", ""),
                 doc_text(owner, "name", ""));
        columns_line(c, 0, "Controlled By", text);
    }
}

static void put_reason(struct columns *c, const json_t *pod, const char *label, const char *path)
{
    const char *text = doc_text(pod, path, "");
    if (*text) {
        columns_line(c, 0, label, text);
    }
}

void describe_pod(const json_t *pod, const json_t *events, int64_t now_unix_ms, struct buf *out)
{
    struct columns c;
    columns_init(&c, out);
    describe_head(&c, pod);
    columns_line(&c, 0, "Node", doc_text(pod, "spec.nodeName", "<none>"));
    put_time(&c, 0, "Start Time", doc_text(pod, "status.startTime", ""));
    describe_map(&c, "Labels", doc_at(pod, "metadata.labels"), "=");
    describe_map(&c, "Annotations", doc_at(pod, "metadata.annotations"), ": ");
    columns_line(&c, 0, "Status", doc_text(pod, "status.phase", ""));
    put_reason(&c, pod, "Reason", "status.reason");
    put_reason(&c, pod, "Message", "status.message");
    columns_line(&c, 0, "IP", doc_text(pod, "status.podIP", ""));
    put_owner(&c, pod);
    put_containers(&c, "Init Containers", doc_at(pod, "spec.initContainers"),
                   doc_at(pod, "status.initContainerStatuses"));
    put_containers(&c, "Containers", doc_at(pod, "spec.containers"),
                   doc_at(pod, "status.containerStatuses"));
    put_conditions(&c, doc_at(pod, "status.conditions"));
    put_volumes(&c, doc_at(pod, "spec.volumes"));
    describe_events(&c, events, now_unix_ms);
    columns_done(&c);
}
