/* See preflight.h. */
#include "cli/submit/preflight.h"

#include "base/err.h"
#include "cli/submit/refusal.h"
#include "job/items.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { FIELD_BYTES = 256 };

/* Checks names over several files; the reader has checked them within each. */
static int require_unique(struct cli *cli, const struct objects *objects)
{
    muster_auto(doc) json_t *seen = json_object();
    for (size_t i = 0; i < objects->count; i++) {
        const struct kube_ref ref = objects_ref(cli, objects->list[i]);
        muster_auto(free) char *path = ref.resource && ref.name ? kube_path(&ref, NULL) : NULL;
        if (path && json_object_get(seen, path)) {
            return muster_fail(&cli->err, MUSTER_EDATA,
                               "%s %s is in two of the files; nothing was created",
                               ref.resource->singular, ref.name);
        }
        if (path) {
            json_object_set_new(seen, path, json_true());
        }
    }
    return 0;
}

int preflight_objects(struct cli *cli, const struct objects *objects, preflight_put *put,
                      void *context)
{
    int r = require_unique(cli, objects);
    assert(cli->kube);
    if (r < 0 || objects->count < 2) {
        return r;
    }
    kube_set_dry_run(cli->kube, true);
    for (size_t i = 0; i < objects->count && r == 0; i++) {
        muster_auto(doc) json_t *copy = json_deep_copy(objects->list[i]);
        r = copy ? put(context, copy) : err_no_memory(&cli->err);
    }
    kube_set_dry_run(cli->kube, false);
    return r;
}

static bool holds(const struct cli *cli, const struct objects *objects,
                  const struct kube_ref *claim)
{
    for (size_t i = 0; i < objects->count; i++) {
        struct kube_ref ref = objects_ref(cli, objects->list[i]);
        if (ref.resource == claim->resource && ref.name && strcmp(ref.name, claim->name) == 0 &&
            strcmp(ref.namespace, claim->namespace) == 0) {
            return true;
        }
    }
    return false;
}

struct claimant {
    struct cli *cli;
    const struct objects *objects;
    const json_t *job;
};

static int require_claim(void *context, const json_t *volume, const char *role, const char *at)
{
    (void)role;
    const struct claimant *c = context;
    const struct kube_ref claim = {
        .resource = kube_resource_find("persistentvolumeclaims"),
        .namespace = objects_ref(c->cli, c->job).namespace,
        .name = doc_text(volume, "persistentVolumeClaim.claimName", NULL),
    };
    if (!claim.name || holds(c->cli, c->objects, &claim)) {
        return 0;
    }
    int r = kube_get(c->cli->kube, &claim, NULL, &c->cli->err);
    if (r != MUSTER_ENOENT) {
        return r;
    }
    char path[2 * FIELD_BYTES], message[FIELD_BYTES];
    (void)snprintf(path, sizeof path, "%s.persistentVolumeClaim.claimName", at);
    (void)snprintf(message, sizeof message, "there is no persistentvolumeclaim \"%.100s\"",
                   claim.name);
    return refusal_at(c->cli, c->job, path, "add one to the file, before the job", message);
}

int preflight_claims(struct cli *cli, const struct objects *objects)
{
    int r = 0;
    for (size_t i = 0; i < objects->count && r == 0; i++) {
        struct claimant c = {cli, objects, objects->list[i]};
        r = job_each_item(c.job, "volumes", require_claim, &c);
    }
    return r;
}
