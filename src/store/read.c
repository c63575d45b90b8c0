/* Gets and lists objects: by key, by label or owner index, or all of a resource, in pages. See
 * store.h.
 *
 * Layer: services. Thread: one.
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A page starts after this object, at the version of the first page. */
struct place {
    int64_t version;
    char *namespace;
    char *name;
};

/* How the rows are found: the parameters of SQL_LIST_…. */
struct plan {
    enum statement statement;
    const char *key;
    const char *value;
};

int store_get(struct store *store, struct store_key key, json_t **ret, struct muster_err *err)
{
    assert(key.resource && key.namespace && key.name);
    int r = sql_step(store, SQL_OBJECT_GET, err, "ttt", key.resource, key.namespace, key.name);
    if (r <= 0) {
        return r < 0
                   ? r
                   : muster_fail(err, MUSTER_ENOENT, "%s \"%s\" not found", key.resource, key.name);
    }
    r = row_parse(store, key, sql_text(store, SQL_OBJECT_GET, 1), ret, err);
    sql_end(store, SQL_OBJECT_GET);
    return r;
}

/* ---- continue tokens: "VERSION:NAMESPACE:NAME"; names hold no colon ---- */

static int read_place(const struct store *store, const char *next, struct place *ret,
                      struct muster_err *err)
{
    char *end;
    errno = 0;
    int64_t version = strtoll(next, &end, 10);
    const char *colon = *end == ':' ? strchr(end + 1, ':') : NULL;
    if (!colon || end == next || errno || version < 0) {
        return muster_fail(err, MUSTER_EINVAL, "the continue token is not one of this server's");
    }
    if (version < store->now.floor) {
        return muster_fail(err, MUSTER_EGONE,
                           "the continue token is too old: list again from the beginning");
    }
    ret->version = version;
    ret->namespace = strndup(end + 1, (size_t)(colon - end - 1));
    ret->name = strdup(colon + 1);
    return ret->namespace && ret->name ? 0 : err_no_memory(err);
}

static char *print_place(int64_t version, const json_t *object)
{
    char *text = NULL;
    int n =
        asprintf(&text, "%" PRId64 ":%s:%s", version, doc_text(object, "metadata.namespace", ""),
                 doc_text(object, "metadata.name", ""));
    return n < 0 ? NULL : text;
}

/* ---- plan ---- */

/* Chooses the requirement that matches the fewest objects. */
static int plan_by_label(struct store *store, const struct selector *labels, struct plan *plan,
                         struct muster_err *err)
{
    int64_t best = INT64_MAX;
    for (size_t i = 0; labels && i < labels->count; i++) {
        const struct selector_requirement *r = &labels->requirements[i];
        if (r->operator!= SELECTOR_IN || r->value_count != 1) {
            continue;
        }
        int found = sql_step(store, SQL_LABEL_COUNT, err, "tt", r->key, r->values[0]);
        if (found < 0) {
            return found;
        }
        int64_t count = sql_int(store, SQL_LABEL_COUNT, 0);
        sql_end(store, SQL_LABEL_COUNT);
        if (count < best) {
            best = count;
            *plan = (struct plan){SQL_LIST_LABEL, r->key, r->values[0]};
        }
    }
    return 0;
}

static int make_plan(struct store *store, const struct store_query *query, struct plan *plan,
                     struct muster_err *err)
{
    if (query->owner_uid) {
        *plan = (struct plan){SQL_LIST_OWNER, query->owner_uid, NULL};
        return 0;
    }
    *plan = (struct plan){query->namespace ? SQL_LIST_IN : SQL_LIST_ALL, NULL, NULL};
    return plan_by_label(store, query->labels, plan, err);
}

static int first_row(struct store *store, const struct store_query *query, const struct plan *plan,
                     const struct place *from, struct muster_err *err)
{
    const char *namespace = from->namespace ? from->namespace : "";
    const char *types = plan->statement == SQL_LIST_LABEL   ? "tttttt"
                        : plan->statement == SQL_LIST_OWNER ? "ttttt"
                                                            : "tttt";
    return sql_step(store, plan->statement, err, types, query->resource, query->namespace,
                    namespace, from->name ? from->name : "", plan->key, plan->value);
}

/* ---- list ---- */

static bool matches(const struct store_query *query, const json_t *object)
{
    return (!query->labels || selector_match_labels(query->labels, object)) &&
           (!query->fields || selector_match_fields(query->fields, object));
}

/* Adds one row to the page; returns 1 if the page was already full and there are more rows. */
static int take_row(struct store *store, enum statement statement, const struct store_query *query,
                    struct store_page *page, struct muster_err *err)
{
    const char *text = sql_text(store, statement, 0);
    if (text && query->fields && !selector_may_match_text(query->fields, text)) {
        return 0;
    }
    const char *name = sql_text(store, statement, 2);
    muster_auto(doc) json_t *object = NULL;
    int r = row_parse(store, (struct store_key){query->resource, "", name ? name : "?"}, text,
                      &object, err);
    if (r < 0) {
        return r;
    }
    if (!matches(query, object)) {
        return 0;
    }
    size_t count = json_array_size(page->items);
    if (query->limit > 0 && count == (size_t)query->limit) {
        page->next = print_place(page->version, json_array_get(page->items, count - 1));
        return page->next ? 1 : err_no_memory(err);
    }
    return json_array_append(page->items, object) == 0 ? 0 : err_no_memory(err);
}

static int fill_page(struct store *store, const struct store_query *query, const struct place *from,
                     struct store_page *page, struct muster_err *err)
{
    struct plan plan;
    int r = make_plan(store, query, &plan, err);
    if (r < 0) {
        return r;
    }
    r = first_row(store, query, &plan, from, err);
    while (r == 1) {
        int taken = take_row(store, plan.statement, query, page, err);
        r = taken == 0 ? sql_next(store, plan.statement, err) : taken < 0 ? taken : 0;
    }
    sql_end(store, plan.statement);
    return r;
}

int store_list(struct store *store, const struct store_query *query, struct store_page *ret,
               struct muster_err *err)
{
    assert(query->resource && query->limit >= 0);
    struct place from = {.version = store->now.version};
    struct store_page page = {.items = json_array()};
    int r = page.items ? 0 : err_no_memory(err);
    if (r == 0 && query->next) {
        r = read_place(store, query->next, &from, err);
    }
    page.version = from.version;
    r = r < 0 ? r : fill_page(store, query, &from, &page, err);
    free(from.namespace);
    free(from.name);
    if (r < 0) {
        store_page_done(&page);
        return r;
    }
    *ret = page;
    return 0;
}

void store_page_done(struct store_page *page)
{
    json_decref(page->items);
    free(page->next);
    *page = (struct store_page){0};
}
