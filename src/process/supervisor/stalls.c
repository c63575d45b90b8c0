/* See stalls.h. */
#include "process/supervisor/stalls.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/clock.h"
#include "core/hash.h"
#include "process/machine/descendants.h"
#include "process/stack/collectives.h"
#include "process/stack/flights.h"
#include "process/stack/report_text.h"
#include "process/stack/stacks.h"
#include "process/stack/stall.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOKS_PER_LIMIT = 4,
    LOOK_MS_MIN = 100,
    LOOK_MS_MAX = 5000,
    STACKS_MS = 1000,
    TEXT_BYTES_MAX = 4096,
};

/* A copy that outlives the attempt, which may end while its stacks are taken. */
struct stalls_verdict {
    char *id;
    enum stall_verdict verdict;
    int64_t limit_ms;
};

/* ---- Samples ---- */

/* Returns a hash of the group and number of the collective that the process waits in, or else of
 * the message; 0: it waits in none. */
static uint64_t call_of(pid_t pid)
{
    muster_auto(doc) json_t *calls = flights_read(pid);
    size_t i;
    json_t *call;
    json_array_foreach (calls, i, call) {
        bool inside = doc_bool(call, "inside", false);
        int64_t message = inside ? 0 : doc_int(call, "message.number", 0);
        uint64_t number = inside ? (uint64_t)doc_int(call, "number", 0) : ~(uint64_t)message;
        if (inside || message > 0) {
            return hash_text(HASH_START ^ number, doc_text(call, "group", "")) | 1;
        }
    }
    return 0;
}

/* The list has parents before children. `below` is memory for one mark per process. */
static struct stall_sample sample_of(const struct attempt *attempt, const struct descendant *list,
                                     size_t count, bool *below)
{
    struct stall_sample sample = {.now_ms = clock_ms(),
                                  .output_bytes = attempt_output_bytes(attempt)};
    uint64_t ticks = 0;
    for (size_t i = 0; i < count; i++) {
        below[i] = list[i].parent == attempt_root(attempt);
        for (size_t k = 0; k < i && !below[i]; k++) {
            below[i] = below[k] && list[k].pid == list[i].parent;
        }
        if (below[i]) {
            ticks += list[i].cpu_ticks;
            sample.runnable = sample.runnable || list[i].state == 'R';
            sample.call = sample.call ? sample.call : call_of(list[i].pid);
        }
    }
    sample.cpu_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    return sample;
}

/* ---- Reporting ---- */

static void put_reason(struct buf *out, const struct stalls_verdict *verdict, const json_t *report,
                       const json_t *attempt)
{
    long rank = (long)doc_int(attempt, "rank", -1);
    muster_auto(free) char *collective = rank < 0 ? NULL : collectives_of_rank(report, rank);
    buf_format(out,
               verdict->verdict == STALL_IN_CALL
                   ? " has waited in a call for %lld s: "
                   : " has printed nothing and used no processor time for %lld s: ",
               (long long)(verdict->limit_ms + 500) / 1000);
    if (collective) {
        buf_text(out, collective);
    } else {
        report_put_state(out, attempt);
    }
}

static const char *name_of(const struct stalls *stalls, const char *id)
{
    for (size_t i = 0; i < *stalls->inspect->count; i++) {
        if (attempt_fits(stalls->inspect->attempts[i], id)) {
            return attempt_pod_name(stalls->inspect->attempts[i]);
        }
    }
    return id;
}

static void tell(const struct stalls *stalls, const struct stalls_verdict *verdict,
                 const json_t *report, const json_t *attempt)
{
    struct buf text;
    long rank = (long)doc_int(attempt, "rank", -1);
    buf_init(&text, TEXT_BYTES_MAX);
    if (rank >= 0) {
        buf_format(&text, "rank %ld", rank);
    } else {
        buf_text(&text, name_of(stalls, verdict->id));
    }
    put_reason(&text, verdict, report, attempt);
    muster_auto(doc) json_t *event =
        json_pack("{s:s, s:s, s:s}", "event", "stalled", "id", verdict->id, "text", buf_str(&text));
    buf_done(&text);
    if (event) {
        stalls->inspect->tell(stalls->inspect->data, event);
    }
}

static void forget_verdicts(struct stalls *stalls)
{
    for (size_t i = 0; i < stalls->verdict_count; i++) {
        free(stalls->verdicts[i].id);
    }
    free(stalls->verdicts);
    stalls->verdicts = NULL;
    stalls->verdict_count = 0;
}

static void explain(void *data, const json_t *report)
{
    struct stalls *stalls = data;
    size_t i;
    json_t *attempt;
    stalls->taking = NULL;
    json_array_foreach (report, i, attempt) {
        for (size_t v = 0; v < stalls->verdict_count; v++) {
            bool same = strcmp(stalls->verdicts[v].id, doc_text(attempt, "id", "")) == 0;
            if (same && json_array_size(json_object_get(attempt, "processes")) > 0) {
                tell(stalls, &stalls->verdicts[v], report, attempt);
            }
        }
    }
    forget_verdicts(stalls);
}

/* ---- Looking ---- */

static void note_verdict(struct stalls *stalls, struct attempt *attempt, enum stall_verdict verdict)
{
    char *id = strdup(attempt_id(attempt));
    if (id) {
        stalls->verdicts[stalls->verdict_count++] =
            (struct stalls_verdict){id, verdict, attempt_stall(attempt)->limit_ms};
    }
}

static void sample_all(struct stalls *stalls)
{
    muster_auto(free) struct descendant *list = NULL;
    size_t count = descendants_list(getpid(), &list);
    muster_auto(free) bool *below = calloc(count + 1, sizeof *below);
    stalls->verdicts = calloc(*stalls->inspect->count + 1, sizeof *stalls->verdicts);
    for (size_t i = 0; below && stalls->verdicts && i < *stalls->inspect->count; i++) {
        struct attempt *attempt = stalls->inspect->attempts[i];
        if (attempt_stall(attempt)->limit_ms > 0) {
            struct stall_sample sample = sample_of(attempt, list, count, below);
            enum stall_verdict verdict = stall_step(attempt_stall(attempt), &sample);
            if (verdict != STALL_NONE) {
                note_verdict(stalls, attempt, verdict);
            }
        }
    }
}

/* Asks stalled ranks where they are; for the others it only reads what is known without asking. */
static void take_stacks(struct stalls *stalls)
{
    const struct inspect *inspect = stalls->inspect;
    const struct stacks_options options = {.limit_ms = STACKS_MS};
    muster_auto(free) struct stacks_root *roots = calloc(*inspect->count + 1, sizeof *roots);
    for (size_t i = 0; roots && i < *inspect->count; i++) {
        roots[i] = attempt_stacks_root(inspect->attempts[i]);
        roots[i].quiet = !stall_is_told(attempt_stall(inspect->attempts[i]));
    }
    if (!roots || stacks_take(inspect->loop, roots, *inspect->count, &options, explain, stalls,
                              &stalls->taking, NULL) < 0) {
        forget_verdicts(stalls);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct stalls *stalls = timer->data;
    if (stalls->taking) {
        return;
    }
    sample_all(stalls);
    if (stalls->verdict_count > 0) {
        take_stacks(stalls);
    } else {
        forget_verdicts(stalls);
    }
}

/* ---- Life ---- */

void stalls_start(struct stalls *stalls, const struct inspect *inspect)
{
    *stalls = (struct stalls){.inspect = inspect};
    stalls->timer.data = stalls;
    uv_timer_init(inspect->loop, &stalls->timer);
}

/* Sets how often to look, by the shortest limit. */
void stalls_update(struct stalls *stalls)
{
    int64_t limit_ms = 0;
    for (size_t i = 0; i < *stalls->inspect->count; i++) {
        int64_t own_ms = attempt_stall(stalls->inspect->attempts[i])->limit_ms;
        limit_ms = own_ms > 0 && (limit_ms == 0 || own_ms < limit_ms) ? own_ms : limit_ms;
    }
    int64_t look_ms = limit_ms / LOOKS_PER_LIMIT;
    look_ms = look_ms < LOOK_MS_MIN ? LOOK_MS_MIN : look_ms > LOOK_MS_MAX ? LOOK_MS_MAX : look_ms;
    if (limit_ms == 0) {
        uv_timer_stop(&stalls->timer);
    } else if (uv_timer_get_repeat(&stalls->timer) != (uint64_t)look_ms ||
               !uv_is_active((uv_handle_t *)&stalls->timer)) {
        uv_timer_start(&stalls->timer, on_look, (uint64_t)look_ms, (uint64_t)look_ms);
    }
}

void stalls_stop(struct stalls *stalls)
{
    stacks_cancel(stalls->taking);
    stalls->taking = NULL;
    forget_verdicts(stalls);
    uv_close((uv_handle_t *)&stalls->timer, NULL);
}
