/* See restarts.h. */
#include "cli/submit/restarts.h"

#include "cli/submit/objects.h"
#include "control/status/attempt.h"
#include "job/annotations.h"

#include <string.h>

enum { RESTARTS_MAX = 99999 };

static int check_policies(struct cli *cli, const json_t *job)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        const char *policy = doc_text(replica, "restartPolicy", "OnFailure");
        if (strcmp(policy, "Never") != 0 && strcmp(policy, "ExitCode") != 0) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "run: --max-restarts restarts all ranks together; the "
                               "restartPolicy %s of %s restarts each alone: write restartPolicy: "
                               "Never into the file",
                               policy, role);
        }
    }
    return 0;
}

int restarts_set(struct cli *cli, json_t *job)
{
    int64_t most = -1;
    int r = args_number(&cli->args, "max-restarts", 0, RESTARTS_MAX, &most, &cli->err);
    if (r < 0 || most < 0) {
        return r;
    }
    r = check_policies(cli, job);
    return r < 0 ? r
                 : objects_set_annotation(cli, job, JOB_ANNOTATION_MAX_RESTARTS,
                                          json_sprintf("%lld", (long long)most));
}

/* The job's attempt, number 0 if there is none; the texts belong to the object. */
static struct control_attempt attempt_of(const json_t *object, int32_t *ret_most)
{
    struct job job;
    struct control_attempt attempt = {0, "", ""};
    if (job_read((json_t *)(uintptr_t)object, &job, NULL) == 0) {
        attempt = control_attempt_read(&job);
        *ret_most = job.max_restarts;
        job_done(&job);
    }
    return attempt;
}

int64_t restarts_of(const json_t *job)
{
    int32_t most;
    return attempt_of(job, &most).number;
}

void restarts_tell(const json_t *before, const json_t *job, struct buf *out)
{
    int32_t most = 0;
    struct control_attempt attempt = attempt_of(job, &most);
    if (attempt.number > 0 && attempt.number != restarts_of(before)) {
        buf_format(out, "restart %lld of %d: %s\n", (long long)attempt.number, (int)most,
                   attempt.last);
    }
}
