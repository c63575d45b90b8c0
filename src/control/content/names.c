/* See names.h. */
#include "control/content/names.h"

#include "base/doc.h"

#include <stdio.h>
#include <string.h>

static const char *without_slashes(char name[CONTROL_NAME_BYTES])
{
    for (char *slash = name; (slash = strchr(slash, '/')) != NULL;) {
        *slash = '-';
    }
    return name;
}

const char *control_service_name(const struct job *job, enum job_role role, int index,
                                 char ret_name[CONTROL_NAME_BYTES])
{
    snprintf(ret_name, CONTROL_NAME_BYTES, "%s-%s-%d", job->name, job_role_lower(role), index);
    return without_slashes(ret_name);
}

/* Names as ElasticDL v1.0.0 gives them. Its jobs have one Master. */
const char *control_pod_name(const struct job *job, enum job_role role, int index,
                             char ret_name[CONTROL_NAME_BYTES])
{
    if (!job->elasticdl_names) {
        return control_service_name(job, role, index, ret_name);
    }
    if (role == JOB_MASTER && index == 0) {
        snprintf(ret_name, CONTROL_NAME_BYTES, "elasticdl-%s-master", job->name);
    } else {
        snprintf(ret_name, CONTROL_NAME_BYTES, "%s-edljob-%s-%d", job->name, job_role_lower(role),
                 index);
    }
    return without_slashes(ret_name);
}

const char *control_claim_name(const json_t *claim_template, const char *pod_name,
                               char ret_name[2 * CONTROL_NAME_BYTES])
{
    snprintf(ret_name, 2 * CONTROL_NAME_BYTES, "%s-%s",
             doc_text(claim_template, "metadata.name", ""), pod_name);
    return ret_name;
}
