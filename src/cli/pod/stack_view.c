/* See stack_view.h. */
#include "cli/pod/stack_view.h"

#include "base/doc.h"
#include "cli/pod/ranks.h"
#include "process/stack/report_text.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_BYTES = 128 };

/* ---- One rank ---- */

/* Finds the attempt of the pod's training container, else the pod's first attempt: init containers
 * and sidecars run before it or beside it. */
static const json_t *find_attempt(const json_t *pod, const json_t *attempts)
{
    const char *uid = doc_text(pod, "metadata.uid", "?");
    const char *main_container = ranks_main_container(pod);
    const json_t *found = NULL;
    size_t i, length = strlen(uid);
    json_t *attempt;
    json_array_foreach (attempts, i, attempt) {
        const char *id = doc_text(attempt, "id", "");
        if (strncmp(id, uid, length) != 0 || id[length] != '/') {
            continue;
        }
        const char *container = id + length + 1;
        size_t name = strcspn(container, "/");
        bool is_main =
            strlen(main_container) == name && strncmp(container, main_container, name) == 0;
        found = is_main || !found ? attempt : found;
    }
    return found;
}

static double total_cpu(const json_t *processes)
{
    double sum = 0;
    size_t i;
    json_t *process;
    json_array_foreach (processes, i, process) {
        sum += json_number_value(json_object_get(process, "cpuPercent"));
    }
    return sum;
}

json_t *stack_view_rank(const json_t *pod, const json_t *attempts)
{
    char label[LABEL_BYTES];
    ranks_label(pod, label, sizeof label);
    json_t *rank =
        json_pack("{s:s, s:s, s:s}", "label", label, "pod", doc_text(pod, "metadata.name", ""),
                  "phase", doc_text(pod, "status.phase", "Unknown"));
    const json_t *attempt = find_attempt(pod, attempts);
    json_t *processes = json_deep_copy(doc_at(attempt, "processes"));
    if (ranks_number(pod) >= 0) {
        json_object_set_new(rank, "rank", json_integer(ranks_number(pod)));
    }
    const json_t *first = json_array_get(processes, 0);
    if (first) {
        json_object_set_new(rank, "state", json_string(doc_text(first, "state", "")));
        json_object_set_new(rank, "cpuPercent", json_real(total_cpu(processes)));
        json_object_set_new(rank, "where", json_string(doc_text(first, "where", "")));
    }
    json_object_set_new(rank, "processes", processes ? processes : json_array());
    return rank;
}

/* ---- For people ---- */

static void put_rank(struct buf *out, const json_t *rank)
{
    buf_format(out, "%s (%s): ", doc_text(rank, "label", ""), doc_text(rank, "pod", ""));
    if (json_array_size(json_object_get(rank, "processes")) == 0) {
        buf_format(out, "%s, no process runs\n", doc_text(rank, "phase", ""));
        return;
    }
    report_put_state(out, rank);
    buf_format(out, ", cpu %.0f %%\n", json_number_value(json_object_get(rank, "cpuPercent")));
    size_t i;
    json_t *process;
    json_array_foreach (json_object_get(rank, "processes"), i, process) {
        report_put_process(out, "", process);
    }
}

void stack_view_print(const json_t *ranks, const json_t *collectives, struct buf *out)
{
    size_t i;
    json_t *rank, *line;
    json_array_foreach (collectives, i, line) {
        buf_format(out, "%s\n", json_string_value(line));
    }
    buf_text(out, i ? "\n" : "");
    json_array_foreach (ranks, i, rank) {
        buf_text(out, i ? "\n" : "");
        put_rank(out, rank);
    }
}
