/* See owner.h. */
#include "cli/submit/owner.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <stdio.h>

int owner_claim(struct cli *cli, struct objects *objects)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < objects->count; i++) {
        json_t *metadata = json_object_get(objects->list[i], "metadata");
        if (!objects_is_job(objects->list[i]) &&
            json_object_set_new(metadata, "ownerReferences", json_array()) < 0) {
            r = err_no_memory(&cli->err);
        }
    }
    objects->are_the_jobs = true;
    return r;
}

void owner_note(struct cli *cli, const struct objects *objects, const json_t *job)
{
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:[{s:s, s:s, s:s, s:s}]}}", "metadata", "ownerReferences", "apiVersion",
                  doc_text(job, "apiVersion", ""), "kind", doc_text(job, "kind", ""), "name",
                  doc_text(job, "metadata.name", ""), "uid", doc_text(job, "metadata.uid", ""));
    for (size_t i = 0; objects->are_the_jobs && i < objects->count; i++) {
        struct kube_ref ref = objects_ref(cli, objects->list[i]);
        struct muster_err err = MUSTER_ERR_INIT;
        if (!objects_is_job(objects->list[i]) &&
            (!patch || kube_patch(cli->kube, &ref, patch, NULL, &err) < 0)) {
            (void)fprintf(stderr, "muster: warning: %s %s stays when job %s is deleted: %s\n",
                          ref.resource->kind, ref.name, doc_text(job, "metadata.name", ""),
                          patch ? err.text : "no memory");
        }
    }
}
