/* Records an attempt on disk and reports it to controllers: both with the same JSON
 * (docs/processes.md). See attempt_state.h.
 */
#include "process/supervisor/attempt_state.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "process/wire/end_cause.h"

#include <signal.h>
#include <unistd.h>

enum { CAUSE_BYTES = 256 };

static json_t *event_of(const char *kind, const json_t *record)
{
    json_t *event = json_deep_copy(record);
    return event && doc_set_text(event, "event", kind) == 0 ? event : NULL;
}

static void emit(const struct attempt *attempt, const char *kind, const json_t *record)
{
    muster_auto(doc) json_t *event = event_of(kind, record);
    if (event) {
        attempt->place->on_event(attempt->place->data, event);
    }
}

void attempt_note(const struct attempt *attempt, const char *text)
{
    muster_auto(doc) json_t *record = json_pack("{s:s, s:s}", "id", attempt->id, "text", text);
    if (record) {
        emit(attempt, "note", record);
    }
}

/* ---- The record ---- */

/* The record keeps folder, mounts and limits, which are read later (muster cp), but not words and
 * values, which may be secrets. */
int attempt_record_start(struct attempt *attempt, const json_t *spec, struct muster_err *err)
{
    char self[IDENTITY_BYTES_MAX] = "";
    (void)identity_of(getpid(), self);
    attempt->started = json_pack("{s:s, s:I, s:s}", "id", attempt->id, "at",
                                 (json_int_t)clock_unix_ms(), "supervisor", self);
    muster_auto(doc) json_t *where = json_copy((json_t *)spec);
    if (!attempt->started || !where) {
        return err_no_memory(err);
    }
    (void)json_object_del(where, "argv");
    (void)json_object_del(where, "env");
    return record_start(attempt->folder, where, attempt->started, err);
}

void attempt_record_running(struct attempt *attempt)
{
    attempt->started_unix_ms = clock_unix_ms();
    (void)doc_set_int(attempt->started, "at", attempt->started_unix_ms);
    (void)doc_set_text(attempt->started, "process", attempt->identity);
    struct muster_err err = MUSTER_ERR_INIT;
    if (record_running(attempt->folder, attempt->started, &err) < 0) {
        attempt_note(attempt, err.text);
    }
    emit(attempt, "started", attempt->started);
}

static const char *reason_of(const struct attempt *attempt, bool oom)
{
    if (attempt->failed) {
        return "StartError";
    }
    if (oom) {
        return "OOMKilled";
    }
    return attempt->end.code == 0 ? "Completed" : "Error";
}

/* Returns the memory that it used at most. If a podman container ended before the watch saw it,
 * this is not known: the monitor only measures podman's own memory. */
static struct cgroup_memory memory_of(const struct attempt *attempt)
{
    struct cgroup_memory memory = {0};
    if (attempt->spec.contained) {
        (void)container_watch_read(attempt->container, &memory);
        return memory;
    }
    memory.peak_bytes = cgroup_peak_bytes(&attempt->cgroup);
    memory.peak_bytes = memory.peak_bytes > 0 ? memory.peak_bytes : attempt->end.peak_bytes;
    memory.limit_bytes = attempt->spec.memory_bytes;
    memory.limit_reached = cgroup_limit_reached(&attempt->cgroup);
    memory.kills = cgroup_oom_kills(&attempt->cgroup);
    return memory;
}

/* Returns when its main process ended: processes that it left may end much later, and this time
 * decides which rank failed first. The end may have been reported before the start. */
static int64_t end_time(const struct attempt *attempt)
{
    int64_t at_unix_ms = attempt->end.at_unix_ms;
    if (at_unix_ms == 0) {
        return clock_unix_ms();
    }
    return at_unix_ms < attempt->started_unix_ms ? attempt->started_unix_ms : at_unix_ms;
}

static json_t *end_record(const struct attempt *attempt)
{
    const struct monitor_message *end = &attempt->end;
    struct cgroup_memory memory = memory_of(attempt);
    const struct end_facts facts = {
        .code = end->code,
        .signal = end->signal,
        .killed_by_us = attempt->killed,
        .limit_bytes = memory.limit_bytes,
        .limit_reached = memory.limit_reached,
        .peak_bytes = memory.peak_bytes,
        .group_kills = memory.kills,
        .machine_kills = cgroup_machine_kills() - attempt->machine_kills,
        .shm_bytes = end->shm_bytes,
        .shm_free_bytes = end->shm_free_bytes,
    };
    char cause[CAUSE_BYTES];
    bool oom = end_cause(&facts, cause, sizeof cause);
    struct build b = {0};
    json_t *doc = build_value(&b, json_object());
    build_text(&b, doc, "id", attempt->id);
    build_set(&b, doc, "ran", json_boolean(!attempt->failed));
    build_int(&b, doc, "code", end->code);
    build_int(&b, doc, "signal", end->signal);
    build_set(&b, doc, "oom", json_boolean(oom));
    build_int(&b, doc, "startedAt", attempt->started_unix_ms);
    build_int(&b, doc, "at", end_time(attempt));
    build_int(&b, doc, "peakMemoryBytes", memory.peak_bytes);
    build_int(&b, doc, "logBytesLost", (json_int_t)attempt->log.lost_bytes);
    if (attempt->log.added_bytes > 0) {
        json_t *added = build_value(&b, json_object());
        build_int(&b, added, "offset", (json_int_t)attempt->log.added_at);
        build_int(&b, added, "bytes", (json_int_t)attempt->log.added_bytes);
        build_set(&b, doc, "logAdded", added);
    }
    build_text(&b, doc, "reason", reason_of(attempt, oom));
    build_text(&b, doc, "message", end->text[0] ? end->text : cause);
    return build_end(&b, doc);
}

void attempt_record_end(struct attempt *attempt)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(doc) json_t *record = end_record(attempt);
    if (!record || record_exit(attempt->folder, record, &err) < 0) {
        attempt_note(attempt, record ? err.text : "out of memory: no exit record was written");
    }
    if (record) {
        emit(attempt, attempt->failed ? "start_failed" : "exited", record);
    }
}

/* ---- From the records ---- */

void attempt_events(const char *id, const char *folder, json_t **ret_started, json_t **ret_end)
{
    muster_auto(doc) json_t *started = record_read(folder, "started.json");
    muster_auto(doc) json_t *end = record_read(folder, "exit.json");
    bool ran = !end || doc_bool(end, "ran", true);
    json_t *base = started ? json_incref(started) : json_pack("{s:s}", "id", id);
    *ret_started = ran && base ? event_of("started", base) : NULL;
    *ret_end = end ? event_of(ran ? "exited" : "start_failed", end) : NULL;
    json_decref(base);
}
