/* Patches as tables: document, patch, result; NULL where the patch must be refused. */
#include "api/patch/merge.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

struct row {
    const char *doc;
    const char *patch;
    const char *result;
};

static void check(const struct row *row,
                  int (*apply)(const json_t *, const json_t *, json_t **, struct muster_err *))
{
    muster_auto(doc) json_t *doc = parse(row->doc);
    muster_auto(doc) json_t *patch = parse(row->patch);
    muster_auto(doc) json_t *result = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = apply(doc, patch, &result, &err);
    if (!row->result) {
        assert_true(r < 0);
        return;
    }
    muster_auto(doc) json_t *wanted = parse(row->result);
    if (r < 0 || !json_equal(result, wanted)) {
        muster_auto(free) char *got = result ? doc_print(result) : NULL;
        fail_msg("%s: %s (%s)", row->patch, got ? got : "refused", err.text);
    }
    muster_auto(doc) json_t *untouched = parse(row->doc);
    assert_true(json_equal(doc, untouched));
}

/* The cases of RFC 7386, appendix A, and cases of Kubernetes objects. */
static void merge_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'a':'b'}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}"},
        {"{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}"},
        {"{'a':['b']}", "{'a':'c'}", "{'a':'c'}"},
        {"{'a':'c'}", "{'a':['b']}", "{'a':['b']}"},
        {"{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}"},
        {"{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}"},
        {"{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}"},
        {"{'e':null}", "{'a':1}", "{'e':null,'a':1}"},
        {"{'a':'b'}", "['c']", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], merge_patch);
    }
}

/* RFC 6902, appendix A. */
static void json_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux'}]",
         "{'baz':'qux','foo':'bar'}"},
        {"{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
         "{'foo':['bar','qux','baz']}"},
        {"{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['abc']}]",
         "{'foo':['bar',['abc']]}"},
        {"{'baz':'qux','foo':'bar'}", "[{'op':'remove','path':'/baz'}]", "{'foo':'bar'}"},
        {"{'foo':['a','b','c']}", "[{'op':'remove','path':'/foo/1'}]", "{'foo':['a','c']}"},
        {"{'baz':'qux'}", "[{'op':'replace','path':'/baz','value':'boo'}]", "{'baz':'boo'}"},
        {"{'foo':{'bar':'baz'},'qux':{}}", "[{'op':'move','from':'/foo/bar','path':'/qux/t'}]",
         "{'foo':{},'qux':{'t':'baz'}}"},
        {"{'foo':['all','grass','cows','eat']}", "[{'op':'move','from':'/foo/1','path':'/foo/3'}]",
         "{'foo':['all','cows','eat','grass']}"},
        {"{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/c'}]", "{'a':{'b':1},'c':{'b':1}}"},
        {"{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'qux'}]", "{'baz':'qux'}"},
        {"{'a/b':{'m~n':1}}", "[{'op':'replace','path':'/a~1b/m~0n','value':2}]",
         "{'a/b':{'m~n':2}}"},
        {"{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]", "{'b':2}"},
        {"{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'bar'}]", NULL},
        {"{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'qux'}]", NULL},
        {"{'foo':['a']}", "[{'op':'add','path':'/foo/2','value':'b'}]", NULL},
        {"{'foo':['a']}", "[{'op':'remove','path':'/foo/-'}]", NULL},
        {"{'foo':['a']}", "[{'op':'add','path':'/foo/01','value':'b'}]", NULL},
        {"{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL},
        {"{'a':1}", "[{'op':'add','path':'a','value':1}]", NULL},
        {"{'a':1}", "[{'op':'add','path':'/b'}]", NULL},
        {"{'a':1}", "[{'op':'dance','path':'/a','value':1}]", NULL},
        {"{'a':1}", "[{'op':'add','path':'/x~2','value':1}]", NULL},
        {"{'a':1}", "{'op':'add'}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], json_patch);
    }
}

static void strategic_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'}]}",
         "{'containers':[{'name':'b','image':'3'},{'name':'c','image':'4'}]}",
         "{'containers':[{'name':'a','image':'1'},{'name':'b','image':'3'},"
         "{'name':'c','image':'4'}]}"},
        {"{'containers':[{'name':'a'},{'name':'b'}]}",
         "{'containers':[{'$patch':'delete','name':'a'}]}", "{'containers':[{'name':'b'}]}"},
        {"{'containers':[{'name':'a'}]}", "{'containers':[{'$patch':'replace'},{'name':'c'}]}",
         "{'containers':[{'name':'c'}]}"},
        {"{'containers':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
         "'containers':[{'name':'a','image':'x'}]}",
         "{'containers':[{'name':'b'},{'name':'a','image':'x'}]}"},
        {"{'args':['a','b']}", "{'args':['c']}", "{'args':['c']}"},
        {"{'labels':{'a':'b','c':'d'}}", "{'labels':{'a':null,'e':'f'}}",
         "{'labels':{'c':'d','e':'f'}}"},
        {"{'labels':{'a':'b'}}", "{'labels':{'$patch':'replace','e':'f'}}", "{'labels':{'e':'f'}}"},
        {"{'strategy':{'type':'x','rolling':{'n':1}}}",
         "{'strategy':{'$retainKeys':['type'],'type':'y'}}", "{'strategy':{'type':'y'}}"},
        {"{'finalizers':['a','b']}", "{'$deleteFromPrimitiveList/finalizers':['a']}",
         "{'finalizers':['b']}"},
        {"{'finalizers':['a']}", "{'finalizers':['a','b']}", "{'finalizers':['a','b']}"},
        {"{'ports':[{'containerPort':1,'name':'x'}]}", "{'ports':[{'containerPort':1,'name':'y'}]}",
         "{'ports':[{'containerPort':1,'name':'y'}]}"},
        {"{'ports':[{'port':1,'name':'x'}]}", "{'ports':[{'port':2,'name':'y'}]}",
         "{'ports':[{'port':1,'name':'x'},{'port':2,'name':'y'}]}"},
        {"{'volumes':[{'name':'v','emptyDir':{}}]}",
         "{'volumes':[{'name':'v','emptyDir':null,"
         "'hostPath':{'path':'/x'}}]}",
         "{'volumes':[{'name':'v','hostPath':{'path':'/x'}}]}"},
        {"{'a':1}", "{'$dance':1}", NULL},
        {"{'a':1}", "[]", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], strategic_patch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_patches),
        cmocka_unit_test(json_patches),
        cmocka_unit_test(strategic_patches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
