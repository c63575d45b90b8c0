/* Watching: which changes are reported, when, and from which version a watcher may continue. */
#include "base/buf.h"
#include "store/fixture.h"

struct listener {
    struct buf heard;
    struct store_watch *watch;
    struct store_watch *other; /* dropped at the first change */
};

static void listen(void *arg, const struct store_change *change)
{
    static const char *const kinds[] = {"+", "~", "-"};
    struct listener *l = arg;
    buf_format(&l->heard, "%s%s@%d%s ", kinds[change->kind], change->key.name, (int)change->version,
               change->before ? doc_text(change->before, "metadata.labels.l", "") : "");
    if (l->other) {
        store_unwatch(l->other);
        l->other = NULL;
    }
}

static int start(struct fixture *f, struct listener *l, const char *resource, int64_t after)
{
    const struct store_watch_options options = {.resource = resource, .after_version = after};
    *l = (struct listener){0};
    buf_init(&l->heard, 4096);
    return store_watch(f->store, &options, listen, l, &l->watch, &f->err);
}

static void stop(struct listener *l)
{
    store_unwatch(l->watch);
    buf_done(&l->heard);
}

static void label(struct fixture *f, const char *name, const char *value)
{
    muster_auto(doc) json_t *object = fetch(f, "pods", name);
    doc_set_text(object, "metadata.labels.l", value);
    assert_int_equal(store_update(f->store, "pods", object, STORE_ALL, NULL, &f->err), 0);
}

/* Early and late watchers get the same changes, label changes included. */
static void late_and_early_watchers_hear_the_same(void **state)
{
    (void)state;
    struct fixture f;
    struct listener early, late;
    fixture_init(&f);
    assert_int_equal(start(&f, &early, "pods", 0), 0);
    free(put(&f, "pods", OBJECT("a", "")));
    free(put(&f, "services", OBJECT("s", "")));
    label(&f, "a", "red");
    label(&f, "a", "blue");
    assert_int_equal(store_delete(f.store, key_of("pods", "a"), NULL, NULL, &f.err), 0);
    assert_int_equal(start(&f, &late, "pods", 0), 0);
    assert_string_equal(buf_str(&early.heard), "+a@1 ~a@3 ~a@4red -a@5blue ");
    assert_string_equal(buf_str(&late.heard), buf_str(&early.heard));
    stop(&early);
    stop(&late);
    fixture_done(&f);
}

static void a_version_too_old_or_of_another_store_is_gone(void **state)
{
    (void)state;
    struct fixture f;
    struct listener l;
    fixture_init(&f);
    for (int i = 0; i < 30; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{'metadata':{'name':'p%d','namespace':'default'}}", i);
        free(put(&f, "pods", text));
    }
    assert_int_equal(start(&f, &l, "pods", 9), MUSTER_EGONE);
    assert_int_equal(start(&f, &l, "pods", 31), MUSTER_EGONE);
    assert_int_equal(start(&f, &l, "pods", 28), 0);
    assert_string_equal(buf_str(&l.heard), "+p28@29 +p29@30 ");
    stop(&l);
    fixture_done(&f);
    buf_done(&l.heard);
}

static void a_watcher_may_stop_another_while_it_is_told(void **state)
{
    (void)state;
    struct fixture f;
    struct listener first, second;
    fixture_init(&f);
    assert_int_equal(start(&f, &second, NULL, STORE_FROM_NOW), 0);
    assert_int_equal(start(&f, &first, NULL, STORE_FROM_NOW), 0);
    first.other = muster_take(second.watch);
    free(put(&f, "pods", OBJECT("a", "")));
    assert_string_equal(buf_str(&first.heard), "+a@1 ");
    assert_string_equal(buf_str(&second.heard), "");
    stop(&first);
    stop(&second);
    fixture_done(&f);
}

static void lists_by_label_owner_and_page(void **state)
{
    (void)state;
    struct fixture f;
    struct selector labels;
    fixture_init(&f);
    for (int i = 0; i < 6; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{'metadata':{'name':'p%d','namespace':'default','labels':{'job':'%s','all':"
                       "'yes'},'ownerReferences':[{'uid':'u%d'}]}}",
                       i, i % 2 ? "odd" : "even", i % 3);
        free(put(&f, "pods", text));
    }
    assert_int_equal(selector_parse_labels("all=yes,job in (odd)", &labels, &f.err), 0);
    struct store_query query = {.resource = "pods", .namespace = "default", .labels = &labels};
    assert_string_equal(names(&f, &query), "p1 p3 p5");
    query.owner_uid = "u0";
    assert_string_equal(names(&f, &query), "p3");
    selector_done(&labels);

    query = (struct store_query){.resource = "pods", .limit = 4};
    struct store_page page;
    assert_int_equal(store_list(f.store, &query, &page, &f.err), 0);
    assert_int_equal(json_array_size(page.items), 4);
    query.next = page.next;
    assert_string_equal(names(&f, &query), "p4 p5");
    store_page_done(&page);
    query.next = "garbage";
    assert_int_equal(store_list(f.store, &query, &page, &f.err), MUSTER_EINVAL);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_early_watchers_hear_the_same),
        cmocka_unit_test(a_version_too_old_or_of_another_store_is_gone),
        cmocka_unit_test(a_watcher_may_stop_another_while_it_is_told),
        cmocka_unit_test(lists_by_label_owner_and_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
