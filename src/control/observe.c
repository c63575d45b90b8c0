/* See observe.h. */
#include "control/observe.h"

#include "base/doc.h"
#include "control/objects.h"
#include "control/status/attempt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool control_owns(const char *job_uid, const json_t *object)
{
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), index, each) {
        if (doc_bool(each, "controller", false)) {
            return strcmp(doc_text(each, "uid", ""), job_uid) == 0;
        }
    }
    return false;
}

/* Returns 7 for "<job>-worker-7"; 0 for a name that does not end in a number. */
static int trailing_index(const char *name)
{
    const char *dash = strrchr(name, '-');
    char *end = NULL;
    long index = dash ? strtol(dash + 1, &end, 10) : 0;
    return end && end != dash + 1 && *end == '\0' && 0 <= index && index <= INT32_MAX ? (int)index
                                                                                      : 0;
}

/* Reads role and index; the name must be exactly the one that the job gives. */
static bool parse_name(const struct job *job, control_namer *namer, const char *name,
                       enum job_role *ret_role, int *ret_index)
{
    int index = trailing_index(name);
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        char expected[CONTROL_NAME_BYTES];
        if (strcmp(name, namer(job, role, index, expected)) == 0) {
            *ret_role = role;
            *ret_index = index;
            return true;
        }
    }
    return false;
}

static struct control_member member_of(const struct job *job, int64_t attempt, control_namer *namer,
                                       const json_t *object)
{
    struct control_member m = {
        .object = object,
        .name = doc_text(object, "metadata.name", ""),
        .uid = doc_text(object, "metadata.uid", ""),
        .terminating = doc_at(object, "metadata.deletionTimestamp") != NULL,
        .cluster_phase = control_phase_of(object),
    };
    m.known = parse_name(job, namer, m.name, &m.role, &m.index);
    m.phase = m.known ? control_own_phase(&job->replica[m.role], object) : m.cluster_phase;
    m.earlier = control_attempt_of_pod(object) < attempt;
    m.in_range = m.known && m.index < job->replica[m.role].replicas && !m.earlier;
    return m;
}

const char *control_rank_phase(const json_t *object, const json_t *pod)
{
    static const char *const words[] = {"Pending", "Running", "Succeeded", "Failed"};
    enum control_phase phase = control_phase_of(pod);
    struct job job;
    bool may_have_others = json_array_size(doc_at(pod, "status.containerStatuses")) > 1;
    if (may_have_others && job_read((json_t *)object, &job, NULL) == 0) {
        phase = member_of(&job, 0, control_pod_name, pod).phase;
        job_done(&job);
    }
    return words[phase];
}

static int order(const struct control_member *a, bool known, enum job_role role, int index)
{
    if (a->known != known) {
        return a->known ? -1 : 1;
    }
    if (a->role != role) {
        return a->role < role ? -1 : 1;
    }
    return (a->index > index) - (a->index < index);
}

static int compare(const void *a, const void *b)
{
    const struct control_member *x = a;
    const struct control_member *y = b;
    int by_place = order(x, y->known, y->role, y->index);
    return by_place ? by_place : strcmp(x->uid, y->uid);
}

static int collect(const struct job *job, int64_t attempt, control_namer *namer,
                   const json_t *objects, struct control_member **ret_list, size_t *ret_count)
{
    size_t most = json_array_size(objects);
    struct control_member *list = calloc(most + 1, sizeof *list);
    if (!list) {
        return MUSTER_ENOMEM;
    }
    size_t count = 0;
    size_t index;
    json_t *each;
    json_array_foreach (objects, index, each) {
        if (control_owns(job->uid, each)) {
            list[count++] = member_of(job, attempt, namer, each);
        }
    }
    qsort(list, count, sizeof *list, compare);
    *ret_list = list;
    *ret_count = count;
    return 0;
}

static void count_pod(struct control_count *count, const struct control_member *pod)
{
    count->active += pod->phase == CONTROL_RUNNING && !pod->terminating;
    count->succeeded += pod->phase == CONTROL_SUCCEEDED;
    count->failed += pod->phase == CONTROL_FAILED_PHASE;
    count->broken += pod->phase == CONTROL_FAILED_PHASE && !pod->terminating;
}

int control_observe(const struct job *job, const struct control_view *view,
                    struct control_observed *ret, struct muster_err *err)
{
    struct control_observed o = {.job = job, .view = view};
    if (collect(job, control_attempt_read(job).number, control_pod_name, view->pods, &o.pods,
                &o.pod_count) != 0 ||
        collect(job, 0, control_service_name, view->services, &o.services, &o.service_count) != 0) {
        control_observed_done(&o);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a job's pods");
    }
    for (size_t i = 0; i < o.pod_count; i++) {
        if (o.pods[i].in_range) {
            count_pod(&o.count[o.pods[i].role], &o.pods[i]);
        }
    }
    *ret = o;
    return 0;
}

void control_observed_done(struct control_observed *o)
{
    free(o->pods);
    free(o->services);
    *o = (struct control_observed){0};
}

static const struct control_member *find(const struct control_member *list, size_t count,
                                         enum job_role role, int index)
{
    assert(role < JOB_ROLE_COUNT && index >= 0);
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order(&list[middle], true, role, index) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < count && order(&list[low], true, role, index) == 0;
    return found ? &list[low] : NULL;
}

const struct control_member *control_find_pod(const struct control_observed *o, enum job_role role,
                                              int index)
{
    return find(o->pods, o->pod_count, role, index);
}

const struct control_member *control_find_service(const struct control_observed *o,
                                                  enum job_role role, int index)
{
    return find(o->services, o->service_count, role, index);
}
