/* See output.h. */
#include "cli/show/output.h"

#include <assert.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 256 << 20 };

static bool takes_value(const char *word, size_t length)
{
    return (length == strlen("jsonpath") && strncmp(word, "jsonpath", length) == 0) ||
           (length == strlen("custom-columns") && strncmp(word, "custom-columns", length) == 0);
}

/* Finds which of the forms in `words` is given, up to its "=". Static, as part of the option's
 * text. */
static const char *find_form(const char *words, const char *given, size_t *ret_length)
{
    size_t length = strcspn(given, "=");
    for (const char *at = words; *at; at += strspn(at, "|")) {
        size_t word = strcspn(at, "|");
        size_t name = strcspn(at, "=|");
        bool whole = takes_value(at, name) || !given[length];
        if (name == length && strncmp(at, given, length) == 0 && whole) {
            *ret_length = length;
            return at;
        }
        at += word;
    }
    return NULL;
}

static int wrong_form(struct cli *cli, const char *words, const char *given)
{
    const char *verb = cli->args.command->name;
    static const struct {
        const char *theirs;
        const char *ours;
    } others[] = {
        {"jsonpath-as-json", "json, or jsonpath="}, {"jsonpath-file", "jsonpath=\"$(cat FILE)\""},
        {"custom-columns-file", "custom-columns="}, {"go-template", "jsonpath="},
        {"go-template-file", "jsonpath="},          {"template", "jsonpath="}};
    char option[ARGS_SPELLING_BYTES];
    args_spelling(&cli->args, "output", option);
    size_t length = strcspn(given, "=");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strlen(others[i].theirs) == length && strncmp(others[i].theirs, given, length) == 0) {
            return muster_fail(&cli->err, MUSTER_EINVAL, "%s: %s %s is not supported; use %s", verb,
                               option, others[i].theirs, others[i].ours);
        }
    }
    return muster_fail(&cli->err, MUSTER_EINVAL, "%s: %s must be one of %s, not '%s'", verb, option,
                       words, given);
}

static int read_value(struct cli *cli, struct output *o, const char *given)
{
    size_t name = strcspn(given, "=");
    const char *value = given[name] ? given + name + 1 : "";
    if (!*value) {
        char option[ARGS_SPELLING_BYTES];
        return muster_fail(
            &cli->err, MUSTER_EINVAL, "%s: %s %.*s needs %s", cli->args.command->name,
            args_spelling(&cli->args, "output", option), (int)name, given,
            output_is(o, "jsonpath") ? "a template: jsonpath='{.metadata.name}'"
                                     : "columns: custom-columns=NAME:.metadata.name");
    }
    int r = output_is(o, "jsonpath") ? jsonpath_parse(value, &o->path, &cli->err)
                                     : custom_columns_parse(value, &o->columns, &cli->err);
    return r < 0 ? muster_wrap(&cli->err, "%s", cli->args.command->name) : 0;
}

int output_read(struct cli *cli, struct output *ret)
{
    const struct cli_item *option =
        cli_option_find(cli->args.command, "output", strlen("output"), 0);
    const char *given = args_value(&cli->args, "output");
    assert(option);
    *ret = (struct output){0};
    if (!given) {
        return 0;
    }
    size_t length = 0;
    const char *form = find_form(option->argument, given, &length);
    if (!form) {
        return wrong_form(cli, option->argument, given);
    }
    static const char *const words[] = {"json", "yaml",     "wide",
                                        "name", "jsonpath", "custom-columns"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && strncmp(words[i], form, length) == 0) {
            ret->word = words[i];
        }
    }
    assert(ret->word);
    return takes_value(form, length) ? read_value(cli, ret, given) : 0;
}

void output_done(struct output *output)
{
    jsonpath_free(output->path);
    custom_columns_free(output->columns);
    *output = (struct output){0};
}

bool output_is(const struct output *output, const char *word)
{
    return output->word && strcmp(output->word, word) == 0;
}

int output_print(struct cli *cli, struct output *output, const json_t *doc)
{
    if (!output->path && !output->columns) {
        return cli_print_doc(doc, output->word, &cli->err);
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    int r = output->path ? jsonpath_print(output->path, doc, &text, &cli->err)
                         : custom_columns_print(output->columns, doc, &text, &cli->err);
    r = r < 0 ? r : cli_print(buf_str(&text), &cli->err);
    buf_done(&text);
    return r;
}
