/* See config/kubeconfig.h. */
#include "kube/config/kubeconfig.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/yaml/yaml.h"
#include "kube/config/exec_plugin.h"

#include <stdlib.h>
#include <string.h>

int kubeconfig_init(struct kubeconfig *config, struct muster_err *err)
{
    *config = (struct kubeconfig){json_object(), json_object(), json_object(), NULL, strdup("")};
    if (!config->clusters || !config->users || !config->contexts || !config->names) {
        kubeconfig_done(config);
        return err_no_memory(err);
    }
    return 0;
}

void kubeconfig_done(struct kubeconfig *config)
{
    json_decref(config->clusters);
    json_decref(config->users);
    json_decref(config->contexts);
    free(config->current);
    free(config->names);
    *config = (struct kubeconfig){0};
}

struct source {
    const char *file, *folder;
};

static int add_entry(json_t *entries, const char *name, json_t *is, const struct source *source)
{
    if (json_object_get(entries, name)) {
        return 0; /* the first one counts */
    }
    return json_object_set_new(
        entries, name,
        json_pack("{s:s, s:s, s:O}", "at", source->file, "folder", source->folder, "is", is));
}

/* Adds the entries of the list at `list`: {name:, `key`: {…}}. */
static int add_list(json_t *entries, const json_t *doc, const char *list, const char *key,
                    const struct source *source, struct muster_err *err)
{
    const json_t *items = doc_at(doc, list);
    size_t i;
    json_t *item;
    if (items && !json_is_array(items)) {
        return muster_fail(err, MUSTER_ECONFIG, "%s: %s is not a list", source->file, list);
    }
    json_array_foreach (items, i, item) {
        const char *name = doc_text(item, "name", "");
        json_t *is = doc_at(item, key);
        if (!*name || !json_is_object(is)) {
            return muster_fail(err, MUSTER_ECONFIG, "%s: %s[%zu] needs name and %s", source->file,
                               list, i, key);
        }
        if (add_entry(entries, name, is, source) < 0) {
            return err_no_memory(err);
        }
    }
    return 0;
}

static int add_name(struct kubeconfig *config, const char *file, struct muster_err *err)
{
    char *names = NULL;
    if (asprintf(&names, "%s%s%s", config->names, *config->names ? ":" : "", file) < 0) {
        return err_no_memory(err);
    }
    free(config->names);
    config->names = names;
    return 0;
}

static int add_document(struct kubeconfig *config, const json_t *doc, const struct source *source,
                        struct muster_err *err)
{
    if (!json_is_object(doc)) {
        return muster_fail(err, MUSTER_ECONFIG, "%s is no kubeconfig", source->file);
    }
    int r = add_list(config->clusters, doc, "clusters", "cluster", source, err);
    r = r < 0 ? r : add_list(config->users, doc, "users", "user", source, err);
    r = r < 0 ? r : add_list(config->contexts, doc, "contexts", "context", source, err);
    const char *current = doc_text(doc, "current-context", "");
    if (r == 0 && !config->current && *current) {
        config->current = strdup(current);
        r = config->current ? 0 : err_no_memory(err);
    }
    return r;
}

int kubeconfig_add(struct kubeconfig *config, const char *text, const char *file,
                   const char *folder, struct muster_err *err)
{
    const struct source source = {file, folder};
    struct yaml_stream yaml;
    int r = add_name(config, file, err);
    r = r < 0 ? r : yaml_load(text, strlen(text), &yaml_limits_default, &yaml, err);
    if (r < 0) {
        return r;
    }
    if (yaml.fault_count > 0) {
        r = muster_fail(err, MUSTER_ECONFIG, "%s:%d:%d: %s", file, yaml.faults[0].place.line,
                        yaml.faults[0].place.column, yaml.faults[0].message);
    } else if (yaml.document_count > 0 && yaml.documents[0].doc) {
        r = add_document(config, yaml.documents[0].doc, &source, err);
    }
    yaml_done(&yaml); /* an empty file has no entries, and is not an error */
    return r;
}

static const json_t *entry(const json_t *entries, const char *what, const char *name,
                           const struct kubeconfig *config, struct muster_err *err)
{
    const json_t *found = json_object_get(entries, name);
    if (!found) {
        struct buf names;
        const char *key;
        json_t *unused;
        buf_init(&names, 400);
        json_object_foreach ((json_t *)(uintptr_t)entries, key, unused) {
            buf_format(&names, "%s%s", names.used ? ", " : "", key);
        }
        (void)muster_fail(err, MUSTER_ECONFIG, "no %s \"%.100s\" in %.200s (there are: %s)", what,
                          name, *config->names ? config->names : "KUBECONFIG or ~/.kube/config",
                          *buf_str(&names) ? buf_str(&names) : "none");
        buf_done(&names);
    }
    return found;
}

/* Copies a text from the entry's field; "" counts as missing, as in Go. */
static int take_text(char **ret, const json_t *found, const char *field, struct muster_err *err)
{
    const char *value = doc_text(doc_at(found, "is"), field, "");
    free(*ret);
    *ret = *value ? strdup(value) : NULL;
    return *value && !*ret ? err_no_memory(err) : 0;
}

/* Takes the text from base64 in FIELD-data, or else the name of a file from FIELD. */
static int take_data(char **ret_text, char **ret_file, const json_t *found, const char *field,
                     struct muster_err *err)
{
    char data[64];
    size_t bytes = 0;
    snprintf(data, sizeof data, "%s-data", field);
    const char *encoded = doc_text(doc_at(found, "is"), data, "");
    if (*encoded) {
        int r = base64_decode(encoded, ret_text, &bytes, err);
        return r < 0 ? muster_wrap(err, "%s: %s", doc_text(found, "at", ""), data) : 0;
    }
    const char *path = doc_text(doc_at(found, "is"), field, "");
    if (!*path) {
        return 0;
    }
    const char *folder = *path == '/' ? "" : doc_text(found, "folder", "");
    int written = asprintf(ret_file, "%s%s%s", folder, *folder ? "/" : "", path);
    *ret_file = written < 0 ? NULL : *ret_file;
    return written < 0 ? err_no_memory(err) : 0;
}

static int take_cluster(struct target *t, const json_t *found, struct muster_err *err)
{
    int r = take_text(&t->server, found, "server", err);
    r = r < 0 ? r : take_text(&t->tls_server_name, found, "tls-server-name", err);
    r = r < 0 ? r : take_text(&t->proxy, found, "proxy-url", err);
    r = r < 0 ? r : take_data(&t->ca_pem, &t->ca_file, found, "certificate-authority", err);
    t->insecure = doc_bool(doc_at(found, "is"), "insecure-skip-tls-verify", false);
    return r;
}

/* Refuses the ways to log in that kubectl knows but this does not, because the server would refuse
 * the request. */
static int refuse_unknown(const json_t *found, struct muster_err *err)
{
    static const char *const unknown[] = {"auth-provider", "as", "as-uid", "as-groups"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        if (doc_at(doc_at(found, "is"), unknown[i])) {
            return muster_fail(err, MUSTER_EUNSUPPORTED,
                               "%s: a user with \"%s\" is not supported: use a certificate, a "
                               "token, a token file or an exec plugin",
                               doc_text(found, "at", ""), unknown[i]);
        }
    }
    return 0;
}

/* Takes the exec plugin; it is not needed if there is a token. */
static int take_exec(struct target *t, const json_t *found, struct muster_err *err)
{
    json_t *exec = doc_at(doc_at(found, "is"), "exec");
    if (!exec || t->token || t->token_file) {
        return 0;
    }
    int r = exec_plugin_check(exec, err);
    if (r < 0) {
        return muster_wrap(err, "%s", doc_text(found, "at", ""));
    }
    t->exec = json_incref(exec);
    t->exec_folder = strdup(doc_text(found, "folder", ""));
    return t->exec_folder ? 0 : err_no_memory(err);
}

static int take_user(struct target *t, const json_t *found, struct muster_err *err)
{
    char *unused = NULL;
    int r = refuse_unknown(found, err);
    r = r < 0 ? r : take_data(&t->cert_pem, &t->cert_file, found, "client-certificate", err);
    r = r < 0 ? r : take_data(&t->key_pem, &t->key_file, found, "client-key", err);
    r = r < 0 ? r : take_text(&t->token, found, "token", err);
    r = r < 0 ? r : take_data(&unused, &t->token_file, found, "tokenFile", err);
    r = r < 0 ? r : take_text(&t->user, found, "username", err);
    r = r < 0 ? r : take_exec(t, found, err);
    free(unused);
    return r < 0 ? r : take_text(&t->password, found, "password", err);
}

int kubeconfig_target(const struct kubeconfig *config, const char *context, struct target *ret,
                      struct muster_err *err)
{
    struct target t = {0};
    const char *name = context ? context : config->current;
    if (!name && !*config->names) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "there is no kubeconfig: neither by --kubeconfig or KUBECONFIG, nor at "
                           "~/.kube/config");
    }
    if (!name) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "%s names no current-context: kubectl config use-context chooses one",
                           config->names);
    }
    const json_t *chosen = entry(config->contexts, "context", name, config, err);
    const json_t *is = doc_at(chosen, "is");
    const char *user_name = doc_text(is, "user", "");
    const json_t *cluster =
        chosen ? entry(config->clusters, "cluster", doc_text(is, "cluster", ""), config, err)
               : NULL;
    const json_t *user =
        cluster && *user_name ? entry(config->users, "user", user_name, config, err) : NULL;
    if (!cluster || (*user_name && !user)) {
        return MUSTER_ECONFIG;
    }
    int r = take_text(&t.namespace, chosen, "namespace", err);
    r = r < 0 ? r : take_cluster(&t, cluster, err);
    r = r < 0 || !user ? r : take_user(&t, user, err);
    if (r < 0) {
        target_done(&t);
        return r;
    }
    *ret = t;
    return 0;
}
