/* See objects.h. */
#include "cli/submit/objects.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/submit/environment.h"
#include "cli/submit/machine.h"
#include "cli/submit/refusal.h"
#include "cli/submit/sources.h"
#include "job/check/check.h"
#include "job/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 8 << 20, PROBLEMS_MAX = 200, TEXT_BYTES_MAX = 4 << 20, FILES_MAX = 256 };

static void print_problems(struct job_problems *problems, const char *path, bool quiet)
{
    if (problems->count == 0 || (quiet && problems->errors == 0)) {
        return;
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    job_problems_print(problems, strcmp(path, "-") == 0 ? "standard input" : path, &text);
    fputs(buf_str(&text), stderr);
    buf_done(&text);
}

static int keep(struct objects *objects, const struct job_file *file)
{
    json_t **list = realloc(objects->list, (objects->count + file->object_count) * sizeof *list);
    if (!list && file->object_count > 0) {
        return MUSTER_ENOMEM;
    }
    objects->list = list;
    for (size_t i = 0; i < file->object_count; i++) {
        list[objects->count++] = json_incref(file->objects[i]);
    }
    return 0;
}

struct text {
    const char *path; /* as problems name it */
    const char *text;
    size_t bytes;
};

static int read_text(struct cli *cli, const struct text *t, enum objects_use use,
                     struct objects *objects, size_t *errors)
{
    const char *path = t->path;
    struct job_problems problems;
    struct job_file file = {0};
    job_problems_init(&problems, PROBLEMS_MAX);
    problems.cluster = cli_on_cluster(cli);
    int r = job_file_read(t->text, t->bytes, &file, &problems, &cli->err);
    if (r < 0) {
        (void)muster_wrap(&cli->err, "%s", path);
    } else {
        if (use != OBJECTS_NAMES && !problems.cluster) {
            machine_check(&file, &problems);
        }
        print_problems(&problems, path, use != OBJECTS_ALL);
        *errors += problems.errors;
        if (problems.errors == 0 && file.object_count == 0) {
            r = muster_fail(&cli->err, MUSTER_EDATA, "%s contains no objects", path);
        } else if (keep(objects, &file) < 0 || sources_keep(&cli->sources, path, &file) < 0) {
            r = err_no_memory(&cli->err);
        }
    }
    job_problems_done(&problems);
    job_file_done(&file);
    return r;
}

static int read_file(struct cli *cli, const char *path, enum objects_use use,
                     struct objects *objects, size_t *errors)
{
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    if (strncmp(path, "http://", 7) == 0 ||
        strncmp(path, "https://", 8) == 0) { /* kubectl fetches it */
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "%s: %.200s is an address, and muster fetches none: curl -L ADDRESS | "
                           "muster %s -f -",
                           cli->args.command->name, path, cli->args.command->name);
    }
    int r = file_read(path, FILE_BYTES_MAX, &text, &bytes, &cli->err);
    const struct text t = {path, text, bytes};
    return r < 0 ? r : read_text(cli, &t, use, objects, errors);
}

static int say_errors(struct cli *cli, size_t errors)
{
    const char *done = strcmp(cli->args.command->name, "delete") == 0 ? "deleted" : "created";
    return errors == 0 ? 0
                       : muster_fail(&cli->err, MUSTER_EDATA, "%zu error%s; nothing was %s", errors,
                                     errors == 1 ? "" : "s", done);
}

int objects_read_text(struct cli *cli, const char *label, const char *text, enum objects_use use,
                      struct objects *ret)
{
    const struct text t = {label, text, strlen(text)};
    size_t errors = 0;
    int r = read_text(cli, &t, use, ret, &errors);
    return r < 0 ? r : say_errors(cli, errors);
}

bool objects_is_job(const json_t *object)
{
    return strcmp(doc_text(object, "kind", ""), "PyTorchJob") == 0;
}

/* Sorts claims, config maps and secrets before the jobs that use them; otherwise keeps the files'
 * order. */
static int order(struct objects *objects)
{
    json_t **sorted = calloc(objects->count + 1, sizeof *sorted);
    if (!sorted) {
        return MUSTER_ENOMEM;
    }
    size_t count = 0;
    for (int jobs = 0; jobs <= 1; jobs++) {
        for (size_t i = 0; i < objects->count; i++) {
            if (objects_is_job(objects->list[i]) == (jobs == 1)) {
                sorted[count++] = objects->list[i];
            }
        }
    }
    free(objects->list);
    objects->list = sorted;
    return 0;
}

static int list_files(struct cli *cli, const char *paths[static FILES_MAX], size_t *ret_count)
{
    size_t count = 0;
    size_t at = 0;
    for (const char *path; (path = args_each(&cli->args, "filename", &at)) && count < FILES_MAX;) {
        paths[count++] = path;
    }
    for (size_t i = 0; i < cli->args.operand_count && count < FILES_MAX; i++) {
        paths[count++] = cli->args.operands[i];
    }
    if (count == 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: name a file: muster %s -f FILE",
                           cli->args.command->name, cli->args.command->name);
    }
    *ret_count = count;
    return 0;
}

int objects_read(struct cli *cli, enum objects_use use, struct objects *ret)
{
    const char *paths[FILES_MAX];
    size_t count = 0;
    size_t errors = 0;
    struct objects objects = {0};
    int r = list_files(cli, paths, &count);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = read_file(cli, paths[i], use, &objects, &errors);
    }
    r = r < 0 ? r : say_errors(cli, errors);
    if (r == 0 && order(&objects) < 0) {
        r = err_no_memory(&cli->err);
    }
    if (r < 0) {
        objects_done(&objects);
        return r;
    }
    *ret = objects;
    return 0;
}

void objects_done(struct objects *objects)
{
    for (size_t i = 0; i < objects->count; i++) {
        json_decref(objects->list[i]);
    }
    free(objects->list);
    *objects = (struct objects){0};
}

int objects_check_named(struct cli *cli, const json_t *object)
{
    return *doc_text(object, "metadata.name", "")
               ? 0
               : muster_fail(&cli->err, MUSTER_EDATA,
                             "%s: a %s of the file has no metadata.name, and its generateName %s "
                             "does not say which object is meant",
                             cli->args.command->name, doc_text(object, "kind", "object"),
                             doc_text(object, "metadata.generateName", ""));
}

struct kube_ref objects_ref(const struct cli *cli, const json_t *object)
{
    bool on_cluster = cli_on_cluster(cli);
    bool is_given = !on_cluster || args_has_flag(&cli->args, "namespace"); /* or has a default */
    const char *namespace = is_given ? args_value(&cli->args, "namespace") : NULL;
    const char *other = on_cluster ? kube_namespace(cli->kube) : "default";
    return (struct kube_ref){
        .resource = kube_resource_of(object),
        .namespace = namespace ? namespace : doc_text(object, "metadata.namespace", other),
        .name = doc_text(object, "metadata.name", NULL),
    };
}

int objects_create(struct cli *cli, const json_t *object, json_t **ret)
{
    struct kube_ref ref = objects_ref(cli, object);
    if (!ref.resource) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "the API does not serve kind %s",
                           doc_text(object, "kind", "?"));
    }
    int r = environment_send(cli, object);
    if (r == 0) {
        r = kube_create(cli->kube, &ref, object, ret, &cli->err);
        if (r < 0) {
            r = refusal_explain(cli, object, r);
            environment_withdraw(cli, object);
        }
    }
    return r;
}

int objects_set_annotation(struct cli *cli, json_t *job, const char *name, json_t *value)
{
    json_t *metadata = json_object_get(job, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!json_is_object(annotations)) {
        annotations = json_object();
        json_object_set_new(metadata, "annotations", annotations);
    }
    return json_object_set_new(annotations, name, value) == 0 ? 0 : err_no_memory(&cli->err);
}
