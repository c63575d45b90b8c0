/* muster delete: by name, by file, by label, or all of a kind; then waits until they are gone. */
#include "cli/command/verbs.h"

#include "cli/pod/target.h"
#include "cli/pod/waiter.h"
#include "cli/submit/objects.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct deleter {
    struct cli *cli;
    int64_t grace_s;
    bool wait;
    bool ignore_missing;
};

static int wait_gone(const struct deleter *d, const struct kube_ref *ref, const json_t *object)
{
    const char *uid = doc_text(object, "metadata.uid", "");
    return d->wait ? waiter_run(d->cli, ref, waiter_gone, (void *)(uintptr_t)uid, INT64_MAX) : 0;
}

static int delete_one(const struct deleter *d, const struct kube_ref *ref)
{
    muster_auto(doc) json_t *object = NULL;
    int r = kube_get(d->cli->kube, ref, &object, &d->cli->err);
    r = r < 0 ? r : kube_delete(d->cli->kube, ref, d->grace_s, &d->cli->err);
    if (r == MUSTER_ENOENT && d->ignore_missing) {
        return 0;
    }
    r = r < 0 ? r : wait_gone(d, ref, object);
    if (r == 0) {
        char name[600];
        cli_object_name(object, name, sizeof name);
        char *slash = strrchr(name, '/');
        *slash = '\0';
        printf("%s \"%s\" deleted\n", name, slash + 1);
    }
    return r;
}

static int delete_all(const struct deleter *d, const struct target *target)
{
    const char *labels = args_value(&d->cli->args, "selector");
    if (!labels && !args_flag(&d->cli->args, "all")) {
        return muster_fail(&d->cli->err, MUSTER_EINVAL,
                           "delete: which %s? give names, --all, or -l SELECTOR",
                           target->resource->plural);
    }
    struct kube_ref ref = {target->resource, cli_namespace(d->cli), NULL, NULL};
    struct kube_query query = {.labels = labels};
    muster_auto(doc) json_t *list = NULL;
    int r = kube_list(d->cli->kube, &ref, &query, &list, &d->cli->err);
    if (r == 0 && json_array_size(doc_at(list, "items")) == 0) {
        cli_say_none(d->cli);
    }
    struct deleter each = *d;
    each.ignore_missing = true; /* it may have been deleted since */
    size_t i;
    json_t *item;
    json_array_foreach (doc_at(list, "items"), i, item) {
        ref.name = doc_text(item, "metadata.name", "");
        r = r < 0 ? r : delete_one(&each, &ref);
    }
    return r;
}

static int delete_files(const struct deleter *d)
{
    struct objects objects = {0};
    int r = objects_read(d->cli, OBJECTS_NAMES, &objects);
    for (size_t i = 0; i < objects.count && r == 0; i++) {
        r = objects_check_named(d->cli, objects.list[i]);
    }
    /* Jobs are last in the list and are deleted first, because they use the others. */
    for (size_t i = objects.count; i > 0 && r == 0; i--) {
        struct kube_ref ref = objects_ref(d->cli, objects.list[i - 1]);
        r = delete_one(d, &ref);
    }
    objects_done(&objects);
    return r;
}

static int delete_named(const struct deleter *d)
{
    struct targets targets;
    int r = targets_read(d->cli, true, &targets);
    r = r < 0 ? r : targets_check_selector(d->cli, &targets);
    for (size_t i = 0; r == 0 && i < targets.count; i++) {
        struct target *target = &targets.list[i];
        if (!target->resource) {
            target->resource = kube_resource_find("pytorchjobs");
        }
        struct kube_ref ref = {target->resource, cli_namespace(d->cli), target->name, NULL};
        r = target->name ? delete_one(d, &ref) : delete_all(d, target);
    }
    return r;
}

int cli_delete(struct cli *cli)
{
    struct deleter d = {.cli = cli,
                        .grace_s = -1,
                        .wait = !args_flag(&cli->args, "no-wait"),
                        .ignore_missing = args_flag(&cli->args, "ignore-not-found")};
    int r = args_number(&cli->args, "grace-period", 0, INT_MAX, &d.grace_s, &cli->err);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    if (r < 0) {
        return r;
    }
    return args_flag(&cli->args, "filename") ? delete_files(&d) : delete_named(&d);
}
