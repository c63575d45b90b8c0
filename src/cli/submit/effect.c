/* See effect.h. */
#include "cli/submit/effect.h"

#include "base/err.h"
#include "job/annotations.h"
#include "job/gpus.h"

#include <string.h>

#define SPECS "spec.pytorchReplicaSpecs"

int effect_check_dry_run(struct cli *cli)
{
    static const char *const at_the_end[] = {"results", "notify", "after-end"};
    for (size_t i = 0; i < sizeof at_the_end / sizeof at_the_end[0]; i++) {
        if (args_has_flag(&cli->args, "dry-run") && args_has_flag(&cli->args, at_the_end[i])) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "run: --dry-run runs nothing, so --%s has no effect: leave one of "
                               "them out",
                               at_the_end[i]);
        }
    }
    return 0;
}

/* ---- Files without a job ---- */

static size_t count_jobs(const struct objects *objects)
{
    size_t count = 0;
    for (size_t i = 0; i < objects->count; i++) {
        count += objects_is_job(objects->list[i]);
    }
    return count;
}

static int check_jobs(struct cli *cli, const struct objects *objects)
{
    static const char *const of_jobs[] = {"env",     "env-file",  "network", "runtime",
                                          "backend", "share-gpu", "no-gpu",  "all-ranks"};
    for (size_t i = 0; i < sizeof of_jobs / sizeof of_jobs[0]; i++) {
        if (args_has_flag(&cli->args, of_jobs[i]) && count_jobs(objects) == 0) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "%s: --%s has no effect: the file contains no PyTorchJob",
                               cli->args.command->name, of_jobs[i]);
        }
    }
    return 0;
}

/* ---- GPUs ---- */

static bool any_requests_gpu(const struct objects *objects)
{
    bool any = false;
    for (size_t i = 0; i < objects->count; i++) {
        any = any || job_gpus_of(objects->list[i]).most > 0;
    }
    return any;
}

/* Whether -n counts GPUs (gpu and auto): --no-gpu then has an effect on any machine that has GPUs,
 * because the ranks get none. */
static bool counts_gpus(const struct cli *cli)
{
    const char *ranks = args_has(&cli->args, "ranks") ? args_value(&cli->args, "ranks") : NULL;
    return ranks && (strcmp(ranks, "gpu") == 0 || strcmp(ranks, "auto") == 0);
}

static bool asks_for_gpus(const struct cli *cli)
{
    const char *gpus = args_has(&cli->args, "gpus") ? args_value(&cli->args, "gpus") : NULL;
    return gpus && strcmp(gpus, "0") != 0;
}

static int check_gpus(struct cli *cli, const struct objects *objects)
{
    bool none = args_has_flag(&cli->args, "no-gpu");
    bool share = args_has_flag(&cli->args, "share-gpu");
    if (none && (share || asks_for_gpus(cli))) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: --%s and --no-gpu exclude each other",
                           cli->args.command->name, share ? "share-gpu" : "gpus");
    }
    const char *option = none ? "no-gpu" : share ? "share-gpu" : NULL;
    if (!option || counts_gpus(cli) || any_requests_gpu(objects)) {
        return 0;
    }
    return muster_fail(&cli->err, MUSTER_EINVAL,
                       "%s: --%s has no effect: no container requests GPUs (" JOB_GPU_RESOURCE
                       "%s), and ranks "
                       "that request none see none",
                       cli->args.command->name, option,
                       args_has(&cli->args, "gpus") ? "; --gpus N requests them" : "");
}

/* ---- --after-end ---- */

/* Whether the job's Workers may go on after its Master's success. */
static bool outlives_master(const json_t *job)
{
    const json_t *notes = doc_at(job, "metadata.annotations");
    const char *policy = json_string_value(json_object_get(notes, JOB_ANNOTATION_SUCCESS_POLICY));
    const char *clean = doc_text(job, "spec.runPolicy.cleanPodPolicy",
                                 doc_text(job, "spec.cleanPodPolicy", "None"));
    return (!policy || strcmp(policy, "AllRanks") != 0) && strcmp(clean, "None") == 0 &&
           doc_at(job, SPECS ".Master") && doc_int(job, SPECS ".Worker.replicas", 1) > 0 &&
           doc_at(job, SPECS ".Worker");
}

static int check_after_end(struct cli *cli, const struct objects *objects)
{
    bool effect = !args_has_flag(&cli->args, "after-end");
    for (size_t i = 0; i < objects->count; i++) {
        effect = effect || (objects_is_job(objects->list[i]) && outlives_master(objects->list[i]));
    }
    return effect ? 0
                  : muster_fail(&cli->err, MUSTER_EINVAL,
                                "run: --after-end has no effect: it is about Workers that go on "
                                "after their Master (cleanPodPolicy None, success policy "
                                "Default), and the file has no such job");
}

int effect_check(struct cli *cli, const struct objects *objects)
{
    int r = check_jobs(cli, objects);
    r = r < 0 ? r : check_gpus(cli, objects);
    return r < 0 ? r : check_after_end(cli, objects);
}
