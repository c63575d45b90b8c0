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

/* The command line that is being read. */
struct reader {
    struct args args;
    int argc;
    char **argv;
    int at;
    bool by_letter; /* the option being read was given by its letter */
    struct muster_err *err;
};

static bool is_run(const struct reader *reader)
{
    return strcmp(reader->args.command->name, "run") == 0;
}

/* Refuses `run train.py --epochs 3`: the option belongs to the script. */
static int unseparated_command(const struct reader *reader)
{
    char command[COMMAND_BYTES];
    torchrun_command(reader->args.operands[0], command, sizeof command);
    return muster_fail(reader->err, MUSTER_EINVAL,
                       "run: '%s' is a script: muster run -n N -- %s %s … (on N ranks)",
                       reader->args.operands[0], command, reader->argv[reader->at]);
}

/* Writes the name with dashes: torchrun takes its options in both spellings. */
static void dash_name(const char *name, char ret[NAME_BYTES])
{
    snprintf(ret, NAME_BYTES, "%s", name);
    for (char *c = ret; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

static int unknown_option(struct reader *reader, const char *given)
{
    const char *known[OPTIONS_MAX] = {"help"};
    size_t count = 1;
    for (const struct cli_item *o = NULL;
         count < OPTIONS_MAX && (o = cli_next(reader->args.command, o, CLI_ITEM_OPTION));) {
        known[count++] = o->name;
    }
    const char *near = text_nearest(given, known, count);
    const char *verb = reader->args.command->name;
    char dashed[NAME_BYTES];
    dash_name(given, dashed);
    if (strcmp(given, "context") == 0 || strcmp(given, "kubeconfig") == 0) {
        return muster_fail(reader->err, MUSTER_EINVAL,
                           "%s: works on this machine only, so --%s cannot be used with it; on a "
                           "cluster, use kubectl --%s",
                           verb, given, given);
    }
    const char *theirs = is_run(reader) ? torchrun_option(dashed) : NULL;
    if (theirs) {
        return muster_fail(reader->err, MUSTER_EINVAL, "run: %s", theirs);
    }
    if (is_run(reader) && reader->args.operand_count > 0 &&
        torchrun_is_script(reader->args.operands[0])) {
        return unseparated_command(reader);
    }
    if (near) {
        return muster_fail(reader->err, MUSTER_EINVAL,
                           "%s: unknown option --%s; did you mean --%s? (%s %s --help)", verb,
                           given, near, cli_tool->name, verb);
    }
    return muster_fail(reader->err, MUSTER_EINVAL, "%s: unknown option --%s (%s %s --help)", verb,
                       given, cli_tool->name, verb);
}

/* Adds an option with its value. Ignores an empty namespace (-n "$UNSET"), as kubectl does: a
 * request path without a namespace would have another meaning. */
static void give(struct reader *reader, const struct cli_item *option, const char *value)
{
    if (!*value && strcmp(option->name, "namespace") == 0) {
        return;
    }
    const struct cli_item *written = option;
    if (strcmp(option->name, "nproc-per-node") == 0) {
        option = cli_option_find(reader->args.command, "ranks", strlen("ranks"), 0);
    }
    reader->args.given[reader->args.given_count++] =
        (struct args_given){option, written, reader->by_letter, value};
}

static int missing(struct reader *reader, const struct cli_item *option)
{
    const char letter[] = {option->letter, '\0'};
    return muster_fail(reader->err, MUSTER_EINVAL, "%s: %s%s needs a value: %s",
                       reader->args.command->name, reader->by_letter ? "-" : "--",
                       reader->by_letter ? letter : option->name, option->argument);
}

/* `inline_value` is the text after "=" or after the letter, or NULL. */
static int take_value(struct reader *reader, const struct cli_item *option,
                      const char *inline_value)
{
    if (!inline_value) {
        if (reader->at + 1 >= reader->argc) {
            return missing(reader, option);
        }
        inline_value = reader->argv[++reader->at];
    }
    give(reader, option, inline_value);
    return 0;
}

/* Without a value, `--flag` means the opposite of its default; `--flag no` means the same as
 * `--flag=no`. */
static int take_optional(struct reader *reader, const struct cli_item *option, const char *value)
{
    const char *next = reader->at + 1 < reader->argc ? reader->argv[reader->at + 1] : "";
    if (!value && elasticdl_boolean(next) >= 0) {
        value = reader->argv[++reader->at];
    }
    if (value && elasticdl_boolean(value) < 0) {
        return muster_fail(reader->err, MUSTER_EINVAL, "%s: --%s must be true or false, not '%s'",
                           reader->args.command->name, option->name, value);
    }
    int truth = value ? elasticdl_boolean(value) : 1 - elasticdl_boolean(option->fallback);
    give(reader, option, truth ? "true" : "false");
    return 0;
}

/* Handles a flag that muster knows but does not support: only its default is accepted, because that
 * requests nothing. */
static int take_refused(struct reader *reader, const struct elasticdl_refused *flag,
                        const char *value)
{
    const char *next = reader->at + 1 < reader->argc ? reader->argv[reader->at + 1] : "--";
    if (!value && elasticdl_takes(flag, next)) {
        value = reader->argv[++reader->at];
    }
    return value && elasticdl_is_fallback(flag, value)
               ? 0
               : muster_fail(reader->err, MUSTER_EINVAL, "%s: --%s is not for muster: %s",
                             reader->args.command->name, flag->name, flag->why);
}

static int read_long(struct reader *reader, const char *text)
{
    size_t length = strcspn(text, "=");
    reader->by_letter = false;
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    const struct cli_item *option = cli_option_find(reader->args.command, text, length, 0);
    if (!option) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        const struct elasticdl_refused *flag = elasticdl_refused_find(reader->args.command, name);
        return flag ? take_refused(reader, flag, value) : unknown_option(reader, name);
    }
    if (elasticdl_is_optional(option)) {
        return take_optional(reader, option, value);
    }
    if (option->argument) {
        return take_value(reader, option, value);
    }
    if (value && strcmp(value, "true") != 0) {
        return muster_fail(reader->err, MUSTER_EINVAL, "%s: --%s takes no value",
                           reader->args.command->name, option->name);
    }
    give(reader, option, "");
    return 0;
}

static int unknown_letter(struct reader *reader, char letter)
{
    const char *theirs = is_run(reader) ? torchrun_letter(letter) : NULL;
    if (theirs) {
        return muster_fail(reader->err, MUSTER_EINVAL, "run: %s", theirs);
    }
    if (is_run(reader) && reader->args.operand_count > 0 &&
        torchrun_is_script(reader->args.operands[0])) {
        return unseparated_command(reader);
    }
    if (letter == 'n' && args_has(&reader->args, "num_workers")) {
        return muster_fail(reader->err, MUSTER_EINVAL,
                           "%s: unknown option -n; the number of workers is --num_workers N",
                           reader->args.command->name);
    }
    return muster_fail(reader->err, MUSTER_EINVAL, "%s: unknown option -%c (%s %s --help)",
                       reader->args.command->name, letter, cli_tool->name,
                       reader->args.command->name);
}

/* Refuses a number as namespace (`muster get pods -n 4`): a user who has just typed `muster run -n
 * 4` means ranks, or lines. */
static int check_namespace(struct reader *reader, const struct cli_item *option)
{
    const char *value = args_value(&reader->args, option->name);
    if (strcmp(option->name, "namespace") != 0 || !value ||
        value[strspn(value, "0123456789")] != '\0') {
        return 0;
    }
    const char *verb = reader->args.command->name;
    bool lines = args_has(&reader->args, "tail");
    return muster_fail(reader->err, MUSTER_EINVAL,
                       "%s: -n is the namespace here (the number of ranks in run and perf)%s%s; if "
                       "a namespace is called %s: --namespace %s",
                       verb, lines ? "; the last lines are --tail " : "", lines ? value : "", value,
                       value);
}

static int read_letters(struct reader *reader, const char *letters)
{
    reader->by_letter = true;
    for (; *letters; letters++) {
        const struct cli_item *option = cli_option_find(reader->args.command, NULL, 0, *letters);
        if (!option) {
            return unknown_letter(reader, *letters);
        }
        if (option->argument) {
            const char *rest = letters + 1 + (letters[1] == '=');
            int r = take_value(reader, option, *rest ? rest : NULL);
            return r < 0 ? r : check_namespace(reader, option);
        }
        give(reader, option, "");
    }
    return 0;
}

static void take_operand(struct reader *reader, const char *word)
{
    reader->args.operands[reader->args.operand_count++] = word;
}

static void take_rest(struct reader *reader)
{
    while (reader->at < reader->argc) {
        take_operand(reader, reader->argv[reader->at++]);
    }
}

static bool starts_command(const struct reader *reader)
{
    return is_run(reader) && args_flag(&reader->args, "ranks");
}

static int read_word(struct reader *reader)
{
    const char *word = reader->argv[reader->at];
    if (strcmp(word, "--") == 0 && !reader->args.separated) {
        reader->args.separated = true;
        reader->args.separated_after = reader->args.operand_count;
        reader->at++;
        take_rest(reader);
        return 0;
    }
    if (word[0] == '-' && word[1] == '-') {
        return read_long(reader, word + 2);
    }
    if (word[0] == '-' && word[1]) {
        return read_letters(reader, word + 1);
    }
    if (starts_command(reader)) {
        take_rest(reader);
    } else {
        take_operand(reader, word);
    }
    return 0;
}

/* The last value of a repeated option counts, so that a script can add to an alias. The number of
 * ranks has two spellings, and two different numbers are an error. */
static int check_ranks(const struct reader *reader)
{
    const char *last = is_run(reader) ? args_value(&reader->args, "ranks") : NULL;
    for (size_t i = 0; last && i < reader->args.given_count; i++) {
        const struct args_given *given = &reader->args.given[i];
        if (strcmp(given->option->name, "ranks") == 0 && strcmp(given->value, last) != 0) {
            return muster_fail(reader->err, MUSTER_EINVAL,
                               "run: -n (--nproc-per-node) is given twice: '%s' and '%s'",
                               given->value, last);
        }
    }
    return 0;
}

/* Checks that each --namespace is a label. Other text would change the meaning of a request's path:
 * ".." would address all namespaces. */
static int check_label(const struct reader *reader)
{
    for (size_t i = 0; i < reader->args.given_count; i++) {
        const struct args_given *given = &reader->args.given[i];
        const char *fault = strcmp(given->option->name, "namespace") == 0
                                ? job_text_fault(SCHEMA_LABEL, given->value)
                                : NULL;
        if (fault) {
            return muster_fail(reader->err, MUSTER_EINVAL, "%s: --namespace %s, not '%.80s'",
                               reader->args.command->name, fault, given->value);
        }
    }
    return 0;
}

int args_parse(const struct cli_command *command, int argc, char **argv, struct args *ret,
               struct muster_err *err)
{
    struct reader reader = {.argc = argc, .argv = argv, .err = err};
    size_t letters = 1;
    for (int i = 0; i < argc; i++) {
        letters += strlen(argv[i]);
    }
    reader.args.command = command;
    reader.args.given = calloc(letters + (size_t)argc, sizeof *reader.args.given);
    reader.args.operands = calloc((size_t)argc + 1, sizeof *reader.args.operands);
    reader.args.owned = calloc((size_t)argc + 1, sizeof *reader.args.owned);
    if (!reader.args.given || !reader.args.operands || !reader.args.owned) {
        args_done(&reader.args);
        return err_no_memory(err);
    }
    for (; reader.at < reader.argc; reader.at++) {
        int r = read_word(&reader);
        if (r < 0) {
            args_done(&reader.args);
            return r;
        }
    }
    int r = check_ranks(&reader);
    r = r < 0 ? r : check_label(&reader);
    if (r < 0) {
        args_done(&reader.args);
        return r;
    }
    *ret = reader.args;
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
