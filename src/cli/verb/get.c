/* muster get: lists objects, as the server's tables or in full. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "cli/pod/target.h"
#include "cli/show/output.h"
#include "cli/show/table.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 256 << 20 };

struct getter {
    struct cli *cli;
    struct output output; /* no form and "wide" print a table */
    struct kube_query query;
    struct table table;
    bool shown; /* at least one table was printed */
    int failed; /* with --watch: the code of a failed print */
};

static struct kube_ref ref_of(const struct getter *g, const struct target *target)
{
    return (struct kube_ref){
        .resource = target->resource, .namespace = cli_namespace(g->cli), .name = target->name};
}

static bool wants_table(const struct getter *g)
{
    return !g->output.word || output_is(&g->output, "wide");
}

static int print_table(struct getter *g, const json_t *data)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    table_print(&g->table, data, &text);
    int r = cli_print(buf_str(&text), &g->cli->err);
    buf_done(&text);
    return r;
}

static int get_table(struct getter *g, const struct target *target, bool same)
{
    struct kube_ref ref = ref_of(g, target);
    muster_auto(doc) json_t *data = NULL;
    int r = kube_list(g->cli->kube, &ref, &g->query, &data, &g->cli->err);
    if (r < 0 || json_array_size(doc_at(data, "rows")) == 0) {
        return r;
    }
    if (g->shown && !same) {
        printf("\n");
    }
    g->shown = true;
    return print_table(g, data);
}

/* Appends the objects of one target to `items`, each with its apiVersion and kind. */
static int collect(struct getter *g, const struct target *target, json_t *items)
{
    struct kube_ref ref = ref_of(g, target);
    muster_auto(doc) json_t *answer = NULL;
    int r = kube_list(g->cli->kube, &ref, &g->query, &answer, &g->cli->err);
    if (r < 0) {
        return r;
    }
    if (target->name) {
        return json_array_append(items, answer);
    }
    size_t i;
    json_t *item;
    json_array_foreach (doc_at(answer, "items"), i, item) {
        json_t *whole = json_pack("{s:s, s:s}", "apiVersion", target->resource->api_version, "kind",
                                  target->resource->kind);
        json_object_update(whole, item);
        json_array_append_new(items, whole);
    }
    return 0;
}

static int print_names(struct getter *g, const json_t *items)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        char name[600];
        cli_object_name(item, name, sizeof name);
        printf("%s\n", name);
    }
    return cli_print("", &g->cli->err);
}

static int get_objects(struct getter *g, const struct targets *targets)
{
    muster_auto(doc) json_t *items = json_array();
    for (size_t i = 0; i < targets->count; i++) {
        int r = collect(g, &targets->list[i], items);
        if (r < 0) {
            return r;
        }
    }
    if (output_is(&g->output, "name")) {
        return print_names(g, items);
    }
    if (targets->count == 1 && targets->list[0].name) {
        return output_print(g->cli, &g->output, json_array_get(items, 0));
    }
    muster_auto(doc) json_t *list =
        json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", items);
    return output_print(g->cli, &g->output, list);
}

static int get_tables(struct getter *g, const struct targets *targets)
{
    g->query.table = true;
    for (size_t i = 0; i < targets->count; i++) {
        bool same = i > 0 && targets->list[i].resource == targets->list[i - 1].resource;
        if (!same) {
            bool headers = !args_flag(&g->cli->args, "no-headers");
            g->table = (struct table){
                .wide = g->table.wide, .namespace = !cli_namespace(g->cli), .headers = headers};
        }
        int r = get_table(g, &targets->list[i], same);
        if (r < 0) {
            return r;
        }
    }
    if (!g->shown) {
        cli_say_none(g->cli);
    }
    return 0;
}

static void changed(void *context, enum kube_change change, const json_t *object)
{
    (void)change;
    struct getter *g = context;
    int r = 0;
    if (wants_table(g)) {
        r = print_table(g, object);
    } else if (output_is(&g->output, "name")) {
        char name[600];
        cli_object_name(object, name, sizeof name);
        printf("%s\n", name);
        r = cli_print("", &g->cli->err);
    } else {
        r = output_print(g->cli, &g->output, object);
    }
    if (r < 0) {
        g->failed = r;
        uv_stop(&g->cli->loop);
    }
}

static int watch(struct getter *g, const struct targets *targets)
{
    if (targets->count != 1) {
        return muster_fail(&g->cli->err, MUSTER_EINVAL, "get: --watch takes one kind, or one name");
    }
    g->query.table = wants_table(g);
    g->table.namespace = !cli_namespace(g->cli);
    g->table.headers = !args_flag(&g->cli->args, "no-headers");
    struct kube_ref ref = ref_of(g, &targets->list[0]);
    struct kube_watch *w = NULL;
    struct kube_watch_events events = {changed, g};
    muster_auto(doc) json_t *object = NULL;
    int r = ref.name ? kube_get(g->cli->kube, &ref, &object, &g->cli->err) : 0;
    r = r < 0 ? r : kube_watch_start(g->cli->kube, &ref, &g->query, &events, &w, &g->cli->err);
    if (r == 0) {
        uv_run(&g->cli->loop, UV_RUN_DEFAULT);
        kube_watch_stop(w);
        r = g->failed;
    }
    return r;
}

static int get(struct getter *g, const struct targets *targets)
{
    int r = cli_connect(g->cli, KUBE_START);
    if (r < 0) {
        return r;
    }
    if (args_flag(&g->cli->args, "watch")) {
        return watch(g, targets);
    }
    return wants_table(g) ? get_tables(g, targets) : get_objects(g, targets);
}

int cli_get(struct cli *cli)
{
    struct getter g = {.cli = cli};
    struct targets targets;
    int r = output_read(cli, &g.output);
    r = r < 0 ? r : targets_read(cli, false, &targets);
    r = r < 0 ? r : targets_check_selector(cli, &targets);
    if (r == 0) {
        g.table.wide = output_is(&g.output, "wide");
        g.query.labels = args_value(&cli->args, "selector");
        g.query.fields = args_value(&cli->args, "field-selector");
        if (g.output.columns && args_flag(&cli->args, "no-headers")) {
            custom_columns_without_headers(g.output.columns);
        }
        r = get(&g, &targets);
    }
    output_done(&g.output);
    return r;
}
