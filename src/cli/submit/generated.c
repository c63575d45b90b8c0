/* See generated.h: the options of the command line handed to job/generate.h, and the claims they
 * name made beside the job. */
#include "cli/submit/generated.h"

#include "base/err.h"
#include "cli/submit/environment.h"
#include "cli/submit/overrides.h"
#include "cli/submit/program.h"
#include "job/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generator {
    struct cli *cli;
    struct job_command command;
    struct overrides overrides;
    char gpus[8]; /* GPUs of each rank, if -n counts the machine's GPUs */
};

/* Whether the text is "auto", "gpu" or "cpu", as for torchrun --nproc-per-node. */
static bool is_machine_word(const char *text)
{
    return strcmp(text, "auto") == 0 || strcmp(text, "gpu") == 0 || strcmp(text, "cpu") == 0;
}

static int64_t count_of(const json_t *capacity, const char *resource)
{
    const char *text = json_string_value(json_object_get(capacity, resource));
    return text ? strtoll(text, NULL, 10) : 0;
}

/* Counts a rank for each GPU, which the rank then gets, or for each processor of this machine. */
static int count_ranks(struct generator *g, const char *word, int64_t *ret)
{
    struct cli *cli = g->cli;
    muster_auto(doc) json_t *nodes = NULL;
    if (cli_on_cluster(cli)) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "run: -n %s counts what this machine has; give a cluster's job a number",
                           word);
    }
    int r = cli->kube ? 0 : cli_connect(cli, KUBE_START);
    r = r < 0 ? r : kube_call(cli->kube, "GET", "/api/v1/nodes", NULL, &nodes, &cli->err);
    if (r < 0) {
        return r;
    }
    const json_t *capacity = doc_at(nodes, "items.0.status.capacity");
    int64_t gpus = count_of(capacity, "nvidia.com/gpu");
    if (strcmp(word, "gpu") == 0 && gpus == 0) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "run: -n gpu: this machine has no GPU; -n cpu makes a rank for each "
                           "processor");
    }
    bool by_gpu = gpus > 0 && strcmp(word, "cpu") != 0;
    if (by_gpu && !args_flag(&cli->args, "no-gpu")) {
        snprintf(g->gpus, sizeof g->gpus, "1");
    }
    *ret = by_gpu ? gpus : count_of(capacity, "cpu");
    return 0;
}

static int read_ranks(struct generator *g)
{
    struct cli *cli = g->cli;
    const char *text = args_value(&cli->args, "ranks");
    int64_t ranks = 0;
    int r = 0;
    if (strcmp(text, "p") == 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "run: mpirun's -np: the number of ranks is -n N: muster run -n N -- "
                        "COMMAND");
    } else if (is_machine_word(text)) {
        r = count_ranks(g, text, &ranks);
    } else {
        r = args_number(&cli->args, "ranks", 1, JOB_RANKS_MAX, &ranks, &cli->err);
        if (r < 0 && !strpbrk(text, "0123456789 ")) {
            r = generated_explain_ranks(cli);
        }
    }
    g->command.ranks = (int32_t)ranks;
    return r;
}

int generated_explain_ranks(struct cli *cli)
{
    const char *text = args_value(&cli->args, "ranks");
    return muster_fail(&cli->err, MUSTER_EINVAL,
                       "run: -n is the number of ranks (a number, auto, gpu or cpu), not '%s'; a "
                       "namespace is --namespace %s",
                       text, text);
}

/* Reads whether the user sets variables that the job would set, too. The values are sent beside the
 * job. */
static int read_env(struct generator *g)
{
    const struct environment *environment = NULL;
    int r = environment_gather(g->cli, &environment);
    if (r == 0) {
        g->command.has_threads = environment_has(environment, "OMP_NUM_THREADS");
    }
    return r;
}

/* The last --image without "="; an --image with "=" says what an image runs (objects_annotate). */
static const char *plain_image(const struct args *args)
{
    const char *image = NULL;
    size_t at = 0;
    for (const char *text; (text = args_each(args, "image", &at));) {
        image = strchr(text, '=') ? image : text;
    }
    return image;
}

/* Puts the job, which is taken over, and the claims that its options name into *ret. */
static int add_claims(struct generator *g, json_t *job, struct objects *ret)
{
    struct objects objects = {.list = calloc(1, sizeof *objects.list)};
    if (!objects.list) {
        json_decref(job);
        return err_no_memory(&g->cli->err);
    }
    objects.list[objects.count++] = job;
    int r = overrides_add_claims(g->cli, &g->overrides, &objects);
    if (r < 0) {
        objects_done(&objects);
        return r;
    }
    *ret = objects;
    return 0;
}

int generated_job(struct cli *cli, struct objects *ret)
{
    struct generator g = {.cli = cli};
    const struct args *args = &cli->args;
    int r = read_ranks(&g);
    r = r < 0 ? r : read_env(&g);
    r = r < 0 ? r : overrides_read(cli, &g.overrides);
    r = r < 0 || cli_on_cluster(cli) ? r : program_check_command(cli);
    if (r == 0 && cli_on_cluster(cli) && !plain_image(args)) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "run: the pods of a cluster need an image that has COMMAND: --image IMAGE");
    }
    if (r == 0 && args->operand_count == 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "run: no command given: muster run -n %d -- COMMAND", (int)g.command.ranks);
    }
    g.command.command = args->operands;
    g.command.name = args_value(args, "name");
    g.command.namespace = args_value(args, "namespace");
    g.command.image = plain_image(args);
    g.command.override = g.overrides.job;
    if (*g.gpus && !g.command.override.gpus) {
        g.command.override.gpus = g.gpus;
    }
    json_t *job = NULL;
    r = r < 0 ? r : job_from_command(&g.command, &job, &cli->err);
    return r < 0 ? r : add_claims(&g, job, ret);
}
