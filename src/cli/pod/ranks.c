/* See ranks.h. */
#include "cli/pod/ranks.h"

#include "base/doc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_TYPE "training.kubeflow.org/replica-type"
#define LABEL_INDEX "training.kubeflow.org/replica-index"

const char *ranks_main_container(const json_t *pod)
{
    const json_t *containers = doc_at(pod, "spec.containers");
    const json_t *pytorch = doc_find(containers, "name", "pytorch");
    return doc_text(pytorch ? pytorch : json_array_get(containers, 0), "name", "");
}

static const char *label_of(const json_t *pod, const char *label)
{
    return json_string_value(json_object_get(doc_at(pod, "metadata.labels"), label));
}

/* The rank of a Worker without RANK. The operator sets RANK if there is a Master; without a Master
 * the Workers' indices are the ranks (of nodes, if torchrun starts several processes in each). */
static const char *rank_of_worker(const json_t *pod)
{
    const char *type = label_of(pod, LABEL_TYPE);
    return type && strcmp(type, "worker") == 0 ? label_of(pod, LABEL_INDEX) : NULL;
}

static const char *find_rank(const json_t *pod)
{
    const char *main_name = ranks_main_container(pod);
    const char *rank = NULL; /* the last one counts, as in the container */
    size_t i;
    size_t j;
    json_t *container;
    json_t *variable;
    json_array_foreach (doc_at(pod, "spec.containers"), i, container) {
        json_array_foreach (doc_at(container, "env"), j, variable) {
            if (strcmp(doc_text(container, "name", ""), main_name) == 0 &&
                strcmp(doc_text(variable, "name", ""), "RANK") == 0) {
                rank = doc_text(variable, "value", NULL);
            }
        }
    }
    return rank ? rank : rank_of_worker(pod);
}

void ranks_label(const json_t *pod, char *ret, size_t size)
{
    const char *rank = find_rank(pod);
    const char *type = label_of(pod, LABEL_TYPE);
    const char *index = label_of(pod, LABEL_INDEX);
    if (rank) {
        snprintf(ret, size, "rank %s", rank);
    } else if (type && index) {
        snprintf(ret, size, "%s %s", type, index);
    } else {
        snprintf(ret, size, "%s", doc_text(pod, "metadata.name", "?"));
    }
}

long ranks_number(const json_t *pod)
{
    const char *rank = find_rank(pod);
    return rank ? strtol(rank, NULL, 10) : -1;
}

/* The key for sorting: the rank, or the replica index after all ranks. */
static long order_of(const json_t *pod)
{
    long rank = ranks_number(pod);
    const char *index = label_of(pod, LABEL_INDEX);
    if (rank >= 0) {
        return rank;
    }
    return index ? LONG_MAX / 2 + strtol(index, NULL, 10) : LONG_MAX;
}

/* Compares by rank, then by name; pods of one name from oldest to newest. */
static int by_rank(const json_t *a, const json_t *b)
{
    long ra = order_of(a);
    long rb = order_of(b);
    if (ra != rb) {
        return ra < rb ? -1 : 1;
    }
    int names = strcmp(doc_text(a, "metadata.name", ""), doc_text(b, "metadata.name", ""));
    return names ? names : doc_compare_versions(a, b);
}

json_t *ranks_sort(const json_t *pods)
{
    return doc_sorted(pods, by_rank);
}

const json_t *ranks_container_status(const json_t *pod, const char *container)
{
    const json_t *status = doc_find(doc_at(pod, "status.containerStatuses"), "name", container);
    return status ? status
                  : doc_find(doc_at(pod, "status.initContainerStatuses"), "name", container);
}
