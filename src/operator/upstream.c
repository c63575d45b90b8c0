/* See upstream.h. */
#include "operator/upstream.h"

#include "base/doc.h"
#include "base/time/timestamp.h"

#include <string.h>
#include <strings.h>

/* Returns the next value of a flag in `list` (args, command) from `at` on, given as --flag=value or
 * as two words; NULL: there are no more. */
static const char *next_value(const json_t *list, const char *flag, size_t *at)
{
    size_t bytes = strlen(flag);
    for (; *at < json_array_size(list); (*at)++) {
        const char *word = json_string_value(json_array_get(list, *at));
        word = word ? word + strspn(word, "-") : "";
        if (strncmp(word, flag, bytes) == 0 && word[bytes] == '=') {
            (*at)++;
            return word + bytes + 1;
        }
        if (strcmp(word, flag) == 0) {
            *at += 2;
            return json_string_value(json_array_get(list, *at - 1));
        }
    }
    return NULL;
}

static const json_t *container_of(const json_t *deployment)
{
    const json_t *all = doc_at(deployment, "spec.template.spec.containers");
    const json_t *named = doc_find(all, "name", UPSTREAM_DEPLOYMENT);
    return named ? named : json_array_get(all, 0);
}

static const char *const word_lists[] = {"command", "args"};

/* Whether the container enables PyTorchJobs; without the flag it enables all kinds. */
static bool enables_ours(const json_t *container)
{
    bool any = false;
    for (size_t i = 0; i < 2; i++) {
        const json_t *list = json_object_get(container, word_lists[i]);
        const char *scheme;
        for (size_t at = 0; (scheme = next_value(list, "enable-scheme", &at)) != NULL;) {
            any = true;
            if (strcasecmp(scheme, "pytorchjob") == 0) {
                return true;
            }
        }
    }
    return !any;
}

bool upstream_runs(const json_t *deployment)
{
    bool has_pods = doc_int(deployment, "spec.replicas", 1) > 0 ||
                    doc_int(deployment, "status.replicas", 0) > 0;
    return has_pods && enables_ours(container_of(deployment));
}

bool upstream_is_in(const json_t *deployment, const char *namespace)
{
    const json_t *container = container_of(deployment);
    const json_t *variable =
        doc_find(json_object_get(container, "env"), "name", "KUBEFLOW_NAMESPACE");
    const char *its = doc_text(variable, "value", "");
    for (size_t i = 0; i < 2; i++) {
        size_t at = 0;
        const char *value = next_value(json_object_get(container, word_lists[i]), "namespace", &at);
        its = value ? value : its;
    }
    return *its == '\0' || *namespace == '\0' || strcmp(its, namespace) == 0;
}

int upstream_find_webhook(const json_t *configuration, const char **ret_namespace)
{
    size_t index, inner;
    json_t *hook, *rule;
    *ret_namespace = UPSTREAM_NAMESPACE;
    json_array_foreach (json_object_get(configuration, "webhooks"), index, hook) {
        *ret_namespace = doc_text(hook, "clientConfig.service.namespace", UPSTREAM_NAMESPACE);
        json_array_foreach (json_object_get(hook, "rules"), inner, rule) {
            size_t at;
            json_t *resource;
            json_array_foreach (json_object_get(rule, "resources"), at, resource) {
                const char *name = json_string_value(resource);
                if (name && (strcmp(name, "pytorchjobs") == 0 || strcmp(name, "*") == 0)) {
                    return (int)index;
                }
            }
        }
    }
    return -1;
}

void upstream_say_kinds(const json_t *resources, struct buf *out)
{
    size_t index;
    json_t *each;
    json_array_foreach (json_object_get(resources, "resources"), index, each) {
        const char *kind = doc_text(each, "kind", "");
        bool is_object = strchr(doc_text(each, "name", "/"), '/') == NULL;
        if (is_object && strcmp(kind, "PyTorchJob") != 0) {
            buf_format(out, "%s%.63ss", out->used > 0 ? ", " : "", kind);
        }
    }
}

/* Whether the manager may be another operator. An API server names a writer by the first word of
 * its user agent. A person with kubectl is not an operator. */
static bool is_program(const char *manager)
{
    return *manager && strcmp(manager, "muster") != 0 && strncmp(manager, "kubectl", 7) != 0;
}

static int64_t written_at(const json_t *entry)
{
    bool status = strcmp(doc_text(entry, "subresource", ""), "status") == 0;
    return status ? timestamp_read(doc_text(entry, "time", NULL)) : TIMESTAMP_NONE;
}

const char *upstream_other_writer(const json_t *job, int64_t since_unix_ms)
{
    const json_t *entries = doc_at(job, "metadata.managedFields");
    const char *other = NULL;
    int64_t ours = TIMESTAMP_NONE;
    int64_t theirs = TIMESTAMP_NONE;
    size_t index;
    json_t *each;
    json_array_foreach (entries, index, each) {
        const char *manager = doc_text(each, "manager", "");
        int64_t at = written_at(each);
        if (at == TIMESTAMP_NONE) {
            continue;
        }
        if (strcmp(manager, "muster") == 0) {
            ours = at;
        } else if (is_program(manager) && (theirs == TIMESTAMP_NONE || at > theirs)) {
            theirs = at;
            other = manager;
        }
    }
    bool both = ours != TIMESTAMP_NONE && theirs != TIMESTAMP_NONE;
    return both && ours >= since_unix_ms && theirs > ours ? other : NULL;
}
