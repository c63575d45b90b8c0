/* See environment.h. */
#include "cli/submit/environment.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/system/random.h"
#include "base/variables.h"
#include "cli/submit/env_file.h"
#include "job/annotations.h"
#include "job/shell_variables.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GIVEN_MAX = 4096,
    FILE_BYTES_MAX = 4 << 20,
    NAMES_BYTES_MAX = 1 << 20,
    OURS_BYTES = 16 << 10, /* for muster's own variables in a rank's environment, and a command */
    ID_BYTES = 16,
};

struct environment {
    char *own[GIVEN_MAX + 1]; /* variables given by name, "NAME=value", in the order given */
    size_t own_count;
    char **shell; /* the part of this process's variables that passes, except those given by name */
    char **given; /* the last variable of each name in `own` */
    bool gathered;
};

void environment_free(struct environment *e)
{
    if (e) {
        for (size_t i = 0; i < e->own_count; i++) {
            free(e->own[i]);
        }
        free(e->shell);
        free(e->given);
        free(e);
    }
}

/* ---- Given by name ---- */

struct giving {
    struct environment *environment;
    const char *what; /* "-e ", or "" if the error names the file and line */
    struct muster_err *err;
};

static int check_name(const struct giving *g, const char *name)
{
    if (shell_variable_is(VARIABLE_OURS, name)) {
        return muster_fail(g->err, MUSTER_EINVAL,
                           "%s%.80s is set by muster for each rank, and cannot be given", g->what,
                           name);
    }
    return g->environment->own_count < GIVEN_MAX
               ? 0
               : muster_fail(g->err, MUSTER_ETOOBIG, "over %d variables are given by name",
                             GIVEN_MAX);
}

static int give(void *data, const char *name, const char *value)
{
    const struct giving *g = data;
    struct environment *e = g->environment;
    int r = check_name(g, name);
    value = value ? value : getenv(name);
    if (r == 0 && !value) {
        r = muster_fail(g->err, MUSTER_EINVAL,
                        "%s%.80s is not set in this shell: export it, or write NAME=VALUE", g->what,
                        name);
    }
    if (r < 0) {
        return r;
    }
    if (strlen(name) + strlen(value) + 2 > VARIABLE_BYTES_MAX) {
        return muster_fail(g->err, MUSTER_ETOOBIG,
                           "%s%.80s has %zu KiB: the kernel allows a variable %d KiB", g->what,
                           name, strlen(value) >> 10, VARIABLE_BYTES_MAX >> 10);
    }
    if (asprintf(&e->own[e->own_count], "%s=%s", name, value) < 0) {
        e->own[e->own_count] = NULL;
        return err_no_memory(g->err);
    }
    e->own_count++;
    return 0;
}

static int give_file(struct giving *g, const char *path)
{
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = file_read(path, FILE_BYTES_MAX, &text, &bytes, g->err);
    return r < 0 ? muster_wrap(g->err, "--env-file")
                 : env_file_read(strcmp(path, "-") == 0 ? "standard input" : path, text, bytes,
                                 give, g, g->err);
}

/* Takes NAME or NAME=VALUE. An error does not repeat the value, because it may be a secret. */
static int give_word(struct giving *g, const char *word)
{
    size_t length = strcspn(word, "=");
    muster_auto(free) char *name = strndup(word, length);
    if (length == 0) {
        return muster_fail(g->err, MUSTER_EINVAL, "-e must be NAME or NAME=VALUE%s",
                           *word ? ": there is no name before the '='" : "");
    }
    return name ? give(g, name, word[length] ? word + length + 1 : NULL) : err_no_memory(g->err);
}

/* Takes the files first: -e wins over them, and a later variable over an earlier one. */
static int give_all(struct cli *cli, struct environment *e)
{
    struct giving g = {e, "", &cli->err};
    size_t at = 0;
    int r = 0;
    if (!args_has(&cli->args, "env")) {
        return 0;
    }
    for (const char *path; r == 0 && (path = args_each(&cli->args, "env-file", &at));) {
        r = give_file(&g, path);
    }
    g.what = "-e ";
    at = 0;
    for (const char *word; r == 0 && (word = args_each(&cli->args, "env", &at));) {
        r = give_word(&g, word);
    }
    return r;
}

/* The last variable of each name. */
static char **last_ones(const struct environment *e)
{
    char *reversed[GIVEN_MAX + 1];
    for (size_t i = 0; i < e->own_count; i++) {
        reversed[i] = e->own[e->own_count - 1 - i];
    }
    reversed[e->own_count] = NULL;
    return variables_merge((char *const *const[]){reversed}, 1);
}

/* ---- The shell's ---- */

static bool passes(const char *entry, bool whole, char *const *given)
{
    size_t length = variables_name_length(entry);
    muster_auto(free) char *name = strndup(entry, length);
    return length > 0 && name && !variables_value(given, name) &&
           (whole ? !shell_variable_is(VARIABLE_LAUNCHER, name)
                  : shell_variable_is(VARIABLE_LISTED, name));
}

static char **shell_part(bool whole, char *const *given)
{
    char **part = variables_merge((char *const *const[]){environ}, 1);
    size_t kept = 0;
    for (char **entry = part; entry && *entry; entry++) {
        if (passes(*entry, whole, given)) {
            part[kept++] = *entry;
        }
    }
    if (part) {
        part[kept] = NULL;
    }
    return part;
}

/* ---- All of it ---- */

static size_t bytes_of(char *const *list, const char **ret_largest)
{
    size_t sum = 0;
    for (; *list; list++) {
        sum += strlen(*list) + 1 + sizeof *list;
        *ret_largest = strlen(*list) > strlen(*ret_largest) ? *list : *ret_largest;
    }
    return sum;
}

/* Checks the size as execve(2) does, which counts the pointers, too. This reports the error once,
 * not once for each rank. */
static int check_size(const struct environment *e, struct muster_err *err)
{
    const char *largest = "";
    size_t bytes = bytes_of(e->shell, &largest) + bytes_of(e->given, &largest);
    long most = sysconf(_SC_ARG_MAX);
    most = most < VARIABLES_BYTES_MAX ? most : VARIABLES_BYTES_MAX;
    if (bytes + OURS_BYTES <= (size_t)most) {
        return 0;
    }
    return muster_fail(err, MUSTER_ETOOBIG,
                       "the ranks' environment would have %zu KiB (the largest variable, %.*s, has "
                       "%zu), and a process can be started with %ld: take out what they do not "
                       "need, as in: env -u %.*s muster …",
                       bytes >> 10, (int)variables_name_length(largest), largest,
                       strlen(largest) >> 10, (most - OURS_BYTES) >> 10,
                       (int)variables_name_length(largest), largest);
}

static int fill(struct cli *cli, struct environment *e)
{
    bool whole = args_has_flag(&cli->args, "ranks");
    int r = give_all(cli, e);
    if (r < 0) {
        return r;
    }
    e->given = last_ones(e);
    e->shell = !e->given             ? NULL
               : cli_on_cluster(cli) ? variables_merge(NULL, 0)
                                     : shell_part(whole, e->given);
    return e->shell ? check_size(e, &cli->err) : err_no_memory(&cli->err);
}

static int open_environment(struct cli *cli)
{
    if (!cli->environment) {
        cli->environment = calloc(1, sizeof *cli->environment);
    }
    return cli->environment ? 0 : err_no_memory(&cli->err);
}

int environment_give(struct cli *cli, const char *what, const char *name, const char *value)
{
    int r = open_environment(cli);
    assert(r < 0 || !cli->environment->gathered);
    struct giving g = {cli->environment, what, &cli->err};
    return r < 0 ? r : give(&g, name, value);
}

int environment_gather(struct cli *cli, const struct environment **ret)
{
    int r = open_environment(cli);
    if (r == 0 && !cli->environment->gathered) {
        r = fill(cli, cli->environment);
        cli->environment->gathered = r == 0;
    }
    *ret = cli->environment;
    return r;
}

/* Prints which variables that libmuster and the Python package read in ranks are not passed: a user
 * who set one would see no effect. */
static void say_not_passed(const struct environment *e)
{
    static const char *const names[] = {
        "MUSTER_BACKEND",        "MUSTER_CHECKPOINT", "MUSTER_CHECKS",
        "MUSTER_DETERMINISTIC",  "MUSTER_NOTICE_MS",  "MUSTER_RECORD",
        "MUSTER_TCP_CONGESTION", "MUSTER_TRANSPORT",  "MUSTER_TUNING"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (getenv(names[i]) && !environment_has(e, names[i])) {
            cli_say("note: %s of this shell is not passed to the ranks; -e %s passes it", names[i],
                    names[i]);
        }
    }
}

int environment_check(struct cli *cli)
{
    const struct environment *e = NULL;
    int r = environment_gather(cli, &e);
    if (r == 0) {
        say_not_passed(e);
    }
    return r;
}

char *const *environment_given(const struct environment *environment)
{
    return environment->given;
}

bool environment_has(const struct environment *e, const char *name)
{
    return variables_value(e->given, name) || variables_value(e->shell, name);
}

static void say_names(char *const *list, const char *what)
{
    struct buf names;
    size_t count = 0;
    buf_init(&names, NAMES_BYTES_MAX);
    for (; *list; list++) {
        size_t length = variables_name_length(*list);
        buf_format(&names, "%s%.*s", count++ ? ", " : "", (int)length, *list);
    }
    if (count > 0) {
        cli_say("note: the file lacks %zu variable%s %s: %s", count, count == 1 ? "" : "s", what,
                buf_str(&names));
    }
    buf_done(&names);
}

int environment_say_lacking(struct cli *cli)
{
    const struct environment *e = NULL;
    int r = environment_gather(cli, &e);
    if (r == 0 && !cli_on_cluster(cli)) {
        say_names(e->given, "that -e or --env-file gives the ranks here");
        say_names(e->shell, "of this shell that the ranks have here");
    }
    return r;
}

/* ---- Beside the object ---- */

static const char *id_of(const json_t *job)
{
    return json_string_value(
        json_object_get(doc_at(job, "metadata.annotations"), JOB_ANNOTATION_ENVIRONMENT));
}

int environment_annotate(struct cli *cli, json_t *job, const json_t *before)
{
    char id[2 * ID_BYTES + 1] = "";
    json_t *notes = doc_at(job, "metadata.annotations");
    const struct environment *e = NULL;
    int r = environment_gather(cli, &e);
    if (r < 0 || kube_is_dry_run(cli->kube)) {
        (void)json_object_del(notes, JOB_ANNOTATION_ENVIRONMENT);
        return r;
    }
    r = random_hex(id, ID_BYTES, &cli->err);
    if (r < 0) {
        return r;
    }
    const char *kept = id_of(before);
    return json_object_set_new(notes, JOB_ANNOTATION_ENVIRONMENT, json_string(kept ? kept : id)) ==
                   0
               ? 0
               : err_no_memory(&cli->err);
}

static char *path_of(const json_t *job)
{
    const char *id = id_of(job);
    return id ? kube_muster_path("environments", id, NULL) : NULL;
}

static void add_list(struct buf *bytes, char *const *list)
{
    for (; *list; list++) {
        buf_add(bytes, *list, strlen(*list) + 1);
    }
}

int environment_send(struct cli *cli, const json_t *job)
{
    muster_auto(free) char *path = path_of(job);
    const struct environment *e = NULL;
    if (!path || kube_is_dry_run(cli->kube) || cli_on_cluster(cli)) {
        return 0;
    }
    int r = environment_gather(cli, &e);
    if (r < 0) {
        return r;
    }
    struct buf bytes;
    buf_init(&bytes, VARIABLES_BYTES_MAX);
    add_list(&bytes, e->shell);
    buf_add(&bytes, "", 1);
    add_list(&bytes, e->given);
    r = buf_failed(&bytes) ? err_no_memory(&cli->err)
                           : kube_put_bytes(cli->kube, path, bytes.data, bytes.used, &cli->err);
    buf_done(&bytes);
    return r;
}

void environment_withdraw(struct cli *cli, const json_t *job)
{
    muster_auto(free) char *path = path_of(job);
    if (path && !kube_is_dry_run(cli->kube) && !cli_on_cluster(cli)) {
        struct muster_err unsaid = MUSTER_ERR_INIT;
        (void)kube_call(cli->kube, "DELETE", path, NULL, NULL, &unsaid);
    }
}
