/* See generate.h. */
#include "job/generate.h"

#include "base/buf.h"
#include "base/build.h"
#include "base/err.h"
#include "job/annotations.h"
#include "job/text.h"

#include <stdio.h>
#include <string.h>

enum { NAME_STEM_BYTES_MAX = 40, WORD_BYTES_MAX = 1 << 20 };

/* Returns what follows the last slash. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_script(const char *word)
{
    size_t length = strlen(word);
    return (length > 3 && strcmp(word + length - 3, ".py") == 0) ||
           (length > 3 && strcmp(word + length - 3, ".sh") == 0);
}

void job_name_of_command(const char *const *command, char ret[JOB_NAME_BYTES])
{
    const char *word = command[0];
    for (size_t i = 0; command[i]; i++) {
        if (is_script(command[i])) {
            word = command[i];
            break;
        }
        if (i > 0 && strcmp(command[i - 1], "-m") == 0) {
            word = command[i];
            break;
        }
    }
    word = base_name(word);
    size_t stem = strlen(word) - (is_script(word) ? 3 : 0);
    char text[NAME_STEM_BYTES_MAX];
    snprintf(text, sizeof text, "%.*s", (int)(stem < sizeof text ? stem : sizeof text - 1), word);
    job_text_mend(SCHEMA_LABEL_1035, text, JOB_NAME_BYTES, ret, JOB_NAME_BYTES);
    if (!*ret) {
        snprintf(ret, JOB_NAME_BYTES, "job");
    }
}

json_t *job_literal(const char *text)
{
    struct buf out;
    buf_init(&out, WORD_BYTES_MAX);
    for (const char *at = text; *at; at++) {
        buf_add(&out, at, 1);
        if (at[0] == '$' && (at[1] == '$' || at[1] == '(')) {
            buf_add(&out, at, 1);
        }
    }
    json_t *value = buf_failed(&out) ? NULL : json_string(buf_str(&out));
    buf_done(&out);
    return value;
}

static void add_variable(struct build *b, json_t *env, const char *name, const char *value)
{
    json_t *variable = build_value(b, json_object());
    build_text(b, variable, "name", name);
    build_text(b, variable, "value", value);
    build_add(b, env, variable);
}

/* Adds the variables that torchrun sets for one process on a node. Several ranks share the
 * machine's cores, so each gets one thread unless the user wants another number. */
static void add_environment(struct build *b, json_t *container, const struct job_command *options)
{
    json_t *env = build_array_at(b, container, "env");
    add_variable(b, env, "LOCAL_RANK", "0");
    add_variable(b, env, "LOCAL_WORLD_SIZE", "1");
    if (options->ranks > 1 && !options->has_threads) {
        add_variable(b, env, "OMP_NUM_THREADS", "1");
    }
}

static void add_container(struct build *b, json_t *pod, const struct job_command *options)
{
    json_t *container = build_value(b, json_object());
    build_add(b, build_array_at(b, pod, "containers"), container);
    build_text(b, container, "name", "pytorch");
    build_text(b, container, "image", options->image ? options->image : JOB_DEFAULT_IMAGE);
    json_t *command = build_array_at(b, container, "command");
    for (size_t i = 0; options->command[i]; i++) {
        build_add(b, command, job_literal(options->command[i]));
    }
    add_environment(b, container, options);
}

static void add_replica(struct build *b, json_t *specs, const char *role, int32_t replicas,
                        const struct job_command *options)
{
    json_t *replica = build_object_at(b, specs, role);
    build_int(b, replica, "replicas", replicas);
    build_text(b, replica, "restartPolicy", "Never");
    json_t *pod = build_object_at(b, build_object_at(b, replica, "template"), "spec");
    add_container(b, pod, options);
}

/* Refuses words that a document cannot contain. */
static int check_words(const char *const *words, struct muster_err *err)
{
    for (size_t i = 0; words && words[i]; i++) {
        json_t *text = strlen(words[i]) < WORD_BYTES_MAX / 2 ? json_string(words[i]) : NULL;
        if (!text) {
            return muster_fail(err, MUSTER_EINVAL,
                               "an argument of the command is not valid UTF-8, or is too long");
        }
        json_decref(text);
    }
    return 0;
}

static int refuse(struct muster_err *err, const char *what, const char *text, const char *fault)
{
    return muster_fail(err, MUSTER_EINVAL, "%s \"%.80s\" %s", what, text, fault);
}

/* Checks the words that a shell user gave, before they become fields about which a checker would
 * complain. */
static int check_options(const struct job_command *options, const char *name,
                         struct muster_err *err)
{
    const char *fault = job_text_fault(SCHEMA_LABEL_1035, name);
    if (!options->command || !options->command[0] || !*options->command[0]) {
        return muster_fail(err, MUSTER_EINVAL, "there is no command to run");
    }
    if (options->ranks < 1 || options->ranks > JOB_RANKS_MAX) {
        return muster_fail(err, MUSTER_EINVAL, "the number of ranks must be 1 to %d, not %d",
                           JOB_RANKS_MAX, (int)options->ranks);
    }
    if (fault) {
        return refuse(err, "the job's name", name, fault);
    }
    if (options->deadline_s < 0) {
        return muster_fail(err, MUSTER_EINVAL, "the deadline must not be negative");
    }
    return 0;
}

/* Returns NULL when out of memory. */
static json_t *make_job(const struct job_command *options, const char *name)
{
    struct build b = {0};
    json_t *job = build_value(&b, json_object());
    build_text(&b, job, "apiVersion", "kubeflow.org/v1");
    build_text(&b, job, "kind", "PyTorchJob");
    json_t *metadata = build_object_at(&b, job, "metadata");
    build_text(&b, metadata, "name", name);
    build_text(&b, metadata, "namespace", options->namespace);
    build_text(&b, build_object_at(&b, metadata, "annotations"), JOB_ANNOTATION_SUCCESS_POLICY,
               "AllRanks");
    json_t *spec = build_object_at(&b, job, "spec");
    if (options->deadline_s) {
        build_int(&b, build_object_at(&b, spec, "runPolicy"), "activeDeadlineSeconds",
                  options->deadline_s);
    }
    json_t *specs = build_object_at(&b, spec, "pytorchReplicaSpecs");
    add_replica(&b, specs, "Master", 1, options);
    if (options->ranks > 1) {
        add_replica(&b, specs, "Worker", options->ranks - 1, options);
    }
    return build_end(&b, job);
}

int job_from_command(const struct job_command *options, json_t **ret, struct muster_err *err)
{
    char own[JOB_NAME_BYTES] = "job";
    if (!options->name && options->command && options->command[0]) {
        job_name_of_command(options->command, own);
    }
    const char *name = options->name ? options->name : own;
    int r = check_options(options, name, err);
    r = r == 0 ? check_words(options->command, err) : r;
    if (r != 0) {
        return r;
    }
    json_t *job = make_job(options, name);
    if (!job) {
        return err_no_memory(err);
    }
    r = job_override(job, &options->override, err);
    if (r < 0) {
        json_decref(job);
        return r;
    }
    *ret = job;
    return 0;
}
