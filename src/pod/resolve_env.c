/* See resolve_env.h. */
#include "pod/resolve_env.h"

#include "base/doc.h"
#include "pod/sources.h"

#include <string.h>

enum { VALUE_BYTES_MAX = 1 << 20 };

/* Reads one entry of `env` into `text`; returns the same as pod_value_from. A value may refer to
 * variables before it. */
static int resolve(const struct source_scope *scope, const json_t *entry, const json_t *env,
                   struct buf *text, struct muster_err *err)
{
    const json_t *from = doc_at(entry, "valueFrom");
    if (from) {
        return pod_value_from(scope, from, text, err);
    }
    pod_expand(doc_text(entry, "value", ""), env, text);
    return 1;
}

static int set(json_t *env, const char *name, const struct buf *text, struct muster_err *err)
{
    if (buf_failed(text)) {
        return muster_fail(err, MUSTER_ETOOBIG, "variable %s is longer than %d bytes", name,
                           VALUE_BYTES_MAX);
    }
    if (json_object_set_new(env, name, json_string(buf_str(text))) != 0) {
        return muster_fail(err, MUSTER_EDATA, "variable %s is not valid UTF-8", name);
    }
    return 0;
}

static int add_entry(const struct source_scope *scope, const json_t *entry, json_t *env,
                     struct muster_err *err)
{
    const char *name = doc_text(entry, "name", "");
    if (!*name || strchr(name, '=')) {
        return muster_fail(err, MUSTER_EDATA, "env: \"%s\" is not a valid variable name", name);
    }
    struct buf text;
    buf_init(&text, VALUE_BYTES_MAX);
    int r = resolve(scope, entry, env, &text, err);
    if (r > 0) {
        r = set(env, name, &text, err);
    }
    buf_done(&text);
    return r;
}

static int add_all(const struct source_scope *scope, json_t *env, struct muster_err *err)
{
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(scope->container, "envFrom"), index, each) {
        int r = pod_env_from(scope, each, env, err);
        if (r < 0) {
            return r;
        }
    }
    json_array_foreach (doc_at(scope->container, "env"), index, each) {
        int r = add_entry(scope, each, env, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int pod_environment(const json_t *pod, const json_t *container, const struct pod_sources *sources,
                    json_t **ret_env, struct muster_err *err)
{
    struct source_scope scope = {pod, container, sources};
    json_t *env = json_object();
    if (!env) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for an environment");
    }
    int r = add_all(&scope, env, err);
    if (r < 0) {
        json_decref(env);
        return r;
    }
    *ret_env = env;
    return 0;
}

/* Appends the words of `list`, expanded when env is not NULL. */
static int add_words(const json_t *list, const json_t *env, json_t *words, struct muster_err *err)
{
    size_t index;
    json_t *each;
    json_array_foreach (list, index, each) {
        if (!json_is_string(each)) {
            return muster_fail(err, MUSTER_EDATA, "command and args: must be lists of text");
        }
        struct buf text;
        buf_init(&text, VALUE_BYTES_MAX);
        if (env) {
            pod_expand(json_string_value(each), env, &text);
        } else {
            buf_text(&text, json_string_value(each));
        }
        bool failed =
            buf_failed(&text) || json_array_append_new(words, json_string(buf_str(&text))) != 0;
        buf_done(&text);
        if (failed) {
            return muster_fail(err, MUSTER_ETOOBIG,
                               "command and args: a word is longer than %d bytes", VALUE_BYTES_MAX);
        }
    }
    return 0;
}

int pod_command(const json_t *container, const json_t *entrypoint, const json_t *env,
                json_t **ret_words, struct muster_err *err)
{
    const json_t *command = doc_at(container, "command");
    bool own = json_array_size(command) > 0;
    if (!own && json_array_size(entrypoint) == 0) {
        return muster_fail(err, MUSTER_EDATA,
                           "container %s has no command, and nothing stands for the entrypoint of "
                           "image %s",
                           doc_text(container, "name", ""), doc_text(container, "image", ""));
    }
    json_t *words = json_array();
    int r = own ? add_words(command, env, words, err) : add_words(entrypoint, NULL, words, err);
    r = r < 0 ? r : add_words(doc_at(container, "args"), env, words, err);
    if (r < 0) {
        json_decref(words);
        return r;
    }
    *ret_words = words;
    return 0;
}
