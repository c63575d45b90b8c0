/* Files on disk that a crash or an editor has left: a container's log and its index, its spec and
 * its records.
 *
 * An input that starts with '{' is a spec, and a message's line; with '=', an environment. Anything
 * else is a log: the length of the index, three bytes of options, then the index and the bytes of
 * its only segment. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/variables.h"
#include "invariant.h"
#include "process/log/format.h"
#include "process/log/log.h"
#include "process/wire/record.h"
#include "process/wire/spec.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { READS_MAX = 100000, ROOM = 4096, OPTION_BYTES = 4 };

static char folder[] = "/dev/shm/muster-fuzz-records-XXXXXX";
static uv_loop_t loop;

static void remove_folder(void)
{
    (void)file_remove(folder, NULL);
}

/* Writes a file without file_write, whose flush for every input is too slow. */
static void write_whole(const char *name, const void *bytes, size_t count)
{
    muster_auto(free) char *path = file_join(folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    invariant(fd >= 0 && write(fd, bytes, count) == (ssize_t)count, "the file is written", path);
    close(fd);
}

static void start(void)
{
    if (!mkdtemp(folder)) {
        abort();
    }
    atexit(remove_folder);
    uv_loop_init(&loop);
    muster_auto(free) char *attempt = file_join(folder, "0");
    invariant(file_mkdir(attempt, 0700, NULL) == 0, "the folder is made", attempt);
    write_whole("0/started.json", "{}", 2);
    write_whole("0/exit.json", "{}", 2);
}

static void read_log(const struct process_log_options *options, size_t written)
{
    struct process_log *log = NULL;
    char bytes[ROOM];
    size_t total = 0;
    if (process_log_open(&loop, options, NULL, NULL, &log, NULL) < 0) {
        return;
    }
    enum process_log_state state = PROCESS_LOG_MORE;
    for (int i = 0; i < READS_MAX && state == PROCESS_LOG_MORE; i++) {
        size_t count = 0;
        if (process_log_read(log, bytes, sizeof bytes, &count, &state, NULL) < 0) {
            state = PROCESS_LOG_END;
        }
        total += count;
    }
    invariant(state != PROCESS_LOG_MORE, "a log has an end", "");
    invariant(options->timestamps || total <= written, "no more is read than was written", "");
    process_log_close(log);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void try_log(const uint8_t *data, size_t size)
{
    const uint8_t *at = data + OPTION_BYTES;
    size_t left = size - OPTION_BYTES;
    size_t index_bytes = (size_t)data[0] * sizeof(struct log_mark) / 8;
    index_bytes = index_bytes < left ? index_bytes : left;
    write_whole("0/0.idx", at, index_bytes);
    write_whole("0/0.log", at + index_bytes, left - index_bytes);
    const struct process_log_options options = {
        .folder = folder,
        .timestamps = data[1] % 2,
        .tail_lines = data[2] % 3 == 0 ? -1 : data[2],
        .since_unix_ms = data[3] % 3 == 0 ? 0 : data[3],
        .limit_bytes = data[1] % 3 == 0 ? data[1] : -1,
    };
    read_log(&options, left);
    json_decref(process_log_paths(folder, 0));
}

static void try_spec(const uint8_t *data, size_t size)
{
    struct process_spec spec = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(doc) json_t *doc = NULL;
    write_whole("0/spec.json", data, size);
    muster_auto(free) char *attempt = file_join(folder, "0");
    muster_auto(doc) json_t *record = record_read(attempt, "spec.json");
    invariant(!record || process_spec_read(record, &spec, &err) < 0 || spec.argv[0],
              "a spec has a word", "");
    process_spec_done(&spec);
    if (doc_parse((const char *)data, size, &doc, NULL) == 0) {
        (void)record_id_valid(doc_text(doc, "id", ""));
    }
}

/* Parses an environment; its lists, merged with themselves, have each name once. */
static void try_variables(const char *bytes, size_t count)
{
    struct variables v = {0};
    if (variables_parse(bytes, count, &v, NULL) < 0) {
        return;
    }
    char *const *const lists[] = {v.given, v.shell, v.given};
    char **merged = variables_merge(lists, 3);
    for (char **entry = merged; entry && *entry; entry++) {
        size_t length = variables_name_length(*entry);
        invariant(length > 0, "a variable has a name", "");
        muster_auto(free) char *name = strndup(*entry, length);
        invariant(variables_value(merged, name) == *entry + length + 1, "a name comes once", "");
    }
    free(merged);
    variables_done(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        start();
        started = true;
    }
    if (size > 0 && data[0] == '{') {
        try_spec(data, size);
    } else if (size > 0 && data[0] == '=') {
        try_variables((const char *)data + 1, size - 1);
    } else if (size > OPTION_BYTES) {
        try_log(data, size);
    }
    return 0;
}
