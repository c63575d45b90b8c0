/* See args.h. */
#include "cli/command/args.h"

#include "base/err.h"
#include "base/text.h"
#include "cli/command/elasticdl.h"
#include "cli/command/torchrun.h"
#include "job/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 128, NAME_BYTES = 64, COMMAND_BYTES = 512 };

/* The line being read. */
struct reader {
    struct args args;
    int argc;
    char **argv;
    int at;
    bool by_letter; /* the option that is being read */
    struct muster_err *err;
};

static bool is_run(const struct reader *r)
{
    return strcmp(r->args.command->name, "run") == 0;
}

/* `run train.py --epochs 3`: the option is the script's. */
static int unseparated_command(const struct reader *r)
{
    char command[COMMAND_BYTES];
    torchrun_command(r->args.operands[0], command, sizeof command);
    return muster_fail(r->err, MUSTER_EINVAL,
                       "run: '%s' is a script: muster run -n N -- %s %s … (on N ranks)",
                       r->args.operands[0], command, r->argv[r->at]);
}

/* As torchrun's options are called, too. */
static void dash_name(const char *name, char ret[NAME_BYTES])
{
    snprintf(ret, NAME_BYTES, "%s", name);
    for (char *c = ret; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

static int unknown_option(struct reader *r, const char *given)
{
    const char *known[OPTIONS_MAX] = {"help"};
    size_t count = 1;
    for (const struct cli_item *o = NULL;
         count < OPTIONS_MAX && (o = cli_next(r->args.command, o, CLI_ITEM_OPTION));) {
        known[count++] = o->name;
    }
    const char *near = text_nearest(given, known, count);
    const char *verb = r->args.command->name;
    char dashed[NAME_BYTES];
    dash_name(given, dashed);
    if (strcmp(given, "context") == 0 || strcmp(given, "kubeconfig") == 0) {
        return muster_fail(r->err, MUSTER_EINVAL,
                           "%s: works on this machine only, so --%s does not go with it; kubectl "
                           "--%s does what a cluster has of it",
                           verb, given, given);
    }
    const char *theirs = is_run(r) ? torchrun_option(dashed) : NULL;
    if (theirs) {
        return muster_fail(r->err, MUSTER_EINVAL, "run: %s", theirs);
    }
    if (is_run(r) && r->args.operand_count > 0 && torchrun_is_script(r->args.operands[0])) {
        return unseparated_command(r);
    }
    if (near) {
        return muster_fail(r->err, MUSTER_EINVAL,
                           "%s: unknown option --%s; did you mean --%s? (%s %s --help)", verb,
                           given, near, cli_tool->name, verb);
    }
    return muster_fail(r->err, MUSTER_EINVAL, "%s: unknown option --%s (%s %s --help)", verb, given,
                       cli_tool->name, verb);
}

/* An empty namespace (-n "$UNSET") is none, as kubectl has it: a path without one means other
 * things. */
static void give(struct reader *r, const struct cli_item *option, const char *value)
{
    if (!*value && strcmp(option->name, "namespace") == 0) {
        return;
    }
    const struct cli_item *written = option;
    if (strcmp(option->name, "nproc-per-node") == 0) {
        option = cli_option_find(r->args.command, "ranks", strlen("ranks"), 0);
    }
    r->args.given[r->args.given_count++] =
        (struct args_given){option, written, r->by_letter, value};
}

static int missing(struct reader *r, const struct cli_item *option)
{
    const char letter[] = {option->letter, '\0'};
    return muster_fail(r->err, MUSTER_EINVAL, "%s: %s%s needs a value: %s", r->args.command->name,
                       r->by_letter ? "-" : "--", r->by_letter ? letter : option->name,
                       option->argument);
}

/* `inline_value` is what follows "=" or a letter, or NULL. */
static int take_value(struct reader *r, const struct cli_item *option, const char *inline_value)
{
    if (!inline_value) {
        if (r->at + 1 >= r->argc) {
            return missing(r, option);
        }
        inline_value = r->argv[++r->at];
    }
    give(r, option, inline_value);
    return 0;
}

/* `--flag` alone is the opposite of its default; `--flag no` is as good as `--flag=no`. */
static int take_optional(struct reader *r, const struct cli_item *option, const char *value)
{
    const char *next = r->at + 1 < r->argc ? r->argv[r->at + 1] : "";
    if (!value && elasticdl_boolean(next) >= 0) {
        value = r->argv[++r->at];
    }
    if (value && elasticdl_boolean(value) < 0) {
        return muster_fail(r->err, MUSTER_EINVAL, "%s: --%s must be true or false, not '%s'",
                           r->args.command->name, option->name, value);
    }
    int truth = value ? elasticdl_boolean(value) : 1 - elasticdl_boolean(option->fallback);
    give(r, option, truth ? "true" : "false");
    return 0;
}

/* A flag that is known and not done: its default asks for nothing. */
static int take_refused(struct reader *r, const struct elasticdl_refused *flag, const char *value)
{
    const char *next = r->at + 1 < r->argc ? r->argv[r->at + 1] : "--";
    if (!value && elasticdl_takes(flag, next)) {
        value = r->argv[++r->at];
    }
    return value && elasticdl_is_fallback(flag, value)
               ? 0
               : muster_fail(r->err, MUSTER_EINVAL, "%s: --%s is not for muster: %s",
                             r->args.command->name, flag->name, flag->why);
}

static int read_long(struct reader *r, const char *text)
{
    size_t length = strcspn(text, "=");
    r->by_letter = false;
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    const struct cli_item *option = cli_option_find(r->args.command, text, length, 0);
    if (!option) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        const struct elasticdl_refused *flag = elasticdl_refused_find(r->args.command, name);
        return flag ? take_refused(r, flag, value) : unknown_option(r, name);
    }
    if (elasticdl_is_optional(option)) {
        return take_optional(r, option, value);
    }
    if (option->argument) {
        return take_value(r, option, value);
    }
    if (value && strcmp(value, "true") != 0) {
        return muster_fail(r->err, MUSTER_EINVAL, "%s: --%s takes no value", r->args.command->name,
                           option->name);
    }
    give(r, option, "");
    return 0;
}

static int unknown_letter(struct reader *r, char letter)
{
    const char *theirs = is_run(r) ? torchrun_letter(letter) : NULL;
    if (theirs) {
        return muster_fail(r->err, MUSTER_EINVAL, "run: %s", theirs);
    }
    if (is_run(r) && r->args.operand_count > 0 && torchrun_is_script(r->args.operands[0])) {
        return unseparated_command(r);
    }
    if (letter == 'n' && args_has(&r->args, "num_workers")) {
        return muster_fail(r->err, MUSTER_EINVAL,
                           "%s: unknown option -n; the number of workers is --num_workers N",
                           r->args.command->name);
    }
    return muster_fail(r->err, MUSTER_EINVAL, "%s: unknown option -%c (%s %s --help)",
                       r->args.command->name, letter, cli_tool->name, r->args.command->name);
}

/* `muster get pods -n 4`: who has just typed `muster run -n 4` means ranks, or lines. */
static int check_namespace(struct reader *r, const struct cli_item *option)
{
    const char *value = args_value(&r->args, option->name);
    if (strcmp(option->name, "namespace") != 0 || !value ||
        value[strspn(value, "0123456789")] != '\0') {
        return 0;
    }
    const char *verb = r->args.command->name;
    bool lines = args_has(&r->args, "tail");
    return muster_fail(r->err, MUSTER_EINVAL,
                       "%s: -n is the namespace here (the number of ranks in run and perf)%s%s; if "
                       "a namespace is called %s: --namespace %s",
                       verb, lines ? "; the last lines are --tail " : "", lines ? value : "", value,
                       value);
}

static int read_letters(struct reader *r, const char *letters)
{
    r->by_letter = true;
    for (; *letters; letters++) {
        const struct cli_item *option = cli_option_find(r->args.command, NULL, 0, *letters);
        if (!option) {
            return unknown_letter(r, *letters);
        }
        if (option->argument) {
            const char *rest = letters + 1 + (letters[1] == '=');
            int failed = take_value(r, option, *rest ? rest : NULL);
            return failed < 0 ? failed : check_namespace(r, option);
        }
        give(r, option, "");
    }
    return 0;
}

static void take_operand(struct reader *r, const char *word)
{
    r->args.operands[r->args.operand_count++] = word;
}

static void take_rest(struct reader *r)
{
    while (r->at < r->argc) {
        take_operand(r, r->argv[r->at++]);
    }
}

static bool starts_command(const struct reader *r)
{
    return is_run(r) && args_flag(&r->args, "ranks");
}

static int read_word(struct reader *r)
{
    const char *word = r->argv[r->at];
    if (strcmp(word, "--") == 0 && !r->args.separated) {
        r->args.separated = true;
        r->args.separated_after = r->args.operand_count;
        r->at++;
        take_rest(r);
        return 0;
    }
    if (word[0] == '-' && word[1] == '-') {
        return read_long(r, word + 2);
    }
    if (word[0] == '-' && word[1]) {
        return read_letters(r, word + 1);
    }
    if (starts_command(r)) {
        take_rest(r);
    } else {
        take_operand(r, word);
    }
    return 0;
}

/* Of an option that is given again the last value counts, so that a script can add to an alias. The
 * number of ranks has two spellings, of which each may be meant: two numbers are an error. */
static int check_ranks(const struct reader *r)
{
    const char *last = is_run(r) ? args_value(&r->args, "ranks") : NULL;
    for (size_t i = 0; last && i < r->args.given_count; i++) {
        const struct args_given *given = &r->args.given[i];
        if (strcmp(given->option->name, "ranks") == 0 && strcmp(given->value, last) != 0) {
            return muster_fail(r->err, MUSTER_EINVAL,
                               "run: -n (--nproc-per-node) is given twice: '%s' and '%s'",
                               given->value, last);
        }
    }
    return 0;
}

/* In the path of a request another word would mean other things: ".." all namespaces. */
static int check_label(const struct reader *r)
{
    for (size_t i = 0; i < r->args.given_count; i++) {
        const struct args_given *given = &r->args.given[i];
        const char *fault = strcmp(given->option->name, "namespace") == 0
                                ? job_text_fault(SCHEMA_LABEL, given->value)
                                : NULL;
        if (fault) {
            return muster_fail(r->err, MUSTER_EINVAL, "%s: --namespace %s, not '%.80s'",
                               r->args.command->name, fault, given->value);
        }
    }
    return 0;
}

int args_parse(const struct cli_command *command, int argc, char **argv, struct args *ret,
               struct muster_err *err)
{
    struct reader r = {.argc = argc, .argv = argv, .err = err};
    size_t letters = 1;
    for (int i = 0; i < argc; i++) {
        letters += strlen(argv[i]);
    }
    r.args.command = command;
    r.args.given = calloc(letters + (size_t)argc, sizeof *r.args.given);
    r.args.operands = calloc((size_t)argc + 1, sizeof *r.args.operands);
    r.args.owned = calloc((size_t)argc + 1, sizeof *r.args.owned);
    if (!r.args.given || !r.args.operands || !r.args.owned) {
        args_done(&r.args);
        return err_no_memory(err);
    }
    for (; r.at < r.argc; r.at++) {
        int failed = read_word(&r);
        if (failed < 0) {
            args_done(&r.args);
            return failed;
        }
    }
    int failed = check_ranks(&r);
    failed = failed < 0 ? failed : check_label(&r);
    if (failed < 0) {
        args_done(&r.args);
        return failed;
    }
    *ret = r.args;
    return 0;
}

int args_give(struct args *args, const char *option, char *value, struct muster_err *err)
{
    const struct cli_item *item = cli_option_find(args->command, option, strlen(option), 0);
    assert(item && args->owned_count < args->operand_count + args->separated);
    if (!value) {
        return err_no_memory(err);
    }
    args->owned[args->owned_count++] = value;
    args->given[args->given_count++] = (struct args_given){item, item, false, value};
    return 0;
}

void args_done(struct args *args)
{
    for (size_t i = 0; i < args->owned_count; i++) {
        free(args->owned[i]);
    }
    free(args->owned);
    free(args->given);
    free(args->operands);
    *args = (struct args){0};
}
