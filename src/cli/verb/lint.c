/* muster lint: reports every problem of every file, and lists files without problems, too. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "base/file.h"
#include "cli/submit/machine.h"
#include "cli/submit/server_check.h"
#include "job/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 8 << 20, PROBLEMS_MAX = 1000, TEXT_BYTES_MAX = 16 << 20 };

struct linter {
    struct cli *cli;
    json_t *list; /* with -o json: the problems */
    size_t errors;
    size_t warnings;
    size_t files;
};

static const char *const severities[] = {"error", "warning", "note"};

static void add_json(struct linter *l, const char *path, const struct job_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *p = &problems->list[i];
        json_array_append_new(l->list, json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:s?}", "file",
                                                 path, "line", p->line, "column", p->column,
                                                 "severity", severities[p->severity], "path",
                                                 p->path, "message", p->message, "hint", p->hint));
    }
}

static int print_text(struct linter *l, const char *path, const struct job_problems *problems)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    job_problems_print(problems, path, &text);
    if (problems->count == 0) {
        buf_format(&text, "%s: ok\n", path);
    }
    int r = cli_print(buf_str(&text), &l->cli->err);
    buf_done(&text);
    return r;
}

static int check(struct linter *l, const char *path, const char *text, size_t bytes)
{
    struct job_problems problems;
    struct job_file file = {0};
    job_problems_init(&problems, PROBLEMS_MAX);
    problems.cluster = cli_on_cluster(l->cli);
    problems.advice = true;
    problems.verbose = args_flag(&l->cli->args, "verbose");
    int r = job_file_read(text, bytes, &file, &problems, &l->cli->err);
    if (r == 0 && !problems.cluster) {
        machine_lint(&file, &problems);
    } else if (r == 0 && problems.errors == 0) {
        r = server_check(l->cli, path, &file, &problems);
    }
    for (size_t i = 0; i < problems.count; i++) {
        l->warnings += problems.list[i].severity == JOB_WARNING;
    }
    l->errors += problems.errors;
    l->files++;
    if (r == 0 && l->list) {
        add_json(l, path, &problems);
    } else if (r == 0) {
        r = print_text(l, path, &problems);
    }
    job_problems_done(&problems);
    job_file_done(&file);
    return r < 0 ? muster_wrap(&l->cli->err, "%s", path) : 0;
}

static int lint_file(struct linter *l, const char *path)
{
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = file_read(path, FILE_BYTES_MAX, &text, &bytes, &l->cli->err);
    return r < 0 ? r : check(l, strcmp(path, "-") == 0 ? "standard input" : path, text, bytes);
}

static int lint_all(struct linter *l)
{
    const char *path;
    size_t at = 0;
    int r = 0;
    while (r == 0 && (path = args_each(&l->cli->args, "filename", &at))) {
        r = lint_file(l, path);
    }
    for (size_t i = 0; r == 0 && i < l->cli->args.operand_count; i++) {
        r = lint_file(l, l->cli->args.operands[i]);
    }
    if (r == 0 && l->files == 0) {
        r = muster_fail(&l->cli->err, MUSTER_EINVAL, "lint: name a file: muster lint FILE");
    }
    return r;
}

int cli_lint(struct cli *cli)
{
    const char *format = NULL;
    int r = args_choice(&cli->args, "output", &format, &cli->err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *list = format ? json_array() : NULL;
    struct linter l = {.cli = cli, .list = list};
    r = lint_all(&l);
    if (r == 0 && list) {
        r = cli_print_doc(list, format, &cli->err);
    }
    if (r < 0) {
        return r;
    }
    if (!list && l.errors + l.warnings > 0) {
        fprintf(stderr, "%zu error%s, %zu warning%s\n", l.errors, l.errors == 1 ? "" : "s",
                l.warnings, l.warnings == 1 ? "" : "s");
    }
    return l.errors ? muster_code_exit(MUSTER_EDATA) : 0;
}
