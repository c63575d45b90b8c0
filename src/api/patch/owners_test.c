/* Histories of an object as tables: who writes what, and what the object and the owners of its
 * fields are then. test/kubernetes/test_owners.py compares this with a real API server. */
#include "api/patch/owners.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <string.h>

enum { PROBLEMS_MAX = 20, TEXT_BYTES_MAX = 4096 };

static const struct step {
    const char *manager;
    enum { APPLY, FORCE, UPDATE } how;
    const char *object;    /* for UPDATE the whole new object */
    const char *after;     /* the object's data; NULL: the write is refused */
    const char *conflicts; /* the conflicts or, if there are none, the owners: "one .data.a …" */
} steps[] = {
    {"one", APPLY, "{'data':{'a':'1','b':'1'}}", "{'a':'1','b':'1'}", "one .data.a .data.b"},
    {"two", APPLY, "{'data':{'a':'1'}}", "{'a':'1','b':'1'}", "one .data.a .data.b two .data.a"},
    {"two", APPLY, "{'data':{'a':'2'}}", NULL, "conflict with \"one\" .data.a"},
    {"two", FORCE, "{'data':{'a':'2'}}", "{'a':'2','b':'1'}", "one .data.b two .data.a"},
    {"one", APPLY, "{'data':{'b':'2','c':'3'}}", "{'a':'2','b':'2','c':'3'}",
     "one .data.b .data.c two .data.a"},
    {"one", APPLY, "{'data':{'b':'2'}}", "{'a':'2','b':'2'}", "one .data.b two .data.a"},
    {"edit", UPDATE, "{'data':{'a':'9','b':'2'}}", "{'a':'9','b':'2'}", "one .data.b edit .data.a"},
    {"edit", UPDATE, "{'data':{'a':'9','b':'2'}}", "{'a':'9','b':'2'}", "one .data.b edit .data.a"},
    {"two", APPLY, "{'data':{'a':'2','b':'3'}}", NULL,
     "conflict with \"one\" .data.b conflict with \"edit\" using v1 .data.a"},
    {"edit", UPDATE, "{'data':{'b':'2'}}", "{'b':'2'}", "one .data.b"},
    {"two", APPLY, "{'data':{'a':'2'}}", "{'b':'2','a':'2'}", "one .data.b two .data.a"},
    {"two", APPLY, "{'data':{'a':'2','b':null}}", "{'b':'2','a':'2'}", "one .data.b two .data.a"},
    {"one", APPLY, "{}", "{'a':'2'}", "one two .data.a"},
};

static void add_problems(struct buf *said, const struct job_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *p = &problems->list[i];
        bool again = i > 0 && strcmp(p->message, problems->list[i - 1].message) == 0;
        buf_format(said, "%s%s %s", i ? " " : "", again ? "" : p->message, p->path);
    }
}

static void add_owners(struct buf *said, const json_t *object)
{
    size_t i;
    json_t *entry;
    const char *key;
    json_t *leaf;
    json_array_foreach (doc_at(object, "metadata.managedFields"), i, entry) {
        buf_format(said, "%s%s", i ? " " : "", doc_text(entry, "manager", ""));
        json_object_foreach (doc_at(doc_at(entry, "fieldsV1"), "f:data"), key, leaf) {
            buf_format(said, " .data.%s", key + 2);
        }
    }
}

static int take(const struct step *step, json_t **object, struct job_problems *problems)
{
    struct owner owner = {step->manager, step->how == UPDATE ? "Update" : "Apply", "", "v1",
                          "2026-01-01T00:00:00Z"};
    struct muster_err err = MUSTER_ERR_INIT;
    json_t *after = NULL;
    muster_auto(doc) json_t *said = parse(step->object);
    if (step->how != UPDATE) {
        int r = owners_apply(*object, said, &owner, step->how == FORCE, problems, &after, &err);
        if (r < 0) {
            return r;
        }
    } else {
        after = json_incref(said);
        assert_int_equal(owners_update(*object, after, &owner), 0);
    }
    json_decref(*object);
    *object = after;
    return 0;
}

static void check(const struct step *step, json_t **object)
{
    struct job_problems problems;
    struct buf said;
    job_problems_init(&problems, PROBLEMS_MAX);
    buf_init(&said, TEXT_BYTES_MAX);
    int r = take(step, object, &problems);
    add_problems(&said, &problems);
    if (r == 0) {
        muster_auto(doc) json_t *data = parse(step->after ? step->after : "{}");
        assert_true(step->after && json_equal(json_object_get(*object, "data"), data));
        add_owners(&said, *object);
    } else {
        assert_null(step->after);
    }
    if (strcmp(buf_str(&said), step->conflicts) != 0) {
        fail_msg("%s %s: %s", step->manager, step->object, buf_str(&said));
    }
    buf_done(&said);
    job_problems_done(&problems);
}

static void a_history(void **state)
{
    (void)state;
    muster_auto(doc) json_t *object = parse("{'metadata':{'name':'m'}}");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        check(&steps[i], &object);
    }
}

/* A list is one field; defaults that were filled into it do not change it. */
static void lists(void **state)
{
    (void)state;
    static const char stored[] =
        "{'metadata':{'managedFields':[{'manager':'one','operation':'Apply','apiVersion':'v1',"
        "'fieldsV1':{'f:spec':{'f:ports':{}}}}]},'spec':{'ports':[{'port':80,'protocol':'TCP'}]}}";
    static const struct {
        const char *applied;
        int result;
    } rows[] = {
        {"{'spec':{'ports':[{'port':80}]}}", 0},
        {"{'spec':{'ports':[{'port':81}]}}", MUSTER_ECONFLICT},
        {"{'spec':{'ports':[{'port':80},{'port':81}]}}", MUSTER_ECONFLICT},
        {"{'spec':{'type':'ClusterIP'}}", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct owner owner = {"two", "Apply", "", "v1", "2026-01-01T00:00:00Z"};
        struct job_problems problems;
        struct muster_err err = MUSTER_ERR_INIT;
        muster_auto(doc) json_t *object = parse(stored);
        muster_auto(doc) json_t *applied = parse(rows[i].applied);
        muster_auto(doc) json_t *after = NULL;
        job_problems_init(&problems, PROBLEMS_MAX);
        assert_int_equal(owners_apply(object, applied, &owner, false, &problems, &after, &err),
                         rows[i].result);
        job_problems_done(&problems);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_history), cmocka_unit_test(lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
