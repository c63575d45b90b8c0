/* See overrides.h. */
#include "cli/submit/overrides.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_claim(struct cli *cli, const char *text, struct overrides *o)
{
    size_t length = strcspn(text, ":");
    if (length == 0 || text[length] != ':' || text[length + 1] != '/' ||
        length >= OVERRIDES_NAME_BYTES) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "run: --claim must be CLAIM:/PATH, such as results:/results, not '%s'",
                           text);
    }
    if (o->job.claim_count == OVERRIDES_CLAIMS_MAX) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "run: more than %d claims",
                           OVERRIDES_CLAIMS_MAX);
    }
    size_t at = o->job.claim_count++;
    snprintf(o->names[at], sizeof o->names[at], "%.*s", (int)length, text);
    o->claims[at] = (struct job_claim){o->names[at], text + length + 1};
    return 0;
}

/* Makes --workdir absolute, because a container's working directory must be absolute. */
static int read_folder(struct cli *cli, struct overrides *o)
{
    const char *given = o->job.working_dir;
    if (!given || !*given || *given == '/') {
        return 0;
    }
    muster_auto(free) char *here = getcwd(NULL, 0);
    if (!here) {
        return muster_fail(&cli->err, MUSTER_EOS, "cannot find the current folder: %s",
                           strerror(errno));
    }
    int length = snprintf(o->folder, sizeof o->folder, "%s/%s", here, given);
    if (length >= (int)sizeof o->folder) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "run: --workdir is too long");
    }
    o->job.working_dir = o->folder;
    return 0;
}

int overrides_read(struct cli *cli, struct overrides *ret)
{
    const struct args *args = &cli->args;
    ret->job = (struct job_override){
        .gpus = args_value(args, "gpus"),
        .cpu = args_value(args, "cpu"),
        .memory = args_value(args, "memory"),
        .working_dir = args_value(args, "workdir"),
        .claims = ret->claims,
    };
    int r = read_folder(cli, ret);
    size_t at = 0;
    for (const char *text; r == 0 && (text = args_each(args, "claim", &at));) {
        r = read_claim(cli, text, ret);
    }
    return r;
}

int overrides_apply(struct cli *cli, const struct overrides *overrides, struct objects *objects)
{
    for (size_t i = 0; i < objects->count; i++) {
        json_t *object = objects->list[i];
        int r = objects_is_job(object) ? job_override(object, &overrides->job, &cli->err) : 0;
        if (r < 0) {
            return muster_wrap(&cli->err, "run: job %s", doc_text(object, "metadata.name", "?"));
        }
    }
    return overrides_add_claims(cli, overrides, objects);
}

static json_t *claim_object(const char *name, const char *namespace)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s?}, s:{s:[s], s:{s:{s:s}}}}", "apiVersion", "v1",
                     "kind", "PersistentVolumeClaim", "metadata", "name", name, "namespace",
                     namespace, "spec", "accessModes", "ReadWriteMany", "resources", "requests",
                     "storage", "10Gi");
}

static bool holds(const struct cli *cli, const struct objects *objects, const char *name,
                  const char *namespace)
{
    for (size_t i = 0; i < objects->count; i++) {
        const json_t *object = objects->list[i];
        if (strcmp(doc_text(object, "kind", ""), "PersistentVolumeClaim") == 0 &&
            strcmp(doc_text(object, "metadata.name", ""), name) == 0 &&
            strcmp(objects_ref(cli, object).namespace, namespace) == 0) {
            return true;
        }
    }
    return false;
}

/* Puts the object before the jobs, which use it. */
static int insert(struct cli *cli, struct objects *objects, json_t *object)
{
    json_t **list = object ? realloc(objects->list, (objects->count + 1) * sizeof *list) : NULL;
    if (!list) {
        json_decref(object);
        return err_no_memory(&cli->err);
    }
    memmove(list + 1, list, objects->count * sizeof *list);
    list[0] = object;
    objects->list = list;
    objects->count++;
    return 0;
}

static int add_claims_of(struct cli *cli, const struct overrides *o, const json_t *job,
                         struct objects *objects, size_t *ret_added)
{
    const char *namespace = objects_ref(cli, job).namespace;
    for (size_t i = 0; i < o->job.claim_count; i++) {
        const char *name = o->claims[i].name;
        if (!holds(cli, objects, name, namespace)) {
            const char *own = doc_text(job, "metadata.namespace", NULL);
            int r = insert(cli, objects, claim_object(name, own));
            if (r < 0) {
                return r;
            }
            (*ret_added)++;
        }
    }
    return 0;
}

int overrides_add_claims(struct cli *cli, const struct overrides *overrides,
                         struct objects *objects)
{
    int r = 0;
    for (size_t i = 0; i < objects->count && r == 0; i++) {
        size_t added = 0;
        if (objects_is_job(objects->list[i])) {
            r = add_claims_of(cli, overrides, objects->list[i], objects, &added);
            i += added;
        }
    }
    return r;
}
