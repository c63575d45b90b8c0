/* See replace.h. */
#include "cli/follow/replace.h"

#include "base/time/clock.h"
#include "cli/follow/signals.h"
#include "cli/pod/waiter.h"
#include "cli/submit/objects.h"
#include "control/verdict.h"

#include <string.h>

enum { SIGNALS_MS = 250 };

int replace_find(struct cli *cli, const struct kube_ref *ref, json_t **ret)
{
    int r = kube_get(cli->kube, ref, ret, &cli->err);
    bool named = args_has(&cli->args, "name");
    if (r == 0 && verdict_of(*ret, NULL, false).end == VERDICT_RUNNING) {
        return muster_fail(&cli->err, MUSTER_EEXIST,
                           "job %s is running already (AlreadyExists); muster delete job %s ends "
                           "it, --%s gives this one another name",
                           ref->name, ref->name, named ? "name" : "job_name");
    }
    return r == MUSTER_ENOENT ? 0 : r;
}

static int wait_gone(struct cli *cli, const struct kube_ref *ref, const char *uid)
{
    int r = MUSTER_ETIMEDOUT;
    while (r == MUSTER_ETIMEDOUT && !signals_held) {
        r = waiter_run(cli, ref, waiter_gone, (void *)(uintptr_t)uid, clock_ms() + SIGNALS_MS);
    }
    return r == MUSTER_ETIMEDOUT ? MUSTER_EINTERRUPTED : r;
}

int replace_finished(struct cli *cli, const json_t *object)
{
    struct kube_ref ref = objects_ref(cli, object);
    muster_auto(doc) json_t *old = NULL;
    int r = replace_find(cli, &ref, &old);
    if (r == 0 && old) {
        r = kube_delete(cli->kube, &ref, -1, &cli->err);
    }
    const char *uid = doc_text(old, "metadata.uid", "");
    return r < 0 && r != MUSTER_ENOENT ? r : wait_gone(cli, &ref, uid);
}
