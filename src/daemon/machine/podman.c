/* See podman.h. */
#include "daemon/machine/podman.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/shell_words.h"
#include "base/variables.h"
#include "job/shell_variables.h"
#include "process/monitor/sub_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOSTS_MAX = 64 };

static void add(json_t *words, json_t *word)
{
    json_array_append_new(words, word);
}

/* Returns podman's word for the pull policy. As in Kubernetes the default is IfNotPresent, but
 * Always for the tag :latest or no tag. */
static const char *pull_policy(const json_t *container)
{
    static const struct {
        const char *kubernetes, *podman;
    } table[] = {{"Always", "always"}, {"IfNotPresent", "missing"}, {"Never", "never"}};
    const char *asked = doc_text(container, "imagePullPolicy", NULL);
    for (size_t i = 0; asked && i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(asked, table[i].kubernetes) == 0) {
            return table[i].podman;
        }
    }
    const char *image = doc_text(container, "image", "");
    const char *slash = strrchr(image, '/');
    const char *tag = strchr(slash ? slash : image, ':');
    return !tag || strcmp(tag, ":latest") == 0 ? "always" : "missing";
}

/* Adds the container's own variables. podman must find itself, its configuration and its storage,
 * so it keeps its own variables that say where things are on this machine; a container's variable
 * of such a name is passed by value. */
static void add_own(const struct podman_container *c, json_t *outer, json_t *words)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)c->env, name, value) {
        if (shell_variable_is(VARIABLE_LOCAL, name) || json_object_get(outer, name) ||
            variables_value(c->shell, name)) {
            add(words, json_sprintf("--env=%s=%s", name, json_string_value(value)));
        } else {
            add(words, json_sprintf("--env=%s", name));
            json_object_set(outer, name, value);
        }
    }
}

/* Adds a variable that was given by name. podman takes the value from its environment, into which
 * the supervisor reads the file; if podman itself needs another value, the variable is passed by
 * value. */
static int add_given(const struct podman_container *c, const char *entry, const char *name,
                     json_t *outer, json_t *words, struct muster_err *err)
{
    if (json_object_get(c->env, name)) {
        return 0; /* a launcher's variable, which has precedence */
    }
    if (!shell_variable_is(VARIABLE_LOCAL, name)) {
        add(words, json_sprintf("--env=%s", name));
        return 0;
    }
    json_t *word = json_sprintf("--env=%s", entry);
    if (!word) {
        return muster_fail(err, MUSTER_EDATA, "%s: invalid UTF-8, which podman cannot be given",
                           name);
    }
    add(words, word);
    const char *own = variables_value(c->shell, name);
    own = own ? own : getenv(name);
    if (own) {
        json_object_set_new(outer, name, json_string(own));
    }
    return 0;
}

static int add_env(const struct podman_container *c, json_t *outer, json_t *words,
                   struct muster_err *err)
{
    int r = 0;
    add_own(c, outer, words);
    for (char *const *entry = c->given; entry && *entry && r == 0; entry++) {
        muster_auto(free) char *name = strndup(*entry, variables_name_length(*entry));
        r = name ? add_given(c, *entry, name, outer, words, err) : err_no_memory(err);
    }
    for (char *const *entry = c->shell; entry && *entry && r == 0; entry++) {
        muster_auto(free) char *name = strndup(*entry, variables_name_length(*entry));
        bool passes = name && !shell_variable_is(VARIABLE_LOCAL, name) &&
                      !json_object_get(c->env, name) && !variables_value(c->given, name);
        if (passes) {
            add(words, json_sprintf("--env=%s", name));
        }
    }
    return r;
}

/* Returns the path to mount, which the caller frees. podman would follow a symlink that a
 * container left in the volume, so it gets the path that a subPath has when the volume is taken
 * as the root. */
static int source_of(const json_t *mount, char **ret, struct muster_err *err)
{
    const struct process_mount volume = {.name = doc_text(mount, "name", ""),
                                         .host_path = doc_text(mount, "hostPath", ""),
                                         .sub_path = doc_text(mount, "subPath", "")};
    muster_auto(close) int fd = -1;
    char link[64];
    if (!volume.sub_path[0]) {
        *ret = strdup(volume.host_path);
        return *ret ? 0 : err_no_memory(err);
    }
    int r = sub_path_open(&volume, &fd, err);
    if (r < 0) {
        return r;
    }
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    *ret = realpath(link, NULL);
    return *ret ? 0 : file_fail(err, MUSTER_EOS, "find the subPath of", volume.host_path);
}

static int add_mounts(const struct podman_container *c, json_t *words, struct muster_err *err)
{
    size_t i;
    json_t *mount;
    json_array_foreach (c->mounts, i, mount) {
        muster_auto(free) char *source = NULL;
        int r = source_of(mount, &source, err);
        if (r < 0) {
            return r;
        }
        add(words, json_sprintf("--volume=%s:%s%s", source, doc_text(mount, "mountPath", ""),
                                doc_bool(mount, "readOnly", false) ? ":ro" : ""));
    }
    return 0;
}

static void add_limits(const struct podman_container *c, json_t *words)
{
    int64_t memory = doc_int(c->limits, "memoryBytes", 0);
    int64_t cpu = doc_int(c->limits, "cpuMillis", 0);
    if (memory > 0) {
        add(words, json_sprintf("--memory=%lldb", (long long)memory));
    }
    if (cpu > 0) {
        add(words,
            json_sprintf("--cpus=%lld.%03lld", (long long)cpu / 1000, (long long)cpu % 1000));
    }
}

/* Adds the lines of a process's hosts file. Each line is a word of the command, so a large job gets
 * only the first ones. */
static void add_hosts(const struct podman_container *c, json_t *words)
{
    static const char *const ends[] = {"", ".svc", ".svc.cluster.local"};
    const char *space = doc_text(c->services, "namespace", "");
    const json_t *names = doc_at(c->services, "names");
    for (size_t i = 0; i < json_array_size(names) && i < HOSTS_MAX; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        add(words, json_sprintf("--add-host=%s:127.0.0.1", name));
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
            add(words, json_sprintf("--add-host=%s.%s%s:127.0.0.1", name, space, ends[k]));
        }
    }
}

static int add_flags(const struct podman_container *c, json_t *words, struct muster_err *err)
{
    char **flags = NULL;
    int r = c->flags ? shell_split(c->flags, &flags, err) : 0;
    if (r < 0) {
        return muster_wrap(err, "MUSTER_PODMAN_FLAGS");
    }
    for (char **flag = flags; flag && *flag; flag++) {
        add(words, json_string(*flag));
    }
    shell_free(flags);
    return 0;
}

/* Adds image, command and args. podman takes one word as the entrypoint, so the other words of
 * `command` are put before the args. */
static void add_command(const struct podman_container *c, json_t *words)
{
    bool own = json_array_size(c->command) > 0;
    if (own) {
        add(words,
            json_sprintf("--entrypoint=%s", json_string_value(json_array_get(c->command, 0))));
    }
    add(words, json_string(doc_text(c->container, "image", "")));
    for (size_t i = 1; own && i < json_array_size(c->command); i++) {
        json_array_append(words, json_array_get(c->command, i));
    }
    if (c->args) {
        json_array_extend(words, (json_t *)c->args);
    }
}

int podman_words(const struct podman_container *c, json_t *outer, json_t **ret,
                 struct muster_err *err)
{
    muster_auto(doc) json_t *words =
        json_pack("[s, s, s, s, s, s, s]", "podman", "run", "--rm", "--replace", "--network=host",
                  c->host_ipc ? "--ipc=host" : "--volume=/dev/shm:/dev/shm",
                  "--log-driver=passthrough"); /* one pipe for both outputs, no second log */
    if (!words) {
        return err_no_memory(err);
    }
    if (c->interactive) {
        add(words, json_string("--interactive"));
    }
    add(words, json_sprintf("--name=%s", c->name));
    add(words, json_sprintf("--pull=%s", pull_policy(c->container)));
    if (c->auth_file) {
        add(words, json_sprintf("--authfile=%s", c->auth_file));
    }
    const char *folder = doc_text(c->container, "workingDir", NULL);
    if (folder) {
        add(words, json_sprintf("--workdir=%s", folder));
    }
    int r = add_env(c, outer, words, err);
    r = r < 0 ? r : add_mounts(c, words, err);
    add_limits(c, words);
    add_hosts(c, words);
    r = r < 0 ? r : add_flags(c, words, err);
    if (r < 0) {
        return r;
    }
    add_command(c, words);
    *ret = muster_take(words);
    return 0;
}

json_t *podman_exec_words(const char *name, bool input, bool tty, const json_t *command)
{
    json_t *words = json_pack("[s, s]", "podman", "exec");
    if (words && input) {
        add(words, json_string("--interactive"));
    }
    if (words && tty) {
        add(words, json_string("--tty"));
    }
    if (words) {
        add(words, json_string(name));
        json_array_extend(words, (json_t *)command);
    }
    return words;
}

const char *podman_isolation(void)
{
    return geteuid() == 0 ? NULL : "subreaper";
}

void podman_name(const char *pod_uid, const char *container, char ret_name[PODMAN_NAME_BYTES])
{
    (void)snprintf(ret_name, PODMAN_NAME_BYTES, "muster-%s-%s", pod_uid, container);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_removed(uv_process_t *process, int64_t status, int signal)
{
    (void)status; /* usually there is nothing to remove */
    (void)signal;
    uv_close((uv_handle_t *)process, on_closed);
}

/* podman stores process IDs (of processes, of conmon, of exec sessions) as they are in the PID
 * namespace where it ran, and it kills by them: in this namespace they may belong to other
 * processes. As root it therefore runs in a PID namespace of its own, in which new processes get
 * IDs above the stored ones. */
static const char remove_script[] =
    "remove() {\n"
    "    for try in 1 2 3; do podman rm --force --ignore \"$1\" && return; done\n"
    "}\n"
    "alone() {\n"
    "    echo 30000 >/proc/sys/kernel/ns_last_pid\n"
    "    remove \"$1\"\n"
    "}\n"
    "if [ \"$1\" = alone ]; then alone \"$2\"; exit; fi\n"
    "apart='unshare --pid --fork --mount-proc'\n"
    "if [ \"$(id -u)\" = 0 ] && $apart true; then exec $apart sh -c \"$0\" \"$0\" alone \"$1\"; fi\n"
    "remove \"$1\"";

void podman_remove(uv_loop_t *loop, const char *name)
{
    char *words[] = {"sh", "-c", (char *)remove_script, (char *)remove_script, (char *)name, NULL};
    const uv_process_options_t options = {
        .file = words[0], .args = words, .exit_cb = on_removed, .flags = UV_PROCESS_DETACHED};
    uv_process_t *process = calloc(1, sizeof *process);
    if (!process) {
        return;
    }
    if (uv_spawn(loop, process, &options) < 0) {
        uv_close((uv_handle_t *)process, on_closed);
    } else {
        uv_unref((uv_handle_t *)process);
    }
}
