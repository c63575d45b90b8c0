/* See target.h. */
#include "cli/pod/target.h"

#include "base/buf.h"
#include "base/text.h"
#include "control/verdict.h"

#include <stdio.h>
#include <string.h>

enum { KIND_BYTES = 64, KINDS_MAX = 32, LIST_BYTES_MAX = 1024 };

static int unknown_kind(struct cli *cli, const char *word)
{
    const char *names[KINDS_MAX] = {NULL};
    for (size_t i = 0; i < kube_resource_count; i++) {
        names[i] = kube_resources[i].plural;
    }
    const char *near = text_nearest(word, names, kube_resource_count);
    if (near) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: unknown kind '%s'; did you mean '%s'?",
                           cli->args.command->name, word, near);
    }
    struct buf list;
    buf_init(&list, LIST_BYTES_MAX);
    for (size_t i = 0; i < kube_resource_count; i++) {
        if (!text_is_any_of(names[i], names, i)) { /* events are in two groups */
            buf_format(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
        }
    }
    int r = muster_fail(&cli->err, MUSTER_EINVAL, "%s: unknown kind '%s'; there are %s",
                        cli->args.command->name, word, buf_str(&list));
    buf_done(&list);
    return r;
}

/* Checks a name: an empty one (a shell's variable that is not set) would mean all objects of the
 * kind. */
static int check_name(struct cli *cli, const char *name, const char *word)
{
    const char *verb = cli->args.command->name;
    if (!*name) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: there is no name in '%s'", verb, word);
    }
    return strchr(name, '/') ? muster_fail(&cli->err, MUSTER_EINVAL,
                                           "%s: '%s' is neither NAME nor KIND/NAME", verb, word)
                             : 0;
}

int target_read(struct cli *cli, const char *word, struct target *ret)
{
    const char *slash = strchr(word, '/');
    if (!slash) {
        *ret = (struct target){NULL, word};
        return check_name(cli, word, word);
    }
    char kind[KIND_BYTES];
    snprintf(kind, sizeof kind, "%.*s", (int)(slash - word), word);
    const struct kube_resource *resource = kube_resource_find(kind);
    if (!resource) {
        return unknown_kind(cli, kind);
    }
    *ret = (struct target){resource, slash + 1};
    return check_name(cli, slash + 1, word);
}

static int add(struct cli *cli, struct targets *targets, struct target target)
{
    if (targets->count == TARGETS_MAX) {
        return muster_fail(&cli->err, MUSTER_ETOOBIG, "more than %d objects at once", TARGETS_MAX);
    }
    targets->list[targets->count++] = target;
    return 0;
}

/* Adds all objects of the kind, or those in `names`. */
static int add_kind(struct cli *cli, const char *kind, const char **names, struct targets *ret)
{
    int r = 0;
    const struct kube_resource *resource = kube_resource_find(kind);
    if (!resource) {
        return unknown_kind(cli, kind);
    }
    if (!*names) {
        r = add(cli, ret, (struct target){resource, NULL});
    }
    for (const char **name = names; *name && r == 0; name++) {
        r = check_name(cli, *name, *name);
        r = r < 0 ? r : add(cli, ret, (struct target){resource, *name});
    }
    return r;
}

/* Adds the targets of "pods,services". "all" stands for the kinds of kubectl's category of that
 * name. */
static int add_kinds(struct cli *cli, const char *kinds, const char **names, struct targets *ret)
{
    static const char *const all[] = {"pods", "services", "pytorchjobs"};
    int r = 0;
    for (const char *at = kinds; *at && r == 0; at += strspn(at, ",")) {
        char kind[KIND_BYTES];
        size_t length = strcspn(at, ",");
        snprintf(kind, sizeof kind, "%.*s", (int)length, at);
        at += length;
        bool is_all = strcmp(kind, "all") == 0;
        for (size_t i = 0; i < (is_all ? sizeof all / sizeof all[0] : 1) && r == 0; i++) {
            r = add_kind(cli, is_all ? all[i] : kind, names, ret);
        }
    }
    return r;
}

static bool names_kind(const char *word)
{
    char first[KIND_BYTES];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(word, ","), word);
    return kube_resource_find(first) != NULL;
}

int targets_read(struct cli *cli, bool bare_names, struct targets *ret)
{
    const char **words = cli->args.operands;
    ret->count = 0;
    if (cli->args.operand_count == 0) {
        return cli_expect_operands(cli, 1, TARGETS_MAX);
    }
    bool kinds = !strchr(words[0], '/') && (!bare_names || names_kind(words[0]));
    if (kinds) {
        return add_kinds(cli, words[0], words + 1, ret);
    }
    int r = 0;
    for (; *words && r == 0; words++) {
        struct target target;
        r = target_read(cli, *words, &target);
        r = r < 0 ? r : add(cli, ret, target);
    }
    return r;
}

int targets_read_named(struct cli *cli, size_t most, struct targets *ret)
{
    size_t words = cli->args.operand_count;
    if (words == 1) {
        ret->count = 1;
        return target_read(cli, cli->args.operands[0], &ret->list[0]);
    }
    int r = targets_read(cli, true, ret);
    return r == 0 && ret->count > most ? cli_expect_operands(cli, 1, words - 1) : r;
}

int targets_are_jobs(struct cli *cli, const struct targets *targets, const char *done)
{
    for (size_t i = 0; i < targets->count; i++) {
        const struct kube_resource *resource = targets->list[i].resource;
        if (resource && resource != kube_resource_find("pytorchjobs")) {
            return muster_fail(&cli->err, MUSTER_EINVAL, "%s: %s cannot be %s; only jobs can",
                               cli->args.command->name, resource->plural, done);
        }
    }
    return 0;
}

int targets_check_selector(struct cli *cli, const struct targets *targets)
{
    static const char *const options[] = {"selector", "all", "all-namespaces"};
    char option[ARGS_SPELLING_BYTES];
    for (size_t i = 0; i < targets->count; i++) {
        for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
            if (targets->list[i].name && args_has_flag(&cli->args, options[o])) {
                return muster_fail(&cli->err, MUSTER_EINVAL,
                                   "%s: give the name '%s' or %s, not both",
                                   cli->args.command->name, targets->list[i].name,
                                   args_spelling(&cli->args, options[o], option));
            }
        }
    }
    return 0;
}

static int look(struct cli *cli, const char *namespace, const char *kind, struct target *target,
                json_t **ret)
{
    struct kube_ref ref = {
        .resource = kube_resource_find(kind), .namespace = namespace, .name = target->name};
    int r = kube_get(cli->kube, &ref, ret, &cli->err);
    if (r == 0) {
        target->resource = ref.resource;
    }
    return r;
}

/* Reports a missing object, with a hint if the user wrote JOB:RANK where only pods have names. */
static int missing(struct cli *cli, const char *namespace, bool or_pod, const char *name)
{
    const char *rank = name + strcspn(name, ":");
    if (or_pod && *rank && rank[1] && rank[1 + strspn(rank + 1, "0123456789")] == '\0') {
        return muster_fail(&cli->err, MUSTER_ENOENT,
                           "there is no job or pod '%s' in namespace %s; %s takes the pod of rank "
                           "%s by its name, which muster get pods shows",
                           name, namespace, cli->args.command->name, rank + 1);
    }
    return muster_fail(&cli->err, MUSTER_ENOENT, "there is no job%s '%s' in namespace %s",
                       or_pod ? " or pod" : "", name, namespace);
}

int target_find(struct cli *cli, const char *namespace, bool or_pod, struct target *target,
                json_t **ret)
{
    muster_auto(doc) json_t *object = NULL;
    int r;
    if (target->resource) {
        r = look(cli, namespace, target->resource->plural, target, &object);
    } else {
        r = look(cli, namespace, "pytorchjobs", target, &object);
        if (r == MUSTER_ENOENT && or_pod) {
            r = look(cli, namespace, "pods", target, &object);
        }
        if (r == MUSTER_ENOENT) {
            return missing(cli, namespace, or_pod, target->name);
        }
    }
    if (r == 0 && ret) {
        *ret = muster_take(object);
    }
    return r;
}

void target_say_over(const struct target *target, const json_t *job)
{
    if (verdict_of(job, NULL, false).end != VERDICT_RUNNING) {
        cli_say("note: job %s is over: this starts and ends no rank (muster describe job %s says "
                "how it ended)",
                target->name, target->name);
    }
}
