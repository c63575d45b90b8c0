/* See run_objects.h. */
#include "cli/submit/run_objects.h"

#include "base/err.h"
#include "cli/submit/effect.h"
#include "cli/submit/environment.h"
#include "cli/submit/generated.h"
#include "cli/submit/images.h"
#include "cli/submit/input.h"
#include "cli/submit/overrides.h"
#include "cli/submit/program.h"
#include "cli/submit/restarts.h"

#include <stdlib.h>
#include <string.h>

struct request {
    struct cli *cli;
    struct objects *objects;
    size_t jobs;
};

/* Reads the jobs of the files, and changes them as this command line says. */
static int read_files(struct request *request)
{
    struct cli *cli = request->cli;
    struct overrides *overrides = calloc(1, sizeof *overrides);
    if (!overrides) {
        return err_no_memory(&cli->err);
    }
    int r = program_check_files(cli);
    r = r < 0 ? r : overrides_read(cli, overrides);
    r = r < 0 ? r
              : objects_read(cli, args_flag(&cli->args, "quiet") ? OBJECTS_QUIET : OBJECTS_ALL,
                             request->objects);
    r = r < 0 ? r : overrides_apply(cli, overrides, request->objects);
    free(overrides);
    return r;
}

static int check_words(struct cli *cli)
{
    const struct args *args = &cli->args;
    bool generated = args_flag(args, "ranks");
    if (generated && args_flag(args, "filename")) {
        bool number = strspn(args_value(args, "ranks"), "0123456789") > 0;
        return number ? muster_fail(&cli->err, MUSTER_EINVAL,
                                    "run: -f FILE and -n N exclude each other: a file says itself "
                                    "how many replicas it has")
                      : generated_explain_ranks(cli);
    }
    if (!generated && args->separated) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "run: the number of ranks is missing: muster run -n N -- COMMAND");
    }
    if (!generated && !args_flag(args, "filename") && args->operand_count == 0) {
        return muster_fail(
            &cli->err, MUSTER_EINVAL,
            "run: no command and no file given: muster run -n N -- COMMAND, on N ranks, or muster "
            "run -f FILE, a PyTorchJob");
    }
    return 0;
}

static int read_objects(struct request *request)
{
    struct cli *cli = request->cli;
    int r = check_words(cli);
    if (r == 0) {
        r = args_flag(&cli->args, "ranks") ? generated_job(cli, request->objects)
                                           : read_files(request);
    }
    for (size_t i = 0; r == 0 && i < request->objects->count; i++) {
        request->jobs += objects_is_job(request->objects->list[i]);
    }
    if (r == 0 && request->jobs == 0) {
        r = muster_fail(
            &cli->err, MUSTER_EDATA,
            "run: the file contains no PyTorchJob (muster create creates other objects)");
    }
    return r < 0 ? r : images_check(cli, request->objects);
}

int run_objects_set_deadline(struct cli *cli, json_t *job)
{
    int64_t timeout_ms = -1;
    int r = args_duration(&cli->args, "timeout", &timeout_ms, &cli->err);
    if (r < 0 || timeout_ms < 0) {
        return r;
    }
    if (timeout_ms == 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "%s: --timeout 0 would end the job at once; without --timeout it has "
                           "no limit",
                           cli->args.command->name);
    }
    return doc_set_int(job, "spec.runPolicy.activeDeadlineSeconds", (timeout_ms + 999) / 1000);
}

static int set_input(struct request *request, json_t *job)
{
    const char *rank = args_value(&request->cli->args, "stdin");
    if (rank && request->jobs > 1) {
        return muster_fail(&request->cli->err, MUSTER_EINVAL,
                           "run: --stdin fits one job; there are %zu", request->jobs);
    }
    size_t at = 0;
    for (const char *file; rank && (file = args_each(&request->cli->args, "filename", &at));) {
        if (strcmp(file, "-") == 0) {
            return muster_fail(&request->cli->err, MUSTER_EINVAL,
                               "run: standard input is the job file (-f -) or a rank's (--stdin), "
                               "not both");
        }
    }
    return rank ? input_annotate(job, rank, &request->cli->err) : 0;
}

/* Applies --name, --namespace and --timeout, which replace what the job itself says. */
static int change_object(struct request *request, json_t *object)
{
    struct cli *cli = request->cli;
    const char *name = args_value(&cli->args, "name");
    const char *namespace = args_value(&cli->args, "namespace");
    int r = 0;
    if (namespace) {
        r = doc_set_text(object, "metadata.namespace", namespace);
    }
    if (!objects_is_job(object)) {
        return r;
    }
    if (name && request->jobs > 1) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "run: --name fits one job; there are %zu",
                           request->jobs);
    }
    if (name && r == 0) {
        r = doc_set_text(object, "metadata.name", name);
    }
    r = r < 0 ? r : objects_set_policy(cli, object);
    r = r < 0 ? r : set_input(request, object);
    r = r < 0 ? r : restarts_set(cli, object);
    return r < 0 ? r : run_objects_set_deadline(cli, object);
}

int run_objects_read(struct cli *cli, struct objects *ret, size_t *ret_jobs)
{
    struct request request = {.cli = cli, .objects = ret};
    int r = read_objects(&request);
    r = r < 0 ? r : environment_check(cli);
    r = r < 0 ? r : effect_check(cli, ret);
    for (size_t i = 0; i < ret->count && r == 0; i++) {
        r = change_object(&request, ret->list[i]);
    }
    *ret_jobs = request.jobs;
    return r;
}

/* Prints a comment about what the file means elsewhere. */
static int print_comment(struct cli *cli)
{
    return args_has_flag(&cli->args, "ranks")
               ? cli_print(
                     "# muster.dev/success-policy: AllRanks makes this job succeed when every "
                     "rank has, with muster.\n# A cluster's operator judges the Master "
                     "alone.\n",
                     &cli->err)
               : 0;
}

int run_objects_print(struct cli *cli, const struct objects *objects, const char *format)
{
    int r = strcmp(format, "yaml") == 0 ? print_comment(cli) : 0;
    for (size_t i = 0; i < objects->count && r == 0; i++) {
        r = objects_annotate_options(cli, objects->list[i]);
        r = r < 0 ? r : cli_print_next(objects->list[i], i, format, &cli->err);
    }
    return r < 0 ? r : environment_say_lacking(cli);
}
