/* See spec.h. */
#include "process/wire/spec.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES_DEFAULT = 10 << 20, SEGMENTS_DEFAULT = 5, SEGMENT_BYTES_MIN = 4096 };

static int read_words(const json_t *doc, struct process_spec *spec, struct muster_err *err)
{
    const json_t *words = doc_at(doc, "argv");
    size_t count = json_array_size(words);
    if (count == 0 || count > PROCESS_WORDS_MAX) {
        return muster_fail(err, MUSTER_EDATA, "argv: from 1 to %d words are needed",
                           PROCESS_WORDS_MAX);
    }
    spec->argv = calloc(count + 1, sizeof *spec->argv);
    if (!spec->argv) {
        return err_no_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        spec->argv[i] = json_string_value(json_array_get(words, i));
        if (!spec->argv[i]) {
            return muster_fail(err, MUSTER_EDATA, "argv[%zu] is not text", i);
        }
    }
    return 0;
}

static int read_env(const json_t *doc, struct process_spec *spec, struct muster_err *err)
{
    json_t *env = doc_at(doc, "env");
    spec->own_env = calloc(json_object_size(env) + 1, sizeof *spec->own_env);
    if (!spec->own_env) {
        return err_no_memory(err);
    }
    const char *name;
    json_t *value;
    size_t i = 0;
    json_object_foreach (env, name, value) {
        const char *text = json_string_value(value);
        if (!text || !*name || strchr(name, '=')) {
            return muster_fail(err, MUSTER_EDATA, "env.%s: a name and text are needed", name);
        }
        if (asprintf(&spec->own_env[i], "%s=%s", name, text) < 0) {
            spec->own_env[i] = NULL;
            return err_no_memory(err);
        }
        i++;
    }
    spec->env = variables_merge((char *const *const[]){spec->own_env}, 1);
    return spec->env ? 0 : err_no_memory(err);
}

/* A subPath must stay inside its volume, as a kubelet requires. */
static bool leaves_its_folder(const char *path)
{
    for (const char *part = path; part;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            return true;
        }
        part = part[length] ? part + length + 1 : NULL;
    }
    return path[0] == '/';
}

static int read_mount(const json_t *doc, size_t index, struct process_mount *ret,
                      struct muster_err *err)
{
    *ret = (struct process_mount){
        .name = doc_text(doc, "name", ""),
        .host_path = doc_text(doc, "hostPath", ""),
        .mount_path = doc_text(doc, "mountPath", ""),
        .sub_path = doc_text(doc, "subPath", ""),
        .read_only = doc_bool(doc, "readOnly", false),
    };
    if (ret->host_path[0] != '/' || ret->mount_path[0] != '/') {
        return muster_fail(err, MUSTER_EDATA,
                           "mounts[%zu]: hostPath and mountPath must be absolute", index);
    }
    if (strcmp(ret->mount_path, "/") == 0) {
        return muster_fail(err, MUSTER_EDATA, "mounts[%zu]: nothing can be mounted on /", index);
    }
    if (leaves_its_folder(ret->sub_path)) {
        return muster_fail(err, MUSTER_EDATA, "mounts[%zu]: subPath %s leaves its volume", index,
                           ret->sub_path);
    }
    return 0;
}

static int read_mounts(const json_t *doc, struct process_spec *spec, struct muster_err *err)
{
    const json_t *mounts = doc_at(doc, "mounts");
    size_t count = json_array_size(mounts);
    if (count > PROCESS_MOUNTS_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "over %d mounts", PROCESS_MOUNTS_MAX);
    }
    spec->mounts = calloc(count + PROCESS_OWN_MOUNTS_MAX, sizeof *spec->mounts);
    if (!spec->mounts) {
        return err_no_memory(err);
    }
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = read_mount(json_array_get(mounts, i), i, &spec->mounts[i], err);
    }
    spec->mount_count = count;
    return r;
}

static int read_numbers(const json_t *doc, struct process_spec *spec, struct muster_err *err)
{
    const struct {
        const char *path;
        int64_t *into;
        int64_t fallback, least, most;
    } numbers[] = {
        {"limits.memoryBytes", &spec->memory_bytes, 0, 0, INT64_MAX},
        {"limits.cpuMillis", &spec->cpu_millis, 0, 0, 1 << 30},
        {"log.segmentBytes", &spec->log_segment_bytes, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MIN,
         INT64_C(1) << 40},
        {"log.segments", &spec->log_segments, SEGMENTS_DEFAULT, 2, 10000},
        {"stallMs", &spec->stall_ms, 0, 0, INT64_C(1) << 40},
        {"runAsUser", &spec->user, -1, -1, UINT32_MAX},
        {"runAsGroup", &spec->group, -1, -1, UINT32_MAX},
        {"umask", &spec->umask, -1, -1, 0777},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t value = doc_int(doc, numbers[i].path, numbers[i].fallback);
        if (value < numbers[i].least || value > numbers[i].most) {
            return muster_fail(err, MUSTER_EDATA, "%s: %lld is out of range", numbers[i].path,
                               (long long)value);
        }
        *numbers[i].into = value;
    }
    return 0;
}

static int read_all(struct process_spec *spec, struct muster_err *err)
{
    const json_t *doc = spec->doc;
    spec->cwd = doc_text(doc, "cwd", "/");
    spec->pod_name = doc_text(doc, "podName", "");
    spec->services = doc_at(doc, "services");
    spec->input = doc_bool(doc, "stdin", false);
    spec->contained = doc_bool(doc, "contained", false);
    if (spec->cwd[0] != '/') {
        return muster_fail(err, MUSTER_EDATA, "cwd: %s is not absolute", spec->cwd);
    }
    int r = read_words(doc, spec, err);
    r = r < 0 ? r : read_env(doc, spec, err);
    r = r < 0 ? r : read_mounts(doc, spec, err);
    return r < 0 ? r : read_numbers(doc, spec, err);
}

int process_spec_read(json_t *doc, struct process_spec *ret, struct muster_err *err)
{
    struct process_spec spec = {.doc = json_incref(doc)};
    int r = read_all(&spec, err);
    if (r < 0) {
        process_spec_done(&spec);
        return r;
    }
    *ret = spec;
    return 0;
}

void process_spec_mount(struct process_spec *spec, const struct process_mount *mount)
{
    assert(spec->mount_count <
           json_array_size(doc_at(spec->doc, "mounts")) + PROCESS_OWN_MOUNTS_MAX);
    assert(mount->host_path[0] == '/' && mount->mount_path[0] == '/');
    spec->mounts[spec->mount_count++] = *mount;
}

static void free_all(char **entries)
{
    for (char **entry = entries; entry && *entry; entry++) {
        free(*entry);
    }
    free(entries);
}

void process_spec_done(struct process_spec *spec)
{
    free_all(spec->own_env);
    free_all(spec->prepended);
    variables_done(&spec->from_file);
    free(spec->env);
    free(spec->argv);
    free(spec->mounts);
    json_decref(spec->doc);
    *spec = (struct process_spec){0};
}
