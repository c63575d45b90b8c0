/* See gang.h. */
#include "control/content/gang.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/content/resources.h"

#include <string.h>

/* ---- who places the pods ---- */

static bool names_another(const struct control_gang *gang, const struct job_replica *replica)
{
    const char *named = doc_text(replica->template, "spec.schedulerName", "");
    return *named && strcmp(named, gang->scheduler) != 0;
}

/* Counts the replica types that name another scheduler; with `another` false, the others. */
static int count(const struct control_gang *gang, const struct job *job, bool another)
{
    int found = 0;
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        const struct job_replica *replica = &job->replica[role];
        found += replica->present && names_another(gang, replica) == another;
    }
    return found;
}

bool control_has_gang(const struct control_gang *gang, const struct job *job)
{
    return gang->kind != CONTROL_GANG_NONE && count(gang, job, false) > 0;
}

bool control_splits_gang(const struct control_gang *gang, const struct job *job)
{
    return control_has_gang(gang, job) && count(gang, job, true) > 0;
}

/* ---- the group ---- */

static const json_t *policy_of(const struct job *job, const char *field)
{
    return json_object_get(doc_at(job->object, "spec.runPolicy.schedulingPolicy"), field);
}

static int32_t min_member(const struct job *job)
{
    const json_t *given = policy_of(job, "minAvailable");
    return given ? (int32_t)json_integer_value(given) : job_total_replicas(job);
}

/* Returns the resources that the job states, or else the requests of the first minAvailable
 * pods. */
static json_t *min_resources(const struct job *job)
{
    const json_t *given = policy_of(job, "minResources");
    return given ? json_deep_copy(given) : control_resources_of(job, min_member(job));
}

static void set_text(struct build *b, json_t *spec, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    build_text(b, spec, key, text && *text ? text : NULL);
}

json_t *control_gang_spec(const struct control_gang *gang, const struct job *job)
{
    struct build b = {0};
    json_t *spec = build_value(&b, json_object());
    build_int(&b, spec, "minMember", min_member(job));
    if (gang->kind == CONTROL_GANG_VOLCANO) {
        set_text(&b, spec, "queue", policy_of(job, "queue"));
        set_text(&b, spec, "priorityClassName", policy_of(job, "priorityClass"));
    } else if (policy_of(job, "scheduleTimeoutSeconds")) {
        build_set(&b, spec, "scheduleTimeoutSeconds",
                  json_copy((json_t *)policy_of(job, "scheduleTimeoutSeconds")));
    }
    json_t *resources = min_resources(job);
    if (resources && json_object_size(resources) == 0) {
        json_decref(resources);
    } else {
        build_set(&b, spec, "minResources", resources);
    }
    return build_end(&b, spec);
}

bool control_gang_admits(const struct control_gang *gang, const json_t *group)
{
    const char *phase = doc_text(group, "status.phase", "");
    return gang->kind != CONTROL_GANG_VOLCANO || (*phase && strcmp(phase, "Pending") != 0);
}

/* ---- the pods ---- */

json_t *control_join_gang(const struct control_gang *gang, const struct job *job,
                          enum job_role role, json_t *pod)
{
    struct build b = {0};
    json_t *metadata = build_object_at(&b, pod, "metadata");
    json_t *spec = build_object_at(&b, pod, "spec");
    if (!*doc_text(spec, "schedulerName", "")) {
        build_text(&b, spec, "schedulerName", gang->scheduler);
    }
    if (gang->kind == CONTROL_GANG_VOLCANO) {
        json_t *notes = build_object_at(&b, metadata, "annotations");
        build_text(&b, notes, "scheduling.k8s.io/group-name", job->name);
        build_text(&b, notes, "volcano.sh/task-spec", job_role_lower(role));
    } else {
        build_text(&b, build_object_at(&b, metadata, "labels"), "scheduling.x-k8s.io/pod-group",
                   job->name);
    }
    return build_end(&b, pod);
}
