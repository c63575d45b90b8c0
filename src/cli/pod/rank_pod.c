/* See rank_pod.h. */
#include "cli/pod/rank_pod.h"

#include "base/err.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/ranks.h"

#include <string.h>

enum { RANK_DIGITS_MAX = 6 };

/* The pod of this rank; for a pod without a RANK, its place in the list counts. */
static json_t *pod_of(const json_t *pods, long rank)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        long own = ranks_number(pod);
        if ((own < 0 ? (long)i : own) == rank) {
            return pod;
        }
    }
    return NULL;
}

static int choose(struct cli *cli, const struct pod_set *set, const char *job, long rank,
                  json_t **ret)
{
    json_t *pod = pod_of(set->pods, rank);
    size_t count = json_array_size(set->pods);
    if (!pod && count == 0) {
        return muster_fail(&cli->err, MUSTER_EAGAIN, "no rank of job %s has started", job);
    }
    if (!pod) {
        return muster_fail(&cli->err, MUSTER_ENOENT, "job %s has no rank %ld; it has %zu", job,
                           rank, count);
    }
    if (pod_set_is_gone(set, pod)) {
        return muster_fail(&cli->err, MUSTER_EGONE, "%s of job %s has ended",
                           doc_text(pod, "metadata.name", ""), job);
    }
    *ret = json_incref(pod);
    return 0;
}

int rank_pod_split(struct cli *cli, const char *word, char **ret_name, long *ret_rank)
{
    const char *colon = strrchr(word, ':');
    const char *digits = colon ? colon + 1 : "0";
    size_t length = strlen(digits);
    muster_auto(free) char *name = strndup(word, colon ? (size_t)(colon - word) : strlen(word));
    if (!name) {
        return err_no_memory(&cli->err);
    }
    if (length == 0 || length > RANK_DIGITS_MAX || strspn(digits, "0123456789") != length) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "'%s': a rank is a number, as in %s:0", word,
                           name);
    }
    *ret_rank = colon ? strtol(digits, NULL, 10) : -1;
    *ret_name = muster_take(name);
    return 0;
}

int rank_pod_find(struct cli *cli, const char *word, json_t **ret)
{
    struct pod_set set = {0};
    muster_auto(doc) json_t *job = NULL;
    muster_auto(free) char *name = NULL;
    long rank = -1;
    int r = rank_pod_split(cli, word, &name, &rank);
    r = r < 0 ? r : pod_set_find(cli, name, false, &set, &job);
    if (r < 0) {
        return r;
    }
    if (!job && rank >= 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL, "%s is a pod: it has one rank, and no :%ld", name,
                        rank);
    } else {
        r = choose(cli, &set, job ? doc_text(job, "metadata.name", name) : name,
                   !job       ? ranks_number(json_array_get(set.pods, 0))
                   : rank < 0 ? 0
                              : rank,
                   ret);
    }
    pod_set_done(&set);
    return r;
}
