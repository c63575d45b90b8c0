/* See bad_ranks.h. */
#include "cli/follow/bad_ranks.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/pod/ranks.h"
#include "control/control.h"

#include <string.h>

enum { SENTENCE_BYTES_MAX = 4096, NAMED_MAX = 8 };

/* How the main container ended, in the attempt that counts; NULL while it has not ended. */
static const json_t *end_of(const json_t *pod)
{
    const json_t *status = ranks_container_status(pod, ranks_main_container(pod));
    const json_t *end = doc_at(status, "state.terminated");
    return end ? end : doc_at(status, "lastState.terminated");
}

const char *bad_ranks_state(const json_t *job, const json_t *pod, const struct bad_ranks_seen *seen)
{
    const char *phase = control_rank_phase(job, pod);
    const char *uid = doc_text(pod, "metadata.uid", "");
    if (json_object_get(seen->late, uid)) {
        return doc_int(end_of(pod), "exitCode", 1) == 0 ? "Succeeded" : "Failed";
    }
    if (strcmp(phase, "Pending") != 0 && json_object_get(seen->stopped, uid)) {
        return "Stopped";
    }
    return strcmp(phase, "Running") == 0 ? "Stopped" : phase;
}

/* The exit code of the main container's attempt that counts. */
static json_t *exit_code_of(const json_t *pod)
{
    const json_t *end = end_of(pod);
    return end ? json_integer(doc_int(end, "exitCode", 0)) : json_null();
}

void bad_ranks_name(const json_t *pod, struct buf *out)
{
    long rank = ranks_number(pod);
    buf_text(out, doc_text(pod, "metadata.name", "?"));
    if (rank >= 0) {
        buf_format(out, " (rank %ld)", rank);
    }
}

static void describe(const json_t *pod, const char *state, const struct control_failure *failure,
                     bool untold, struct buf *out)
{
    if (failure->found) {
        control_failure_text(failure, out);
        return;
    }
    bad_ranks_name(pod, out);
    bool pending = strcmp(state, "Pending") == 0;
    buf_text(out, strcmp(state, "Failed") == 0 ? " failed"
                  : pending && untold          ? " was not seen to run"
                  : pending                    ? " never ran"
                  : untold                     ? " was not seen to end"
                                               : " was stopped");
}

static json_t *entry_of(const json_t *job, json_t *pod, const char *state, bool untold)
{
    struct buf sentence;
    long rank = ranks_number(pod);
    muster_auto(doc) json_t *alone = json_pack("[O]", pod);
    struct control_failure failure = {.container = ""};
    if (strcmp(state, "Failed") == 0) {
        failure = control_first_failure(job, alone);
    }
    buf_init(&sentence, SENTENCE_BYTES_MAX);
    describe(pod, state, &failure, untold, &sentence);
    json_t *entry = json_pack(
        "{s:s, s:o, s:s, s:o, s:s, s:s}", "name", doc_text(pod, "metadata.name", ""), "rank",
        rank < 0 ? json_null() : json_integer(rank), "state", state, "exitCode", exit_code_of(pod),
        "container", failure.found ? failure.container : "", "message", buf_str(&sentence));
    buf_done(&sentence);
    return entry;
}

json_t *bad_ranks_list(const json_t *job, const json_t *pods, const struct bad_ranks_seen *seen)
{
    json_t *list = json_array();
    size_t i;
    json_t *pod;
    json_array_foreach ((json_t *)pods, i, pod) {
        const char *state = bad_ranks_state(job, pod, seen);
        if (strcmp(state, "Succeeded") != 0) {
            json_array_append_new(list, entry_of(job, pod, state, seen->untold));
        }
    }
    return list;
}

static bool is_meant(const json_t *entry, const char *state, const char *but)
{
    return (!state || strcmp(doc_text(entry, "state", ""), state) == 0) &&
           (!but || strcmp(doc_text(entry, "name", ""), but) != 0);
}

void bad_ranks_say(const json_t *list, const char *state, const char *but, const char *before,
                   struct buf *out)
{
    size_t named = 0;
    size_t more = 0;
    size_t i;
    json_t *entry;
    json_array_foreach ((json_t *)list, i, entry) {
        if (!is_meant(entry, state, but)) {
            continue;
        }
        if (named == NAMED_MAX) {
            more++;
            continue;
        }
        const char *line = doc_text(entry, "lastLine", NULL);
        buf_format(out, "%s%s", named++ == 0 ? before : ", ", doc_text(entry, "message", ""));
        if (line) {
            buf_format(out, ": \"%.200s\"", line);
        }
    }
    if (more > 0) {
        buf_format(out, " and %zu more", more);
    }
}
