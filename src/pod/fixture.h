/* What the pod tests share: JSON with ' for ", and a pod whose every step is traced and checked.
 *
 * Tests only.
 */
#pragma once

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "pod/pod.h"

/* 2026-01-01T00:00:00Z: times in the tests are seconds after it. */
#define EPOCH 1767225600000

struct scene {
    struct pod *pod;
    struct buf trace;
};

static inline struct pod *new_pod(json_t *object)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct pod *pod =
        pod_new(object, &(struct pod_place){"laptop", "127.0.0.1", "127.0.0.1"}, &err);
    if (!pod) {
        fail_msg("%s", err.text);
    }
    return pod;
}

/* Makes a pod with these members of its spec ("'restartPolicy': 'Never'"). */
static inline void open_scene(struct scene *s, const char *spec)
{
    json_t *object = parse("{'metadata': {'name': 'p', 'namespace': 'default', 'uid': 'u'}}");
    doc_set(object, "spec", parse(spec));
    s->pod = new_pod(object);
    buf_init(&s->trace, 1 << 16);
    json_decref(object);
}

static inline void close_scene(struct scene *s)
{
    s->pod = pod_free(s->pod);
    buf_done(&s->trace);
}

/* Feeds the event at `second`; appends "12: start 0 attempt 1, status, wake 22" to the trace. */
static inline void feed(struct scene *s, double second, struct pod_event event)
{
    struct pod_effects fx;
    event.now_unix_ms = EPOCH + (int64_t)(second * 1000);
    pod_step(s->pod, &event, &fx);
    const char *broken = pod_check_invariants(s->pod, &fx);
    if (broken) {
        fail_msg("at %g: %s", second, broken);
    }
    for (size_t i = 0; i < fx.count; i++) {
        if (fx.list[i].kind == POD_WAKE_AT) {
            fx.list[i].at_unix_ms = (fx.list[i].at_unix_ms - EPOCH) / 1000;
        }
    }
    struct buf lines;
    buf_init(&lines, 1 << 14);
    pod_trace(&fx, &lines);
    buf_format(&s->trace, "%g:", second);
    for (const char *line = buf_str(&lines); *line;) {
        const char *end = strchrnul(line, '\n');
        buf_format(&s->trace, "%s %.*s", line == buf_str(&lines) ? "" : ",", (int)(end - line),
                   line);
        line = *end ? end + 1 : end;
    }
    buf_text(&s->trace, "\n");
    buf_done(&lines);
}

#define SCHEDULED ((struct pod_event){.kind = POD_SCHEDULED})
#define TICK ((struct pod_event){.kind = POD_TICK})
#define ADOPTED ((struct pod_event){.kind = POD_ADOPTED})
#define STARTED(c, n) ((struct pod_event){.kind = POD_STARTED, .container = (c), .attempt = (n)})
#define EXITED(c, n, x)                                                                            \
    ((struct pod_event){.kind = POD_EXITED, .container = (c), .attempt = (n), .code = (x)})
#define DELETE(s) ((struct pod_event){.kind = POD_DELETE, .grace_s = (s)})

/* Compares a value of the status as text; "" if it is missing. */
static inline void assert_status(const struct scene *s, const char *path, const char *expected)
{
    json_t *status = pod_status(s->pod);
    assert_non_null(status);
    json_t *value = doc_at(status, path);
    char *text = json_is_string(value) ? strdup(json_string_value(value))
                 : value               ? doc_print(value)
                                       : strdup("");
    assert_string_equal(text, expected);
    free(text);
    json_decref(status);
}

#define ONE "'containers': [{'name': 'pytorch', 'image': 'i'}]"
