/* See launch.h. */
#include "daemon/machine/launch.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/quantity.h"
#include "base/time/duration.h"
#include "base/variables.h"
#include "daemon/machine/image.h"
#include "daemon/machine/node.h"
#include "daemon/machine/podman.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/shell_variables.h"
#include "pod/resolve_env.h"

#include <string.h>

enum { WORD_BYTES_MAX = 1 << 20, STALL_MS_DEFAULT = 60000, SERVICES_MAX = 512 };

/* Returns the folder from which the job was submitted; for a job that came by kubectl, the home
 * folder of the controller's user. */
static json_t *submitted(const json_t *job)
{
    const char *text = job ? jobs_annotation(job, JOB_ANNOTATION_SUBMIT) : NULL;
    json_t *submit = NULL;
    if (text && doc_parse(text, strlen(text), &submit, NULL) == 0) {
        return submit;
    }
    const char *home = getenv("HOME");
    bool there = home && access(home, X_OK) == 0; /* that of a service account may not exist */
    return json_pack("{s:s}", "cwd", there ? home : "/");
}

/* Removes the container's own variables that the submitter gave by name; variables that a launcher
 * sets stay. */
static void give_way(json_t *env, char *const *given)
{
    for (; given && *given; given++) {
        size_t length = variables_name_length(*given);
        muster_auto(free) char *name = strndup(*given, length);
        if (name && !shell_variable_is(VARIABLE_OURS, name)) {
            json_object_del(env, name);
        }
    }
}

/* Returns the variables that $(NAME) may name: the container's own, and those given by name. As on
 * a cluster, the shell's variables are not among them. New reference. */
static json_t *expandable(const json_t *env, char *const *given)
{
    json_t *all = json_copy((json_t *)env);
    for (; all && given && *given; given++) {
        size_t length = variables_name_length(*given);
        muster_auto(free) char *name = strndup(*given, length);
        json_t *value = json_string(*given + length + 1);
        if (name && value && !json_object_get(env, name)) {
            json_object_set(all, name, value);
        }
        json_decref(value);
    }
    return all;
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

/* Returns the folder in which `import muster` finds the package: near the program, in a build
 * folder or where it is installed. NULL if there is none. */
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

static void put_python_path(json_t *spec)
{
    muster_auto(free) char *ours = python_folder();
    if (ours) {
        json_object_set_new(spec, "prepend", json_pack("{s:s}", "PYTHONPATH", ours));
    }
}

static void put_ours(const struct launch *l, json_t *env)
{
    const char *backend = l->job ? jobs_annotation(l->job, JOB_ANNOTATION_BACKEND) : NULL;
    const char *mode = l->job ? jobs_annotation(l->job, JOB_ANNOTATION_GPU) : NULL;
    if (l->gpus || l->hide_gpus || (mode && strcmp(mode, "none") == 0)) {
        json_object_set_new(env, "CUDA_VISIBLE_DEVICES", json_string(l->gpus ? l->gpus : ""));
    }
    json_object_set_new(env, "MUSTER_JOB",
                        json_string(l->job ? doc_text(l->job, "metadata.name", "") : ""));
    json_object_set_new(env, "MUSTER_JOB_UID",
                        json_string(l->job ? doc_text(l->job, "metadata.uid", "") : ""));
    json_object_set_new(env, "MUSTER_POD", json_string(doc_text(l->pod, "metadata.name", "")));
    if (backend) {
        json_object_set_new(env, "MUSTER_BACKEND", json_string(backend));
    }
}

/* Makes the container's environment: its own variables (with the operator's), with local addresses,
 * without those that were given by name, and then ours. */
static int environment(const struct launch *l, char *const *given, json_t **ret,
                       struct muster_err *err)
{
    const struct pod_sources sources = {.config_maps = l->config_maps,
                                        .secrets = l->secrets,
                                        .node_name = l->node_name,
                                        .host_ip = "127.0.0.1",
                                        .pod_ip = "127.0.0.1",
                                        .node_cpu_milli = node_cpu_milli(),
                                        .node_memory_bytes = node_memory_bytes()};
    int r = pod_environment(l->pod, l->container, &sources, ret, err);
    if (r == 0) {
        localize(l, *ret);
        give_way(*ret, given);
        put_ours(l, *ret);
    }
    return r;
}

static json_t *limits(const json_t *container)
{
    static const struct {
        const char *resource, *key;
        int64_t divisor; /* the unit of the field, in thousandths */
    } table[] = {{"memory", "memoryBytes", 1000}, {"cpu", "cpuMillis", 1}};
    json_t *limits = json_object();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const json_t *value =
            json_object_get(doc_at(container, "resources.limits"), table[i].resource);
        int64_t milli = json_is_string(value)    ? quantity_milli(json_string_value(value))
                        : json_is_integer(value) ? 1000 * (int64_t)json_integer_value(value)
                                                 : -1;
        if (milli > 0) {
            json_object_set_new(limits, table[i].key, json_integer(milli / table[i].divisor));
        }
    }
    return limits;
}

/* Sets the user: from the container, or else from the pod; without one it is the user who runs the
 * controller. */
static void put_user(const struct launch *l, json_t *spec)
{
    static const char *const fields[] = {"runAsUser", "runAsGroup"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_t *value = json_object_get(doc_at(l->container, "securityContext"), fields[i]);
        value = value ? value : json_object_get(doc_at(l->pod, "spec.securityContext"), fields[i]);
        if (json_is_integer(value)) {
            json_object_set(spec, fields[i], value);
        }
    }
}

/* Returns the names of the job's Services, with those that an elastic job may get later. New
 * reference. */
static json_t *services(const struct launch *l)
{
    const struct job *job = l->addresses.job;
    json_t *names = json_array();
    for (int role = 0; job && role < JOB_ROLE_COUNT; role++) {
        int32_t count = job->replica[role].present ? job->replica[role].replicas : 0;
        if (role == JOB_WORKER && job->elastic.present && job->elastic.max_replicas > count) {
            count = job->elastic.max_replicas;
        }
        for (int32_t i = 0; i < count && json_array_size(names) < SERVICES_MAX; i++) {
            json_array_append_new(names, json_sprintf("%s-%s-%d", job->name,
                                                      job_role_lower((enum job_role)role), (int)i));
        }
    }
    return json_pack("{s:s, s:o}", "namespace", doc_text(l->pod, "metadata.namespace", ""), "names",
                     names);
}

/* Returns how long a rank may do nothing before this is reported. */
static int64_t stall_ms(const struct launch *l)
{
    const char *text = l->job ? jobs_annotation(l->job, JOB_ANNOTATION_STALL) : NULL;
    int64_t ms = STALL_MS_DEFAULT;
    (void)duration_read(text ? text : "", &ms);
    return ms;
}

static void expand_words(const json_t *from, const json_t *env, json_t *into)
{
    size_t i;
    json_t *word;
    json_array_foreach (from, i, word) {
        struct buf text;
        buf_init(&text, WORD_BYTES_MAX);
        pod_expand(json_string_value(word), env, &text);
        json_array_append_new(into, json_string(buf_str(&text)));
        buf_done(&text);
    }
}

/* Writes the first imagePullSecret to a file for podman; *ret stays NULL if there is none. */
static int pull_secrets(const struct launch *l, char **ret, struct muster_err *err)
{
    const char *name = doc_text(l->pod, "spec.imagePullSecrets.0.name", NULL);
    const json_t *secret = name ? json_object_get(l->secrets, name) : NULL;
    const char *text =
        json_string_value(json_object_get(doc_at(secret, "data"), ".dockerconfigjson"));
    muster_auto(free) char *bytes = NULL;
    muster_auto(free) char *path = NULL;
    size_t count = 0;
    if (!text) {
        return 0;
    }
    int r = file_mkdir(l->volumes.folder, 0700, err);
    r = r < 0 ? r : base64_decode(text, &bytes, &count, err);
    path = file_join(l->volumes.folder, "auth.json");
    r = r < 0 || path ? r : err_no_memory(err);
    r = r < 0 ? r : file_put(path, bytes, count, 0600, err);
    if (r == 0) {
        *ret = muster_take(path);
    }
    return r;
}

/* Returns `env` (may be NULL); if the job has no file, with the controller's own variables below
 * it. New reference. */
static json_t *over_own(const struct launch *l, const json_t *env)
{
    json_t *all = l->environment_file ? json_object() : shell_variables_capture(environ);
    if (all && env && json_object_update(all, (json_t *)env) != 0) {
        json_decref(all);
        return NULL;
    }
    return all;
}

static int process_spec_parts(const struct launch *l, const json_t *env, const json_t *words_env,
                              json_t *spec, struct muster_err *err)
{
    muster_auto(doc) json_t *entrypoint = NULL;
    muster_auto(doc) json_t *words = NULL;
    const json_t *notes = doc_at(l->pod, "metadata.annotations");
    int r = image_entrypoint(l->job, notes, l->container, &entrypoint, err);
    r = r < 0 ? r : pod_command(l->container, entrypoint, words_env, &words, err);
    if (r == 0) {
        put_python_path(spec);
        json_object_set(spec, "argv", words);
        json_object_set_new(spec, "env", over_own(l, env));
        json_object_set_new(spec, "limits", limits(l->container));
        put_user(l, spec);
    }
    return r;
}

/* Makes the words that run podman. podman itself makes the mounts, limits and user; the supervisor
 * only runs podman. */
static int podman_spec_parts(const struct launch *l, const struct variables *from_file,
                             const json_t *env, const json_t *words_env, json_t *spec,
                             struct muster_err *err)
{
    muster_auto(doc) json_t *args = json_array();
    muster_auto(doc) json_t *command = json_array();
    muster_auto(doc) json_t *bounds = limits(l->container);
    muster_auto(doc) json_t *outer = over_own(l, NULL);
    muster_auto(free) char *auth_file = NULL;
    expand_words(doc_at(l->container, "command"), words_env, command);
    expand_words(doc_at(l->container, "args"), words_env, args);
    int r = outer ? pull_secrets(l, &auth_file, err) : err_no_memory(err);
    char name[PODMAN_NAME_BYTES];
    podman_name(doc_text(l->pod, "metadata.uid", "pod"),
                doc_text(l->container, "name", "container"), name);
    const struct podman_container c = {.pod = l->pod,
                                       .container = l->container,
                                       .env = env,
                                       .shell = from_file->shell,
                                       .given = from_file->given,
                                       .command = command,
                                       .args = args,
                                       .mounts = json_object_get(spec, "mounts"),
                                       .limits = bounds,
                                       .host_ipc = file_exists("/dev/mqueue"),
                                       .name = name,
                                       .auth_file = auth_file,
                                       .interactive = doc_bool(spec, "stdin", false),
                                       .services = json_object_get(spec, "services"),
                                       .flags = getenv("MUSTER_PODMAN_FLAGS")};
    muster_auto(doc) json_t *words = NULL;
    r = r < 0 ? r : podman_words(&c, outer, &words, err);
    if (r == 0) {
        json_object_set(spec, "argv", words);
        json_object_set(spec, "env", outer);
        json_object_set_new(spec, "mounts", json_array());
        json_object_set_new(spec, "contained", json_true());
    }
    return r;
}

/* Sets stdin. With `muster run --stdin RANK` the rank's main process reads what the client writes;
 * a container with `stdin: true` reads what kubectl attach -i writes. */
static void put_stdin(const struct launch *l, const json_t *env, json_t *spec)
{
    const char *wanted = l->job ? jobs_annotation(l->job, JOB_ANNOTATION_STDIN) : NULL;
    const char *rank = json_string_value(json_object_get(env, "RANK"));
    bool trains = strcmp(doc_text(l->container, "name", ""), "pytorch") == 0 ||
                  json_array_size(doc_at(l->pod, "spec.containers")) == 1;
    bool fed = wanted && rank && trains && strcmp(wanted, rank) == 0;
    if (fed || doc_bool(l->container, "stdin", false)) {
        json_object_set_new(spec, "stdin", json_true());
    }
}

/* Sets umask and limits as the submitter's shell has them. For a container the image and podman
 * decide about them. */
static void put_shells(const json_t *submit, json_t *spec)
{
    json_t *limits = doc_at(submit, "limits");
    int64_t mask = doc_int(submit, "umask", -1);
    if (mask >= 0 && mask <= 0777) {
        json_object_set_new(spec, "umask", json_integer(mask));
    }
    if (limits) {
        json_object_set(spec, "softLimits", limits);
    }
}

static int spec_of(const struct launch *l, const struct variables *from_file, json_t **ret,
                   struct muster_err *err)
{
    muster_auto(doc) json_t *submit = submitted(l->job);
    muster_auto(doc) json_t *env = NULL;
    muster_auto(doc) json_t *mounts = NULL;
    int r = environment(l, from_file->given, &env, err);
    muster_auto(doc) json_t *words_env = r < 0 ? NULL : expandable(env, from_file->given);
    struct volume_sources volumes = l->volumes;
    volumes.env = words_env;
    r = r < 0 ? r : volumes_mount(&volumes, l->pod, l->container, &mounts, err);
    if (r < 0) {
        return r;
    }
    const char *runtime = l->job ? jobs_annotation(l->job, JOB_ANNOTATION_RUNTIME) : NULL;
    bool in_podman = runtime && strcmp(runtime, "podman") == 0;
    const char *cwd = doc_text(submit, "cwd", "/");
    muster_auto(doc) json_t *spec = json_pack(
        "{s:s, s:O, s:s, s:s*}", "cwd", in_podman ? cwd : doc_text(l->container, "workingDir", cwd),
        "mounts", mounts, "podName", doc_text(l->pod, "metadata.name", ""), "environmentFile",
        l->environment_file);
    if (!spec || !submit || !words_env) {
        return err_no_memory(err);
    }
    put_stdin(l, env, spec);
    json_object_set_new(spec, "services", services(l));
    if (!in_podman) {
        put_shells(submit, spec);
    }
    json_object_set_new(spec, "stallMs", json_integer(stall_ms(l)));
    r = in_podman ? podman_spec_parts(l, from_file, env, words_env, spec, err)
                  : process_spec_parts(l, env, words_env, spec, err);
    if (r == 0) {
        *ret = muster_take(spec);
    }
    return r;
}

int launch_spec(const struct launch *l, json_t **ret, struct muster_err *err)
{
    struct variables from_file = {0};
    int r = l->environment_file ? variables_read(l->environment_file, &from_file, err) : 0;
    if (r < 0) {
        (void)muster_wrap(err, "the environment that the job was submitted with");
        return r == MUSTER_ENOENT ? MUSTER_EDATA : r; /* the environment will not appear later */
    }
    r = spec_of(l, &from_file, ret, err);
    variables_done(&from_file);
    return r;
}
