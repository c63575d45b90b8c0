/* muster create and muster apply. */
#include "cli/verbs.h"

#include "cli/objects.h"

#include <stdio.h>
#include <string.h>

struct creator {
    struct cli *cli;
    const char *format;
    bool apply;
    bool dry_run;
};

static int print_result(const struct creator *c, const json_t *object, const char *verb)
{
    char name[600];
    cli_object_name(object, name, sizeof name);
    if (!c->format) {
        printf("%s %s%s\n", name, verb, c->dry_run ? " (dry run)" : "");
        return cli_print("", &c->cli->err);
    }
    if (strcmp(c->format, "name") == 0) {
        printf("%s\n", name);
        return cli_print("", &c->cli->err);
    }
    return cli_print_doc(object, c->format, &c->cli->err);
}

/* The merge patch of what the file gives; without a difference the API leaves the version alone. */
static int change(const struct creator *c, const json_t *object, json_t **ret, const char **verb)
{
    struct kube_ref ref = objects_ref(c->cli, object);
    muster_auto(doc) json_t *before = NULL;
    int r = kube_get(c->cli->kube, &ref, &before, &c->cli->err);
    if (r == MUSTER_ENOENT) {
        *verb = "created";
        return objects_create(c->cli, object, ret);
    }
    if (r == 0) {
        r = kube_patch(c->cli->kube, &ref, object, ret, &c->cli->err);
    }
    if (r == 0) {
        bool same = strcmp(doc_text(before, "metadata.resourceVersion", ""),
                           doc_text(*ret, "metadata.resourceVersion", "?")) == 0;
        *verb = same ? "unchanged" : "configured";
    }
    return r;
}

static int put(const struct creator *c, json_t *object)
{
    muster_auto(doc) json_t *result = NULL;
    const char *verb = "created";
    int r = 0;
    if (c->dry_run) {
        return print_result(c, object, verb);
    }
    r = objects_annotate(c->cli, object);
    if (r == 0) {
        r = c->apply ? change(c, object, &result, &verb) : objects_create(c->cli, object, &result);
    }
    return r < 0 ? r : print_result(c, result, verb);
}

static int put_all(struct cli *cli, bool apply)
{
    struct creator c = {.cli = cli, .apply = apply, .dry_run = args_flag(&cli->args, "dry-run")};
    struct objects objects = {0};
    int r = args_choice(&cli->args, "output", &c.format, &cli->err);
    if (r == 0) {
        r = objects_read(cli, false, &objects);
    }
    if (r == 0 && !c.dry_run) {
        r = cli_connect(cli, KUBE_START);
    }
    for (size_t i = 0; i < objects.count && r == 0; i++) {
        r = put(&c, objects.list[i]);
    }
    objects_done(&objects);
    return r;
}

int cli_create(struct cli *cli)
{
    return put_all(cli, false);
}

int cli_apply(struct cli *cli)
{
    return put_all(cli, true);
}
