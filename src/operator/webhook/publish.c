/* See publish.h. */
#include "operator/webhook/publish.h"

#include "base/base64.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENCODED_BYTES_MAX = 1 << 20, SENTENCE_BYTES = 600 };

static const struct cluster_resource configurations = {"admissionregistration.k8s.io", "v1",
                                                       "validatingwebhookconfigurations",
                                                       "ValidatingWebhookConfiguration", false};
static const struct cluster_resource definitions = {
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};

/* The objects of deploy/overlays/webhook and deploy/overlays/images. */
static const struct {
    const struct cluster_resource *resource;
    const char *name;
} objects[] = {
    {&configurations, "muster-operator"},
    {&configurations, "muster-operator-images"},
    {&definitions, "pytorchjobs.kubeflow.org"},
};

enum { OBJECTS = sizeof objects / sizeof objects[0] };

struct publish {
    struct publish_options options;
    struct cluster_call *call;
    bool busy;
    size_t at; /* index in `objects` */
    char *authorities;
    char sentence[SENTENCE_BYTES]; /* "": no error */
};

/* ---- an object ---- */

static bool is_name(const char *const *names, const char *host, size_t length)
{
    while (*names && (strlen(*names) != length || strncmp(*names, host, length) != 0)) {
        names++;
    }
    return *names != NULL;
}

/* Whether the host of "https://HOST:PORT/PATH" is one of ours. */
static bool is_our_url(const struct publish_options *o, const char *url)
{
    const char *host = strncmp(url, "https://", 8) == 0 ? url + 8 : "";
    return is_name(o->names, host, strcspn(host, ":/"));
}

static bool is_ours(const struct publish_options *o, const json_t *client_config)
{
    return is_our_url(o, doc_text(client_config, "url", "")) ||
           (strcmp(doc_text(client_config, "service.name", ""), o->service) == 0 &&
            strcmp(doc_text(client_config, "service.namespace", ""), o->namespace) == 0);
}

static int put_into(json_t *client_config, const struct publish_options *o, const char *encoded,
                    bool *ret_changed)
{
    if (!is_ours(o, client_config) ||
        strcmp(doc_text(client_config, "caBundle", ""), encoded) == 0) {
        return 0;
    }
    *ret_changed = true;
    return doc_set_text(client_config, "caBundle", encoded);
}

/* Puts the list into the object's clauses that are ours; *ret_changed: whether one of them was
 * different. Pure. MUSTER_ENOMEM. */
static int put(json_t *object, const struct publish_options *options, const char *authorities,
               bool *ret_changed)
{
    struct buf encoded;
    size_t i;
    json_t *webhook;
    buf_init(&encoded, ENCODED_BYTES_MAX);
    base64_encode(authorities, strlen(authorities), &encoded);
    int r = buf_failed(&encoded) ? MUSTER_ENOMEM : 0;
    *ret_changed = false;
    json_array_foreach (json_object_get(object, "webhooks"), i, webhook) {
        r = r < 0 ? r
                  : put_into(json_object_get(webhook, "clientConfig"), options, buf_str(&encoded),
                             ret_changed);
    }
    r = r < 0 ? r
              : put_into(doc_at(object, "spec.conversion.webhook.clientConfig"), options,
                         buf_str(&encoded), ret_changed);
    buf_done(&encoded);
    return r;
}

/* ---- one after the other ---- */

static void look(struct publish *p);

static void next(struct publish *p)
{
    p->at++;
    if (p->at < OBJECTS) {
        look(p);
    } else {
        p->options.done(p->options.arg, p->sentence[0] ? p->sentence : NULL);
    }
}

static void fail(struct publish *p, const char *message)
{
    (void)snprintf(p->sentence, sizeof p->sentence, "%s %s: %s", objects[p->at].resource->kind,
                   objects[p->at].name, message);
    next(p);
}

static void ask(struct publish *p, enum cluster_verb verb, json_t *body, cluster_done_fn *done)
{
    struct muster_err err = MUSTER_ERR_INIT;
    const struct cluster_request request = {.verb = verb,
                                            .lane = CLUSTER_LANE_JOBS,
                                            .resource = objects[p->at].resource,
                                            .name = objects[p->at].name,
                                            .body = body};
    p->busy = p->options.cluster->backend->send(p->options.cluster, &request, done, p, &p->call,
                                                &err) == 0;
    if (!p->busy) {
        fail(p, err.text);
    }
}

static void on_written(void *arg, const struct cluster_answer *answer)
{
    struct publish *p = arg;
    p->busy = false;
    if (answer->code < 0) {
        fail(p, answer->message); /* also a conflict: the next round looks at it again */
        return;
    }
    log_event(LOG_INFO, "webhook.published", "%s %s has the list of authorities",
              objects[p->at].resource->kind, objects[p->at].name);
    next(p);
}

static void on_got(void *arg, const struct cluster_answer *answer)
{
    struct publish *p = arg;
    bool changed = false;
    p->busy = false;
    if (answer->code == MUSTER_ENOENT) {
        next(p);
        return;
    }
    json_t *object = answer->code == 0 ? json_deep_copy(answer->object) : NULL;
    if (answer->code < 0) {
        fail(p, answer->message);
    } else if (!object || put(object, &p->options, p->authorities, &changed) < 0) {
        fail(p, "out of memory");
    } else if (changed) {
        ask(p, CLUSTER_REPLACE, object, on_written);
    } else {
        next(p);
    }
    json_decref(object);
}

static void look(struct publish *p)
{
    ask(p, CLUSTER_GET, NULL, on_got);
}

void publish_begin(struct publish *p, const char *authorities)
{
    free(p->authorities);
    p->authorities = strdup(authorities);
    p->sentence[0] = '\0';
    p->at = 0;
    if (p->authorities) {
        look(p);
    } else {
        p->options.done(p->options.arg, "out of memory");
    }
}

/* ---- life ---- */

int publish_open(const struct publish_options *options, struct publish **ret,
                 struct muster_err *err)
{
    struct publish *p = calloc(1, sizeof *p);
    if (!p) {
        return err_no_memory(err);
    }
    p->options = *options;
    *ret = p;
    return 0;
}

void publish_close(struct publish *p)
{
    if (p) {
        if (p->busy) {
            p->options.cluster->backend->cancel(p->call);
        }
        free(p->authorities);
        free(p);
    }
}
