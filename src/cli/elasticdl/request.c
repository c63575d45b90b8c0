/* See request.h. */
#include "cli/elasticdl/request.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/home.h"
#include "base/shell_words.h"
#include "base/system/random.h"
#include "base/text.h"
#include "base/yaml/yaml.h"
#include "cli/elasticdl/cluster_file.h"
#include "cli/elasticdl/python.h"
#include "cli/elasticdl/translate.h"
#include "cli/submit/environment.h"
#include "cli/submit/owner.h"
#include "cli/submit/pod_variables.h"
#include "job/generate.h"
#include "job/shell_variables.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    TOKEN_BYTES = 32,
    TOKEN_TEXT = 2 * TOKEN_BYTES + 1,
    TEXT_BYTES = 2048,
    NOTE_BYTES = 1024,
    COMMAND_BYTES = 1 << 20
};

/* --- messages --- */

void request_say(const struct cli *cli, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *path = args_text(&cli->args, "log_file_path");
    FILE *log = path ? fopen(path, "ae") : NULL;
    cli_say("%s", text);
    if (log) {
        fprintf(log, "%s\n", text);
        fclose(log);
    }
}

static int check_log(struct cli *cli)
{
    const char *path = args_text(&cli->args, "log_file_path");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (path && fd < 0) {
        return muster_fail(&cli->err, MUSTER_ECREATE, "--log_file_path %s: %s", path,
                           strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return 0;
}

static bool is_quiet(const struct cli *cli)
{
    const char *level = args_value(&cli->args, "log_level");
    return strcasecmp(level, "DEBUG") != 0 && strcasecmp(level, "INFO") != 0;
}

/* Whether the objects are for a cluster: they are written to a file, or this line names the
 * cluster. */
static bool is_for_cluster(const struct cli *cli)
{
    return cli_on_cluster(cli) || args_text(&cli->args, "yaml");
}

/* Prints the flags of this line that have no effect here. */
static void say_without_effect(const struct cli *cli)
{
    struct buf names;
    buf_init(&names, NOTE_BYTES);
    for (size_t i = 0; i < cli->args.given_count; i++) {
        const struct cli_item *option = cli->args.given[i].option;
        bool image = strcmp(option->name, "image_name") == 0 ||
                     strcmp(option->name, "worker_image") == 0 ||
                     strcmp(option->name, "image_pull_policy") == 0;
        bool pods = image || strcmp(option->name, "journal_volume") == 0;
        if ((pods && !is_for_cluster(cli)) || strncmp(option->help, "no effect", 9) == 0) {
            buf_format(&names, "%s--%s", names.used ? ", " : "", option->name);
        }
    }
    if (names.used && !buf_failed(&names)) {
        request_say(cli, "note: without effect here: %s (%s %s --help says why)", buf_str(&names),
                    cli_tool->name, cli->args.command->name);
    }
    buf_done(&names);
}

/* --- what goes with the job --- */

static int populate_by(struct cli *cli, const regex_t *pattern)
{
    static const char what[] = "--populate_env_names: ";
    int r = 0;
    for (char *const *entry = environ; r == 0 && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        muster_auto(free) char *name = strndup(*entry, length);
        if (name && length > 0 && regexec(pattern, name, 0, NULL, 0) == 0 &&
            !shell_variable_is(VARIABLE_OURS, name)) {
            r = environment_give(cli, what, name, *entry + length + 1);
        }
    }
    return r;
}

/* Adds the variables of --populate_env_names, which has names or patterns of whole names. */
static int populate(struct cli *cli)
{
    const char *list = args_value(&cli->args, "populate_env_names");
    int r = 0;
    for (const char *at = list ? list : ""; r == 0 && *at;) {
        size_t length = strcspn(at, ",");
        char *text = NULL;
        regex_t pattern;
        if (asprintf(&text, "^(%.*s)$", (int)length, at) < 0) {
            return err_no_memory(&cli->err);
        }
        if (length > 0 && regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB) != 0) {
            r = muster_fail(&cli->err, MUSTER_EINVAL,
                            "--populate_env_names: '%.*s' is no regular expression", (int)length,
                            at);
        } else if (length > 0) {
            r = populate_by(cli, &pattern);
            regfree(&pattern);
        }
        free(text);
        at += length + (at[length] == ',');
    }
    return r;
}

/* --- the command --- */

static char *join(const char *const *words)
{
    struct buf out;
    buf_init(&out, COMMAND_BYTES);
    for (size_t i = 0; words[i]; i++) {
        buf_text(&out, i > 0 ? " " : "");
        shell_quote(words[i], &out);
    }
    return buf_steal(&out);
}

/* Takes the words after "--" as the job's command, as run does; the job's name is made from them as
 * in run. */
static int take_words(struct cli *cli)
{
    struct args *args = &cli->args;
    if (args->separated && args->operand_count == 0 && !args_value(args, "job_command")) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: no command given: %s %s -- COMMAND",
                           args->command->name, cli_tool->name, args->command->name);
    }
    if (!args->separated || args->separated_after > 0 || args->operand_count == 0) {
        return cli_expect_operands(cli, 0, 0);
    }
    if (args_value(args, "job_command")) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "%s: the command is given twice: by --job_command and after --",
                           args->command->name);
    }
    int r = args_give(args, "job_command", join(args->operands), &cli->err);
    if (r == 0 && !args_value(args, "job_name")) {
        char name[JOB_NAME_BYTES];
        job_name_of_command(args->operands, name);
        r = args_give(args, "job_name", strdup(name), &cli->err);
    }
    return r;
}

/* --- the objects --- */

/* Makes the path of the coordinator's folder, which is deleted with the job. The uid is known when
 * the coordinator starts. */
static int find_folder(struct cli *cli, char **ret)
{
    struct home home;
    int r = home_open(&home, &cli->err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *path = job_literal(home.path);
    *ret = NULL;
    if (!path || asprintf(ret, "%s/jobs/$(MUSTER_JOB_UID)", json_string_value(path)) < 0) {
        r = err_no_memory(&cli->err);
    }
    home_done(&home);
    return r;
}

/* Makes the objects. A job for a cluster has its token in a Secret. A job for this machine has this
 * machine's program and folder, and its token is sent beside the object. */
static int make_objects(struct cli *cli, json_t **ret_secret, json_t **ret_job)
{
    char token[TOKEN_TEXT];
    muster_auto(free) char *program = NULL;
    muster_auto(free) char *folder = NULL;
    bool cluster = is_for_cluster(cli);
    int r = random_hex(token, TOKEN_BYTES, &cli->err);
    struct translate_site site = {.token = cluster ? token : NULL, .run_file = cluster_file_apply};
    if (r == 0 && !cluster) {
        program = realpath("/proc/self/exe", NULL);
        r = find_folder(cli, &folder);
        site.program = program;
        site.folder = folder;
    }
    r = r < 0 ? r : translate_objects(&cli->args, &site, ret_secret, ret_job, &cli->err);
    return r < 0 || cluster ? r : environment_give(cli, "", "MUSTER_COORDINATOR_TOKEN", token);
}

/* Checks an object as if it came from a file, and against this machine if it is to run here. */
static int check_object(struct cli *cli, const json_t *object, struct objects *ret)
{
    char label[64];
    muster_auto(free) char *text = yaml_print(object);
    snprintf(label, sizeof label, "%s %s", cli_tool->name, cli->args.command->name);
    return text ? objects_read_text(cli, label, text,
                                    args_text(&cli->args, "yaml") ? OBJECTS_NAMES : OBJECTS_QUIET,
                                    ret)
                : err_no_memory(&cli->err);
}

/* Checks that pods of a cluster have an image, which has its own python; gives a python to workers
 * of this machine. */
static int fit_to_site(struct cli *cli)
{
    if (!cli_on_cluster(cli)) {
        return python_give(cli);
    }
    bool image = args_text(&cli->args, "worker_image") || args_text(&cli->args, "image_name");
    return image ? 0
                 : muster_fail(&cli->err, MUSTER_EINVAL,
                               "%s: the pods of a cluster need an image that has the command: "
                               "--worker_image IMAGE",
                               cli->args.command->name);
}

int request_objects(struct cli *cli, struct objects *ret, size_t *ret_jobs)
{
    muster_auto(doc) json_t *secret = NULL;
    muster_auto(doc) json_t *job = NULL;
    int r = take_words(cli);
    r = r < 0 ? r : check_log(cli);
    r = r < 0 ? r : make_objects(cli, &secret, &job);
    r = r < 0 ? r : populate(cli);
    r = r < 0 ? r : fit_to_site(cli);
    r = r < 0 ? r : environment_check(cli);
    r = r < 0 || !secret ? r : check_object(cli, secret, ret);
    r = r < 0 ? r : check_object(cli, job, ret);
    r = r < 0 || !secret ? r : owner_claim(cli, ret);
    *ret_jobs = r == 0;
    if (r == 0 && !is_quiet(cli)) {
        say_without_effect(cli);
    }
    return r;
}

/* --- --yaml --- */

static int print_objects(struct cli *cli, const json_t *secret, const json_t *job, const char *path)
{
    muster_auto(free) char *first = yaml_print(secret);
    muster_auto(free) char *second = yaml_print(job);
    char *text = NULL;
    if (!first || !second ||
        asprintf(&text, "%s%s---\n%s%s", first, text_ends_with(first, "\n") ? "" : "\n", second,
                 text_ends_with(second, "\n") ? "" : "\n") < 0) {
        return err_no_memory(&cli->err);
    }
    int r = strcmp(path, "-") == 0
                ? cli_print(text, &cli->err)
                : file_write_through(path, text, strlen(text), 0600, 0, &cli->err);
    free(text);
    return r;
}

int request_write(struct cli *cli, bool *ret)
{
    const char *path = args_text(&cli->args, "yaml");
    muster_auto(doc) json_t *secret = NULL;
    muster_auto(doc) json_t *job = NULL;
    struct objects objects = {0};
    *ret = path != NULL;
    if (!path) {
        return 0;
    }
    int r = take_words(cli);
    r = r < 0 ? r : check_log(cli);
    r = r < 0 ? r : make_objects(cli, &secret, &job);
    r = r < 0 ? r : populate(cli);
    r = r < 0 ? r : pod_variables_set(cli, job);
    r = r < 0 ? r : check_object(cli, job, &objects);
    r = r < 0 ? r : print_objects(cli, secret, job, path);
    if (r == 0 && !is_quiet(cli)) {
        say_without_effect(cli);
    }
    objects_done(&objects);
    return r;
}
