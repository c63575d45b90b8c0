/* A user's words and a server's objects, as the command line handles them.
 *
 * JSON ({"object", "pods", "events"}) is described, judged and printed as a table. An input that
 * begins with '#' is an --env-file. Anything else is a command line: the verb and its words, one
 * per line. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/command/args.h"
#include "cli/command/commands.h"
#include "cli/show/describe.h"
#include "cli/show/table.h"
#include "cli/submit/env_file.h"
#include "control/verdict.h"
#include "invariant.h"

#include <stdlib.h>
#include <string.h>

enum { SHELL_WORDS_MAX = 32, TEXT_BYTES_MAX = 4 << 20 };

static void show(const json_t *doc)
{
    struct buf out;
    const json_t *object = doc_at(doc, "object");
    const json_t *pods = doc_at(doc, "pods");
    const json_t *events = doc_at(doc, "events");
    struct table table = {.wide = true, .namespace = true, .headers = true};
    buf_init(&out, TEXT_BYTES_MAX);
    describe_object(object, events, 0, &out);
    describe_pod(object, events, 0, &out);
    table_print(&table, object, &out);
    struct verdict verdict = verdict_of(object, pods, false);
    invariant((verdict.exit_code == 0) == (verdict.end == VERDICT_SUCCEEDED) ||
                  verdict.end == VERDICT_RUNNING,
              "only success exits with 0", verdict.state);
    verdict_why(&verdict, object, pods, &out);
    buf_done(&out);
}

static void read_options(const struct args *args)
{
    int64_t number = 0;
    const struct cli_item *item = NULL;
    while ((item = cli_next(args->command, item, CLI_ITEM_OPTION))) {
        struct muster_err err = MUSTER_ERR_INIT;
        const char *choice = NULL;
        invariant(args_duration(args, item->name, &number, &err) == 0 || *err.text, "it says why",
                  "");
        invariant(args_number(args, item->name, 0, 1000, &number, &err) == 0 || *err.text,
                  "it says why", "");
        if (item->argument) {
            invariant(args_choice(args, item->name, &choice, &err) == 0 || *err.text, "it says why",
                      "");
        }
    }
}

static void parse(char *text)
{
    char *words[SHELL_WORDS_MAX + 1] = {NULL};
    int count = 0;
    for (char *at = text; at && count < SHELL_WORDS_MAX; count++) {
        words[count] = strsep(&at, "\n");
    }
    const struct cli_command *command = count > 0 ? cli_command_find(words[0]) : NULL;
    struct args args = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!command) {
        return;
    }
    if (args_parse(command, count - 1, words + 1, &args, &err) == 0) {
        read_options(&args);
        args_done(&args);
    } else {
        invariant(*err.text != '\0', "it says why", "");
    }
}

static int check_variable(void *data, const char *name, const char *value)
{
    (void)data;
    invariant(*name && !strchr(name, '='), "a variable has a name", name);
    invariant(!value || !strchr(value, '\n'), "a value ends with its line", name);
    return 0;
}

static void read_env_file(const uint8_t *data, size_t size)
{
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(free) char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    (void)env_file_read("f.env", text, size, check_variable, NULL, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muster_auto(doc) json_t *doc = NULL;
    if (size > 0 && data[0] == '{') {
        if (doc_parse((const char *)data, size, &doc, NULL) == 0) {
            show(doc);
        }
        return 0;
    }
    if (size > 0 && data[0] == '#') {
        read_env_file(data, size);
        return 0;
    }
    muster_auto(free) char *text = strndup((const char *)data, size);
    parse(text);
    return 0;
}
