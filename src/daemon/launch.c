/* See launch.h. */
#include "daemon/launch.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "daemon/image.h"
#include "daemon/jobs.h"
#include "daemon/node.h"
#include "job/annotations.h"
#include "job/submit.h"
#include "pod/environment.h"

#include <stdio.h>
#include <string.h>

static int out_of_memory(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOMEM, "out of memory");
}

/* What the submitter's shell had, or, for a job that came by kubectl, what the controller's had.
 * New reference. */
static json_t *captured(const json_t *job)
{
    const char *text = job ? jobs_note(job, JOB_NOTE_SUBMIT) : NULL;
    json_t *submit = NULL;
    if (text && doc_parse(text, strlen(text), &submit, NULL) == 0) {
        return submit;
    }
    const char *home = getenv("HOME");
    return json_pack("{s:s, s:o}", "cwd", home ? home : "/", "env", submit_capture(environ));
}

static void localize(const struct launch *l, json_t *env)
{
    const char *name;
    json_t *value;
    void *next;
    if (!l->addresses.job) {
        return;
    }
    json_object_foreach_safe (env, next, name, value) {
        char *local = address_localize(&l->addresses, name, json_string_value(value));
        if (local) {
            json_object_set_new(env, name, json_string(local));
            free(local);
        }
    }
}

/* Where `import muster` finds the package: beside the program, in a build folder or installed. NULL
 * when nowhere. */
static char *python_folder(void)
{
    static const char *const places[] = {"../python", "../lib/muster/python"};
    muster_auto(free) char *program = realpath("/proc/self/exe", NULL);
    char *slash = program ? strrchr(program, '/') : NULL;
    if (!slash) {
        return NULL;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        muster_auto(free) char *path = file_join(program, places[i]);
        char *real = path ? realpath(path, NULL) : NULL;
        if (real) {
            return real;
        }
    }
    return NULL;
}

static void put_python_path(json_t *env)
{
    muster_auto(free) char *ours = python_folder();
    const char *theirs = json_string_value(json_object_get(env, "PYTHONPATH"));
    if (ours) {
        json_object_set_new(env, "PYTHONPATH",
                            theirs && *theirs ? json_sprintf("%s:%s", ours, theirs)
                                              : json_string(ours));
    }
}

static void put_ours(const struct launch *l, json_t *env)
{
    const char *backend = l->job ? jobs_note(l->job, JOB_NOTE_BACKEND) : NULL;
    const char *mode = l->job ? jobs_note(l->job, JOB_NOTE_GPU) : NULL;
    if (l->gpus || l->hide_gpus || (mode && strcmp(mode, "none") == 0)) {
        json_object_set_new(env, "CUDA_VISIBLE_DEVICES", json_string(l->gpus ? l->gpus : ""));
    }
    put_python_path(env);
    json_object_set_new(env, "MUSTER_JOB",
                        json_string(l->job ? doc_text(l->job, "metadata.name", "") : ""));
    json_object_set_new(env, "MUSTER_JOB_UID",
                        json_string(l->job ? doc_text(l->job, "metadata.uid", "") : ""));
    json_object_set_new(env, "MUSTER_POD", json_string(doc_text(l->pod, "metadata.name", "")));
    json_object_set_new(env, "MUSTER_ATTEMPT", json_sprintf("%d", l->attempt));
    if (backend) {
        json_object_set_new(env, "MUSTER_BACKEND", json_string(backend));
    }
}

static int environment(const struct launch *l, const json_t *submit, json_t **ret,
                       struct muster_err *err)
{
    const struct pod_sources sources = {.config_maps = l->config_maps,
                                        .secrets = l->secrets,
                                        .node_name = l->node_name,
                                        .host_ip = "127.0.0.1",
                                        .pod_ip = "127.0.0.1",
                                        .node_cpu_milli = node_cpu_milli(),
                                        .node_memory_bytes = node_memory_bytes()};
    muster_auto(doc) json_t *own = NULL;
    int r = pod_environment(l->pod, l->container, &sources, &own, err);
    if (r < 0) {
        return r;
    }
    localize(l, own);
    json_t *captured_env = doc_at(submit, "env");
    muster_auto(doc) json_t *env = captured_env ? json_copy(captured_env) : json_object();
    if (!env || json_object_update(env, own) != 0) {
        return out_of_memory(err);
    }
    put_ours(l, env);
    *ret = muster_take(env);
    return 0;
}

static json_t *limits(const json_t *container)
{
    static const struct {
        const char *resource, *key;
        int64_t divisor; /* of thousandths */
    } table[] = {{"memory", "memoryBytes", 1000}, {"cpu", "cpuMillis", 1}};
    json_t *limits = json_object();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const json_t *value =
            json_object_get(doc_at(container, "resources.limits"), table[i].resource);
        int64_t milli = json_is_string(value)    ? pod_quantity_milli(json_string_value(value))
                        : json_is_integer(value) ? 1000 * (int64_t)json_integer_value(value)
                                                 : -1;
        if (milli > 0) {
            json_object_set_new(limits, table[i].key, json_integer(milli / table[i].divisor));
        }
    }
    return limits;
}

/* The container's own, then the pod's; absent means whoever runs the controller. */
static void put_user(const struct launch *l, json_t *spec)
{
    static const struct {
        const char *field, *key;
    } table[] = {{"runAsUser", "user"}, {"runAsGroup", "group"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        json_t *value = json_object_get(doc_at(l->container, "securityContext"), table[i].field);
        value =
            value ? value : json_object_get(doc_at(l->pod, "spec.securityContext"), table[i].field);
        if (json_is_integer(value)) {
            json_object_set(spec, table[i].key, value);
        }
    }
}

int launch_spec(const struct launch *l, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *submit = captured(l->job);
    muster_auto(doc) json_t *entrypoint = NULL;
    muster_auto(doc) json_t *env = NULL;
    muster_auto(doc) json_t *words = NULL;
    muster_auto(doc) json_t *mounts = NULL;
    const json_t *notes = doc_at(l->pod, "metadata.annotations");
    int r = image_entrypoint(l->job, notes, l->container, &entrypoint, err);
    r = r < 0 ? r : environment(l, submit, &env, err);
    r = r < 0 ? r : pod_command(l->container, entrypoint, env, &words, err);
    r = r < 0 ? r : volumes_mount(&l->volumes, l->pod, l->container, &mounts, err);
    if (r < 0) {
        return r;
    }
    const char *cwd = doc_text(l->container, "workingDir", doc_text(submit, "cwd", "/"));
    json_t *spec = json_pack("{s:O, s:O, s:s, s:O, s:o}", "argv", words, "env", env, "cwd", cwd,
                             "mounts", mounts, "limits", limits(l->container));
    if (!spec) {
        return out_of_memory(err);
    }
    put_user(l, spec);
    *ret = spec;
    return 0;
}
