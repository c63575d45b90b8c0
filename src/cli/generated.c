/* See generated.h: the options of the command line handed to job/generate.h, and a claim it names
 * made beside the job. */
#include "cli/generated.h"

#include "base/err.h"
#include "job/generate.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES_MAX = 256, CLAIM_BYTES = 256 };

struct generator {
    struct cli *cli;
    struct job_command command;
    const char *env[VARIABLES_MAX + 1];
    char claim[CLAIM_BYTES];
};

static int read_numbers(struct generator *g)
{
    int64_t ranks = 0;
    int64_t gpus = 0;
    struct muster_err *err = &g->cli->err;
    int r = args_number(&g->cli->args, "ranks", 1, JOB_RANKS_MAX, &ranks, err);
    if (r == 0) {
        r = args_number(&g->cli->args, "gpus", 0, INT_MAX, &gpus, err);
    }
    g->command.ranks = (int32_t)ranks;
    g->command.gpus = (int32_t)gpus;
    return r;
}

static int read_env(struct generator *g)
{
    size_t count = 0;
    size_t at = 0;
    for (const char *text; (text = args_each(&g->cli->args, "env", &at));) {
        if (!strchr(text, '=') || *text == '=') {
            return muster_fail(&g->cli->err, MUSTER_EINVAL,
                               "run: --env must be NAME=VALUE, not '%s'", text);
        }
        if (count == VARIABLES_MAX) {
            return muster_fail(&g->cli->err, MUSTER_EINVAL, "run: more than %d variables",
                               VARIABLES_MAX);
        }
        g->env[count++] = text;
    }
    g->command.env = count ? g->env : NULL;
    return 0;
}

static int read_claim(struct generator *g)
{
    const char *text = args_value(&g->cli->args, "claim");
    if (!text) {
        return 0;
    }
    size_t length = strcspn(text, ":");
    if (length == 0 || text[length] != ':' || text[length + 1] != '/' || length >= CLAIM_BYTES) {
        return muster_fail(&g->cli->err, MUSTER_EINVAL,
                           "run: --claim must be CLAIM:/PATH, such as results:/results, not '%s'",
                           text);
    }
    snprintf(g->claim, sizeof g->claim, "%.*s", (int)length, text);
    g->command.claim = g->claim;
    g->command.claim_path = text + length + 1;
    return 0;
}

/* The last --image without "=": with one it says what an image runs (objects_annotate). */
static const char *plain_image(const struct args *args)
{
    const char *image = NULL;
    size_t at = 0;
    for (const char *text; (text = args_each(args, "image", &at));) {
        image = strchr(text, '=') ? image : text;
    }
    return image;
}

static json_t *claim_object(const char *name, const char *namespace)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s?}, s:{s:[s], s:{s:{s:s}}}}", "apiVersion", "v1",
                     "kind", "PersistentVolumeClaim", "metadata", "name", name, "namespace",
                     namespace, "spec", "accessModes", "ReadWriteMany", "resources", "requests",
                     "storage", "10Gi");
}

int generated_job(struct cli *cli, struct objects *ret)
{
    struct generator g = {.cli = cli};
    const struct args *args = &cli->args;
    int r = read_numbers(&g);
    r = r < 0 ? r : read_env(&g);
    r = r < 0 ? r : read_claim(&g);
    if (r == 0 && args->operand_count == 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "run: say what to run: muster run -n %d -- COMMAND", (int)g.command.ranks);
    }
    g.command.command = args->operands;
    g.command.name = args_value(args, "name");
    g.command.namespace = args_value(args, "namespace");
    g.command.image = plain_image(args);
    g.command.cpu = args_value(args, "cpu");
    g.command.memory = args_value(args, "memory");
    g.command.working_dir = args_value(args, "workdir");
    json_t *job = NULL;
    r = r < 0 ? r : job_from_command(&g.command, &job, &cli->err);
    if (r < 0) {
        return r;
    }
    json_t **list = calloc(2, sizeof *list);
    if (!list) {
        json_decref(job);
        return err_no_memory(&cli->err);
    }
    *ret = (struct objects){.list = list};
    if (g.command.claim) {
        list[ret->count++] = claim_object(g.claim, g.command.namespace);
    }
    list[ret->count++] = job;
    return 0;
}
