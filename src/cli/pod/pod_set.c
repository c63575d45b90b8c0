/* See pod_set.h. */
#include "cli/pod/pod_set.h"

#include "base/err.h"
#include "cli/pod/ranks.h"
#include "cli/pod/target.h"

#include <stdio.h>
#include <string.h>

enum { SELECTOR_BYTES = 256 };

static bool is_named(const json_t *pod, const char *name)
{
    return !name || strcmp(doc_text(pod, "metadata.name", ""), name) == 0;
}

static const json_t *find(const json_t *pods, const char *name)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (is_named(pod, name)) {
            return pod;
        }
    }
    return NULL;
}

static void choose_live(const json_t *live, const struct pod_set_query *query, json_t *chosen)
{
    size_t i;
    json_t *pod;
    json_array_foreach (live, i, pod) {
        if (is_named(pod, query->name)) {
            json_array_append(chosen, pod);
        }
    }
}

/* Chooses deleted pods from the newest to the oldest: only the newest pod of a name, unless earlier
 * ones are wanted. */
static void choose_gone(const json_t *gone, const struct pod_set_query *query, json_t *chosen,
                        json_t *uids)
{
    for (size_t i = json_array_size(gone); i-- > 0;) {
        json_t *pod = json_array_get(gone, i);
        const char *name = doc_text(pod, "metadata.name", "");
        if (is_named(pod, query->name) && (query->earlier || !find(chosen, name))) {
            json_array_append(chosen, pod);
            json_object_set_new(uids, doc_text(pod, "metadata.uid", ""), json_true());
        }
    }
}

/* Lists the pods of a cluster. A cluster keeps no logs of deleted pods. */
static int list_live(struct cli *cli, const char *namespace, const char *labels, json_t **ret)
{
    const struct kube_ref pods = {kube_resource_find("pods"), namespace, NULL, NULL};
    muster_auto(doc) json_t *list = NULL;
    int r = kube_list(cli->kube, &pods, &(struct kube_query){.labels = labels}, &list, &cli->err);
    *ret = r < 0 ? NULL : json_pack("{s:O}", "live", doc_at(list, "items"));
    return r < 0 || *ret ? r : err_no_memory(&cli->err);
}

static int list_all(struct cli *cli, const char *namespace, const char *labels, json_t **ret)
{
    muster_auto(free) char *path = kube_muster_path("namespaces", namespace, "pods", NULL);
    muster_auto(free) char *all =
        path ? kube_path_with(path, &(struct kube_query){.labels = labels}) : NULL;
    return all ? kube_call(cli->kube, "GET", all, NULL, ret, &cli->err)
               : muster_fail(&cli->err, MUSTER_ETOOBIG, "the selector is too long");
}

int pod_set_get(struct cli *cli, const char *namespace, const struct pod_set_query *query,
                struct pod_set *ret)
{
    muster_auto(doc) json_t *answer = NULL;
    muster_auto(doc) json_t *chosen = json_array();
    muster_auto(doc) json_t *uids = json_object();
    int r = cli_on_cluster(cli) ? list_live(cli, namespace, query->labels, &answer)
                                : list_all(cli, namespace, query->labels, &answer);
    if (r < 0) {
        return r;
    }
    choose_live(doc_at(answer, "live"), query, chosen);
    choose_gone(doc_at(answer, "gone"), query, chosen, uids);
    *ret = (struct pod_set){ranks_sort(chosen), muster_take(uids)};
    return 0;
}

bool pod_set_is_gone(const struct pod_set *set, const json_t *pod)
{
    return json_object_get(set->gone, doc_text(pod, "metadata.uid", "")) != NULL;
}

void pod_set_done(struct pod_set *set)
{
    json_decref(set->pods);
    json_decref(set->gone);
    *set = (struct pod_set){0};
}

/* The pods of a job that still exists. */
static int get_of_job(struct cli *cli, const char *job, bool earlier, struct pod_set *ret)
{
    char labels[SELECTOR_BYTES];
    snprintf(labels, sizeof labels, "training.kubeflow.org/job-name=%s", job);
    return pod_set_get(cli, cli_namespace(cli),
                       &(struct pod_set_query){.labels = labels, .earlier = earlier}, ret);
}

/* `missing` is the result of looking up the name among the objects. */
static int get_named(struct cli *cli, const char *name, bool earlier, int missing,
                     struct pod_set *ret)
{
    const struct muster_err why = cli->err;
    const struct pod_set_query query = {.name = name, .earlier = earlier};
    int r = pod_set_get(cli, cli_namespace(cli), &query, ret);
    if (r == 0 && json_array_size(ret->pods) == 0 && missing < 0) {
        pod_set_done(ret);
        cli->err = why;
        return missing;
    }
    return r;
}

int pod_set_find(struct cli *cli, const char *word, bool earlier, struct pod_set *ret,
                 json_t **ret_job)
{
    struct target target;
    muster_auto(doc) json_t *object = NULL;
    *ret_job = NULL;
    int r = target_read(cli, word, &target);
    if (r < 0) {
        return r;
    }
    const char *asked = target.resource ? target.resource->kind : "Pod";
    int found = target_find(cli, cli_namespace(cli), true, &target, &object);
    const char *kind = found < 0 ? asked : target.resource->kind;
    if (found < 0 && (found != MUSTER_ENOENT || strcmp(kind, "Pod") != 0)) {
        return found;
    }
    if (strcmp(kind, "Pod") == 0) {
        return get_named(cli, target.name, earlier, found, ret);
    }
    if (strcmp(kind, "PyTorchJob") != 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: only jobs and pods have logs and files",
                           cli->args.command->name);
    }
    r = get_of_job(cli, target.name, earlier, ret);
    if (r == 0) {
        *ret_job = muster_take(object);
    }
    return r;
}
