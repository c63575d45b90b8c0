/* muster top: shows what each rank uses of the machine: processors, memory, GPU memory.
 *
 * The command itself reads /proc and the control groups, not the controller, because reading many
 * processes takes time. On a terminal it reads again and again until nothing runs any more.
 */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "base/memory_text.h"
#include "base/time/clock.h"
#include "cli/pod/gpu_memory.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/ranks.h"
#include "cli/show/table.h"
#include "process/usage.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_MS = 500, NEXT_MS = 2000, CELL_BYTES = 64, COLUMNS = 9, TEXT_BYTES_MAX = 4 << 20 };

struct top {
    struct cli *cli;
    const char *job; /* a job or a pod; NULL: all pods that run in the namespace */
    json_t *before;  /* pod's uid → {"cpuSeconds", "atMs", "peak"} of the last look */
    struct gpu_memory gpus;
};

static int get_pods(struct top *top, struct pod_set *ret)
{
    muster_auto(doc) json_t *job = NULL;
    if (top->job) {
        return pod_set_find(top->cli, top->job, false, ret, &job);
    }
    return pod_set_get(top->cli, cli_namespace(top->cli), &(struct pod_set_query){0}, ret);
}

static bool is_running(const struct pod_set *set, const json_t *pod)
{
    return !pod_set_is_gone(set, pod) && strcmp(doc_text(pod, "status.phase", ""), "Running") == 0;
}

static char *folder_of(const struct top *top, const json_t *pod)
{
    char *folder = NULL;
    const char *uid = doc_text(pod, "metadata.uid", "");
    return asprintf(&folder, "%s/jobs/%s/containers/%s/%s", kube_home(top->cli->kube),
                    doc_text(pod, "metadata.ownerReferences.0.uid", uid), uid,
                    ranks_main_container(pod)) < 0
               ? NULL
               : folder;
}

/* Processor time since the last look, in hundredths of one processor; null at the first. */
static json_t *cpu_percent(const json_t *then, double cpu_s, int64_t now_ms)
{
    int64_t passed_ms = now_ms - doc_int(then, "atMs", now_ms);
    if (passed_ms <= 0) {
        return json_null();
    }
    double spent_s = cpu_s - json_number_value(json_object_get(then, "cpuSeconds"));
    return json_real(spent_s > 0 ? 100 * spent_s * 1000 / (double)passed_ms : 0);
}

static void add_usage(struct top *top, const json_t *pod, const struct usage *usage, json_t *row)
{
    const char *uid = doc_text(pod, "metadata.uid", "");
    const json_t *then = json_object_get(top->before, uid);
    int64_t now_ms = clock_ms();
    int64_t peak = doc_int(then, "peak", 0);
    peak = usage->peak_bytes > peak ? usage->peak_bytes : peak;
    json_object_set_new(row, "cpuPercent", cpu_percent(then, usage->cpu_s, now_ms));
    json_object_set_new(row, "memoryBytes", json_integer(usage->memory_bytes));
    json_object_set_new(row, "peakMemoryBytes", json_integer(peak));
    json_object_set_new(row, "memoryLimitBytes",
                        usage->limit_bytes ? json_integer(usage->limit_bytes) : json_null());
    json_object_set_new(row, "processes", json_integer((json_int_t)usage->process_count));
    int64_t on_gpus = gpu_memory_of(&top->gpus, usage->processes, usage->process_count);
    if (top->gpus.known) {
        json_object_set_new(row, "gpuMemoryBytes", json_integer(on_gpus));
    }
    json_object_set_new(top->before, uid,
                        json_pack("{s:f, s:I, s:I}", "cpuSeconds", usage->cpu_s, "atMs",
                                  (json_int_t)now_ms, "peak", (json_int_t)peak));
}

static json_t *row_of(struct top *top, const struct pod_set *set, const struct usage_table *table,
                      const json_t *pod)
{
    long rank = ranks_number(pod);
    const json_t *status = ranks_container_status(pod, ranks_main_container(pod));
    json_t *row =
        json_pack("{s:o, s:s, s:s}", "rank", rank < 0 ? json_null() : json_integer(rank), "name",
                  doc_text(pod, "metadata.name", ""), "state", doc_text(pod, "status.phase", ""));
    muster_auto(free) char *folder = folder_of(top, pod);
    struct usage *usage = malloc(sizeof *usage);
    if (folder && usage && is_running(set, pod) && usage_read(table, folder, usage, NULL) == 0) {
        add_usage(top, pod, usage, row);
    } else {
        int64_t peak = doc_int(status, "peakMemoryBytes", 0);
        json_object_set_new(row, "peakMemoryBytes", peak ? json_integer(peak) : json_null());
    }
    free(usage);
    return row;
}

/* Makes the rows; *ret is a new reference, *ret_running the number of pods that run. */
static int look(struct top *top, json_t **ret, size_t *ret_running)
{
    struct pod_set set = {0};
    struct usage_table table;
    int r = get_pods(top, &set);
    if (r < 0) {
        return r;
    }
    json_t *rows = json_array();
    usage_table_init(&table);
    gpu_memory_read(&top->gpus);
    *ret_running = 0;
    size_t i;
    json_t *pod;
    json_array_foreach (set.pods, i, pod) {
        *ret_running += is_running(&set, pod);
        if (top->job || is_running(&set, pod)) {
            json_array_append_new(rows, row_of(top, &set, &table, pod));
        }
    }
    usage_table_done(&table);
    pod_set_done(&set);
    *ret = rows;
    return 0;
}

/* ---- Printing ---- */

typedef char row_cells[COLUMNS][CELL_BYTES];

static void put_memory(const json_t *row, const char *name, char cell[CELL_BYTES])
{
    char text[MEMORY_TEXT_BYTES];
    const json_t *value = json_object_get(row, name);
    (void)snprintf(cell, CELL_BYTES, "%s",
                   json_is_integer(value) ? memory_text(json_integer_value(value), text) : "-");
}

static void put_row(const json_t *row, row_cells cells)
{
    const json_t *rank = json_object_get(row, "rank");
    const json_t *cpu = json_object_get(row, "cpuPercent");
    const json_t *processes = json_object_get(row, "processes");
    (void)snprintf(cells[0], CELL_BYTES, json_is_integer(rank) ? "%lld" : "-",
                   (long long)json_integer_value(rank));
    (void)snprintf(cells[1], CELL_BYTES, "%s", doc_text(row, "name", ""));
    (void)snprintf(cells[2], CELL_BYTES, "%s", doc_text(row, "state", ""));
    (void)snprintf(cells[3], CELL_BYTES, json_is_real(cpu) ? "%.0f%%" : "-", json_real_value(cpu));
    put_memory(row, "memoryBytes", cells[4]);
    put_memory(row, "peakMemoryBytes", cells[5]);
    put_memory(row, "memoryLimitBytes", cells[6]);
    (void)snprintf(cells[7], CELL_BYTES, json_is_integer(processes) ? "%lld" : "-",
                   (long long)json_integer_value(processes));
    put_memory(row, "gpuMemoryBytes", cells[8]);
}

static int print_table(struct top *top, const json_t *rows, bool over)
{
    static const char *const head[COLUMNS] = {"RANK",         "POD",       "STATE",
                                              "CPU",          "MEMORY",    "PEAK MEMORY",
                                              "MEMORY LIMIT", "PROCESSES", "GPU MEMORY"};
    size_t columns = top->gpus.known ? COLUMNS : COLUMNS - 1;
    size_t count = json_array_size(rows);
    row_cells *texts = calloc(count + 1, sizeof *texts);
    const char **cells = calloc((count + 1) * COLUMNS, sizeof *cells);
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    for (size_t i = 0; texts && cells && i < (count + 1) * columns; i++) {
        size_t row = i / columns;
        if (row > 0 && i % columns == 0) {
            put_row(json_array_get(rows, row - 1), texts[row]);
        }
        cells[i] = row == 0 ? head[i % columns] : texts[row][i % columns];
    }
    buf_text(&out, over ? "\033[H\033[J" : "");
    if (texts && cells) {
        table_print_cells(cells, columns, count + 1, "", &out);
    }
    int r = cli_print(buf_str(&out), &top->cli->err);
    buf_done(&out);
    free(cells);
    free(texts);
    return r;
}

static int print(struct top *top, const json_t *rows, const char *format, bool over)
{
    if (!format) {
        return print_table(top, rows, over);
    }
    muster_auto(doc) json_t *doc = json_pack("{s:O}", "ranks", rows);
    return cli_print_doc(doc, format, &top->cli->err);
}

/* Looks at least twice, because processor time is a difference. */
static int look_on(struct top *top, const char *format, bool again)
{
    for (int looks = 0;; looks++) {
        muster_auto(doc) json_t *rows = NULL;
        size_t running = 0;
        int r = look(top, &rows, &running);
        bool last = running == 0 || (looks > 0 && !again);
        if (r == 0 && (looks > 0 || running == 0)) {
            r = print(top, rows, format, again);
        }
        if (r < 0 || last) {
            return r;
        }
        (void)poll(NULL, 0, looks == 0 ? FIRST_MS : NEXT_MS);
    }
}

int cli_top(struct cli *cli)
{
    struct top top = {.cli = cli, .job = cli->args.operands[0], .before = json_object()};
    const char *format = NULL;
    int r = cli_expect_operands(cli, 0, 1);
    r = r < 0 ? r : args_choice(&cli->args, "output", &format, &cli->err);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    bool again = !format && isatty(STDOUT_FILENO) && !args_flag(&cli->args, "once");
    r = r < 0 ? r : look_on(&top, format, again);
    gpu_memory_done(&top.gpus);
    json_decref(top.before);
    return r;
}
