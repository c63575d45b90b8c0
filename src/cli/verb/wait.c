/* muster wait: waits until each object meets a condition, or is gone. */
#include "cli/command/verbs.h"

#include "base/time/clock.h"

#include "cli/pod/target.h"
#include "cli/pod/waiter.h"
#include "cli/submit/objects.h"
#include "control/verdict.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TYPE_BYTES = 128, WHY_BYTES = 512, NEVER = 1 };

struct wanted {
    bool gone;
    char type[TYPE_BYTES];
    char status[16];
    bool missing;        /* the object does not exist, so it will never meet the condition */
    bool over;           /* the job has ended without meeting the condition */
    char why[WHY_BYTES]; /* how it has ended */
};

/* Reads "delete", "condition=Ready" or "condition=Ready=False". */
static int read_wanted(struct cli *cli, struct wanted *ret)
{
    const char *text = args_value(&cli->args, "for");
    if (strcmp(text, "delete") == 0) {
        *ret = (struct wanted){.gone = true};
        return 0;
    }
    if (strncmp(text, "condition=", 10) != 0 || !text[10]) {
        return muster_fail(
            &cli->err, MUSTER_EINVAL,
            "wait: --for must be condition=TYPE, condition=TYPE=False or delete, not "
            "'%s'",
            text);
    }
    size_t length = strcspn(text + 10, "=");
    const char *status = text + 10 + length;
    snprintf(ret->type, sizeof ret->type, "%.*s", (int)length, text + 10);
    snprintf(ret->status, sizeof ret->status, "%s", *status ? status + 1 : "True");
    return 0;
}

static bool is_in_condition(const struct wanted *wanted, const json_t *object)
{
    size_t i;
    json_t *condition;
    json_array_foreach (doc_at(object, "status.conditions"), i, condition) {
        if (strcasecmp(doc_text(condition, "type", ""), wanted->type) == 0) {
            return strcasecmp(doc_text(condition, "status", ""), wanted->status) == 0;
        }
    }
    return false;
}

/* Whether the wait is over. The conditions of a job that has ended do not change any more. */
static bool is_decided(void *context, const json_t *object)
{
    struct wanted *wanted = context;
    wanted->missing = !object;
    if (!object || is_in_condition(wanted, object)) {
        return true;
    }
    if (!objects_is_job(object)) {
        return false;
    }
    const struct verdict verdict = verdict_of(object, NULL, false);
    wanted->over = verdict.end != VERDICT_RUNNING;
    snprintf(wanted->why, sizeof wanted->why, "%s", wanted->over ? verdict.message : "");
    return wanted->over;
}

static int say_never(struct wanted *wanted, const char *name)
{
    bool is_true = strcasecmp(wanted->status, "True") == 0;
    cli_say("job %s is over and will not be %s%s%s: %s", name, wanted->type, is_true ? "" : "=",
            is_true ? "" : wanted->status, wanted->why);
    wanted->over = false;
    return NEVER;
}

static int wait_for(struct cli *cli, struct target *target, struct wanted *wanted, int64_t until_ms)
{
    if (!target->resource) {
        target->resource = kube_resource_find("pytorchjobs");
    }
    struct kube_ref ref = {target->resource, cli_namespace(cli), target->name, NULL};
    int r = wanted->gone ? waiter_run(cli, &ref, waiter_gone, (void *)"", until_ms)
                         : waiter_run(cli, &ref, is_decided, wanted, until_ms);
    if (r == MUSTER_ETIMEDOUT) {
        return muster_fail(&cli->err, r, "timed out waiting for %s to %s%s", target->name,
                           wanted->gone ? "go" : "be ", wanted->type);
    }
    if (r == 0 && wanted->missing) {
        return muster_fail(&cli->err, MUSTER_ENOENT, "there is no %s '%s' in namespace %s",
                           target->resource->singular, target->name, cli_namespace(cli));
    }
    if (r == 0 && wanted->over) {
        return say_never(wanted, target->name);
    }
    if (r == 0) {
        printf("%s/%s %s\n", target->resource->singular, target->name,
               wanted->gone ? "deleted" : "condition met");
    }
    return r;
}

int cli_wait(struct cli *cli)
{
    struct wanted wanted = {0};
    struct targets targets;
    int64_t timeout_ms = 0;
    int r = read_wanted(cli, &wanted);
    r = r < 0 ? r : args_duration(&cli->args, "timeout", &timeout_ms, &cli->err);
    r = r < 0 ? r : targets_read(cli, true, &targets);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    int64_t until_ms = clock_ms() + timeout_ms;
    for (size_t i = 0; r == 0 && i < targets.count; i++) {
        if (!targets.list[i].name) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "wait: which %s? give a name, or job/%s for a job that is called so",
                               targets.list[i].resource->plural, cli->args.operands[0]);
        }
        r = wait_for(cli, &targets.list[i], &wanted, until_ms);
    }
    return r;
}
