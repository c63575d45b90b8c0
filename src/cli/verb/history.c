/* muster history: lists the runs of jobs, and shows or removes what is kept of them. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "cli/pod/runs.h"
#include "cli/pod/target.h"
#include "cli/show/table.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 << 20, PATH_BYTES = 512 };

struct chosen {
    struct cli *cli;
    const char *job; /* NULL: any */
    int64_t run;     /* 0: any */
    int64_t limit;
    const char *format;
};

/* Makes "/muster/v1/history?…"; the names were checked (runs_check). */
static int list_path(const struct chosen *c, char ret[PATH_BYTES])
{
    const char *namespace = cli_namespace(c->cli);
    int used =
        snprintf(ret, PATH_BYTES, "/muster/v1/history?limit=%" PRId64 "&run=%" PRId64 "%s%s%s%s",
                 c->limit, c->run, namespace ? "&namespace=" : "", namespace ? namespace : "",
                 c->job ? "&job=" : "", c->job ? c->job : "");
    return used < PATH_BYTES ? 0
                             : muster_fail(&c->cli->err, MUSTER_ETOOBIG, "the name is too long");
}

static int print_text(struct buf *text, struct muster_err *err)
{
    int r = cli_print(buf_str(text), err);
    buf_done(text);
    return r;
}

static int print_list(const struct chosen *c, const json_t *answer)
{
    const json_t *runs = doc_at(answer, "runs");
    if (c->format && strcmp(c->format, "wide") != 0) {
        return cli_print_doc(answer, c->format, &c->cli->err);
    }
    if (json_array_size(runs) == 0) {
        fprintf(stderr, "No runs.\n");
    }
    struct table how = {
        .headers = true, .wide = c->format != NULL, .namespace = !cli_namespace(c->cli)};
    muster_auto(doc) json_t *table = runs_table(runs);
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    table_print(&how, table, &text);
    return print_text(&text, &c->cli->err);
}

/* Gets the list. A job or run that is named must exist. */
static int get_list(const struct chosen *c, const char *path, json_t **ret)
{
    int r = kube_call(c->cli->kube, "GET", path, NULL, ret, &c->cli->err);
    if (r < 0 || !c->job || json_array_size(doc_at(*ret, "runs")) > 0) {
        return r;
    }
    if (c->run > 0) {
        return muster_fail(&c->cli->err, MUSTER_ENOENT,
                           "there is no run %" PRId64 " of job %s (any more)", c->run, c->job);
    }
    return muster_fail(&c->cli->err, MUSTER_ENOENT,
                       "there is no job '%s' in namespace %s, and no run of one", c->job,
                       cli_namespace(c->cli));
}

static int list(const struct chosen *c)
{
    char path[PATH_BYTES];
    muster_auto(doc) json_t *answer = NULL;
    int r = list_path(c, path);
    r = r < 0 ? r : get_list(c, path, &answer);
    return r < 0 ? r : print_list(c, answer);
}

static int show(const struct chosen *c)
{
    muster_auto(doc) json_t *run = NULL;
    int r = runs_get(c->cli, c->job, c->run, &run);
    if (r < 0 || (c->format && strcmp(c->format, "wide") != 0)) {
        return r < 0 ? r : cli_print_doc(run, c->format, &c->cli->err);
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    runs_describe(run, clock_unix_ms(), &text);
    return print_text(&text, &c->cli->err);
}

static int prune(const struct chosen *c)
{
    char path[PATH_BYTES];
    muster_auto(doc) json_t *runs = NULL;
    muster_auto(doc) json_t *answer = NULL;
    int r = list_path(c, path);
    r = r < 0 ? r : get_list(c, path, &runs);
    r = r < 0 ? r : kube_call(c->cli->kube, "DELETE", path, NULL, &answer, &c->cli->err);
    if (r == 0) {
        printf("%lld runs removed\n", (long long)doc_int(answer, "removed", 0));
    }
    return r < 0 ? r : cli_print("", &c->cli->err);
}

static int choose(struct chosen *c)
{
    struct cli *cli = c->cli;
    struct target target = {0};
    int r = cli_expect_operands(cli, 0, 1);
    r = r < 0 ? r : args_choice(&cli->args, "output", &c->format, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "run", 1, INT_MAX, &c->run, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "limit", 1, INT_MAX, &c->limit, &cli->err);
    if (r == 0 && cli->args.operand_count > 0) {
        r = target_read(cli, cli->args.operands[0], &target);
        c->job = target.name;
    }
    r = r < 0 ? r : runs_check(cli, &target);
    if (r == 0 && c->run > 0 && !c->job) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "history: --run needs a job: muster history JOB --run N");
    }
    if (r == 0 && c->job && !cli_namespace(cli)) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "history: a job is in one namespace; leave out JOB or --all-namespaces");
    }
    return r;
}

int cli_history(struct cli *cli)
{
    struct chosen c = {.cli = cli, .limit = 0};
    int r = choose(&c);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    if (r < 0) {
        return r;
    }
    if (args_flag(&cli->args, "prune")) {
        return prune(&c);
    }
    return c.run > 0 ? show(&c) : list(&c);
}
