/* See checks.h. */
#include "cli/elasticdl/checks.h"

#include "base/text.h"
#include "cli/command/elasticdl.h"
#include "cli/elasticdl/values.h"
#include "job/generate.h"
#include "job/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "elasticdl-<job>-master" must fit a label of 63 characters. */
enum { NAME_BYTES_MAX = 46, RELAUNCHES_MAX = 100000, COUNT_MAX = INT32_MAX };

struct reader {
    const struct args *args;
    struct muster_err *err;
    struct checked checked;
};

static const char *value_of(const struct reader *t, const char *flag)
{
    const char *value = args_value(t->args, flag);
    return value ? value : "";
}

static const char *verb(const struct reader *t)
{
    return t->args->command->name;
}

static int refuse(const struct reader *t, const char *flag, const char *why)
{
    return muster_fail(t->err, MUSTER_EINVAL, "%s: --%s %s", verb(t), flag, why);
}

/* Checks that all values are UTF-8: a document cannot hold other text. */
static int check_text(const struct reader *t)
{
    for (size_t i = 0; i < t->args->given_count; i++) {
        const struct args_given *g = &t->args->given[i];
        if (!text_is_utf8(g->value, strlen(g->value))) {
            return refuse(t, g->option->name, "is not valid UTF-8");
        }
    }
    return 0;
}

static int read_name(struct reader *t)
{
    t->checked.name = value_of(t, "job_name");
    const char *fault = job_text_fault(SCHEMA_LABEL_1035, t->checked.name);
    char better[NAME_BYTES_MAX + 1] = "";
    if (!*t->checked.name) {
        return refuse(t, "job_name", "is required: the job's name");
    }
    bool too_long = strlen(t->checked.name) > NAME_BYTES_MAX;
    if (!fault && !too_long) {
        return 0;
    }
    job_text_mend(SCHEMA_LABEL_1035, t->checked.name, NAME_BYTES_MAX, better, sizeof better);
    return muster_fail(
        t->err, MUSTER_EINVAL, "%s: --job_name '%.80s' %s%s%s", verb(t), t->checked.name,
        fault ? fault : "is too long: elasticdl-NAME-master may not exceed 63 characters",
        *better ? "; perhaps " : "", better);
}

static int read_strategy(const struct reader *t)
{
    const char *strategy = value_of(t, "distribution_strategy");
    if (!*strategy || strcmp(strategy, "AllreduceStrategy") == 0) {
        return 0;
    }
    if (strcmp(strategy, "ParameterServerStrategy") == 0) {
        return refuse(t, "distribution_strategy=ParameterServerStrategy",
                      "is not for muster, which has no parameter servers: AllreduceStrategy");
    }
    if (strcmp(strategy, "Local") == 0) {
        return refuse(t, "distribution_strategy=Local",
                      "is not for muster: --num_workers=1 trains in one process");
    }
    static const char *const known[] = {"AllreduceStrategy"};
    const char *near = text_nearest(strategy, known, 1);
    return muster_fail(t->err, MUSTER_EINVAL,
                       "%s: --distribution_strategy must be AllreduceStrategy, not '%.80s'%s",
                       verb(t), strategy, near ? "; is it misspelt?" : "");
}

static int read_counts(struct reader *t)
{
    static const char *const without_effect[] = {"num_minibatches_per_task", "num_epochs",
                                                 "minibatch_size"};
    int64_t unused = 0;
    int r = args_number(t->args, "num_workers", 1, JOB_RANKS_MAX, &t->checked.workers, t->err);
    for (size_t i = 0; r == 0 && i < sizeof without_effect / sizeof without_effect[0]; i++) {
        r = args_number(t->args, without_effect[i], 0, COUNT_MAX, &unused, t->err);
    }
    return r < 0 ? r
                 : args_number(t->args, "relaunch_on_worker_failure", 0, RELAUNCHES_MAX,
                               &t->checked.relaunches, t->err);
}

/* Reads the restart policy. With Never, ElasticDL's master makes the pods again that it wants; here
 * ExitCode does that. */
static int read_restarts(struct reader *t)
{
    const char *unused = NULL;
    int off = 0;
    int r = args_choice(t->args, "restart_policy", &t->checked.restart_policy, t->err);
    r = r < 0 ? r : args_choice(t->args, "image_pull_policy", &unused, t->err);
    r = r < 0 ? r : values_relaunch_is_off(value_of(t, "aux_params"), &off, t->err);
    if (r == 0 && (off || t->checked.relaunches == 0)) {
        t->checked.relaunches = 0;
        t->checked.restart_policy = "Never";
    } else if (r == 0 && strcmp(t->checked.restart_policy, "Never") == 0) {
        t->checked.restart_policy = "ExitCode";
    }
    return r;
}

static int read_command(const struct reader *t)
{
    const char *command = value_of(t, "job_command");
    return command[strspn(command, " \t\n")]
               ? 0
               : refuse(t, "job_command", "is required: what each worker runs");
}

static bool read_share(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end;
}

static int check_class(const struct reader *t, const char *flag)
{
    const char *text = value_of(t, flag);
    double share;
    if (read_share(text, &share)) {
        return refuse(t, flag, "must be a PriorityClass: the coordinator is one pod");
    }
    const char *fault = *text ? job_text_fault(SCHEMA_SUBDOMAIN, text) : NULL;
    return fault ? refuse(t, flag, fault) : 0;
}

/* Reads a PriorityClass, or the share of workers that have the class "high" while the others have
 * "low". Of ElasticDL's two forms, high=0.5 rounds down and 0.5 rounds up. */
static int read_worker_priority(struct reader *t)
{
    static const char flag[] = "worker_pod_priority", named[] = "high=";
    const char *text = value_of(t, flag);
    bool is_named = strncmp(text, named, sizeof named - 1) == 0;
    double share;
    bool is_number = read_share(is_named ? text + sizeof named - 1 : text, &share);
    if (!is_number && !is_named) {
        t->checked.worker_class = args_text(t->args, flag);
        return check_class(t, flag);
    }
    if (!is_number || !(share >= 0 && share <= 1)) {
        return refuse(t, flag, "must be a PriorityClass, or a share of the workers from 0 to 1");
    }
    double high = share * (double)t->checked.workers;
    int64_t whole = (int64_t)high;
    t->checked.high_workers = whole + (!is_named && (double)whole < high);
    t->checked.worker_class = "low";
    return 0;
}

/* Checks that evaluate and predict have the flags that they need. */
static int read_task(const struct reader *t)
{
    static const char *const needed[] = {"validation_data", "prediction_data",
                                         "checkpoint_dir_for_init"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (args_has(t->args, needed[i]) && !*value_of(t, needed[i])) {
            return refuse(t, needed[i], "is required");
        }
    }
    return 0;
}

static int read_checkpoints(struct reader *t)
{
    struct checked *c = &t->checked;
    int r = args_number(t->args, "checkpoint_steps", 0, COUNT_MAX, &c->checkpoint_steps, t->err);
    r = r < 0 ? r
              : args_number(t->args, "keep_checkpoint_max", 0, COUNT_MAX, &c->checkpoints, t->err);
    if (r == 0 && !*value_of(t, "checkpoint_dir") && c->checkpoint_steps + c->checkpoints > 0) {
        return refuse(t, "checkpoint_dir",
                      "is required with --checkpoint_steps and --keep_checkpoint_max");
    }
    return r;
}

/* Reads a number that is about steps; evaluation and prediction have none. */
static int read_of_steps(struct reader *t, const char *flag, int64_t most, int64_t *ret)
{
    bool trains = !args_has(t->args, "validation_data") && !args_has(t->args, "prediction_data");
    int r = args_number(t->args, flag, 0, most, ret, t->err);
    return r == 0 && !trains && *ret > 0 ? refuse(t, flag, "is for training: this has no steps")
                                         : r;
}

static int read_level(const struct reader *t)
{
    static const char *const levels[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
    const char *level = value_of(t, "log_level");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(level, levels[i]) == 0) {
            return 0;
        }
    }
    return refuse(t, "log_level", "must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL");
}

int checks_read(const struct args *args, struct checked *ret, struct muster_err *err)
{
    struct reader t = {.args = args, .err = err};
    int r = check_text(&t);
    r = r < 0 ? r : read_name(&t);
    r = r < 0 ? r : read_strategy(&t);
    r = r < 0 ? r : read_counts(&t);
    r = r < 0 ? r : read_restarts(&t);
    r = r < 0 ? r : read_command(&t);
    r = r < 0 ? r : read_task(&t);
    r = r < 0 ? r : read_checkpoints(&t);
    r = r < 0 ? r : read_of_steps(&t, "max_step", COUNT_MAX, &t.checked.max_steps);
    r = r < 0 ? r : read_of_steps(&t, "micro_batches_per_worker", COUNT_MAX, &t.checked.each);
    r = r < 0 ? r : read_level(&t);
    t.checked.set_aside = elasticdl_boolean(value_of(&t, "set_aside")) > 0;
    r = r < 0 ? r : check_class(&t, "master_pod_priority");
    r = r < 0 ? r : read_worker_priority(&t);
    *ret = t.checked;
    return r;
}
