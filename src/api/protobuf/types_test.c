/* Bodies as a table: kind, body, and the message about the first value that has a wrong type. */
#include "api/protobuf/types.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <string.h>

static const struct row {
    const char *kind;
    const char *body;
    const char *fault; /* NULL: none */
} rows[] = {
    {"ConfigMap", "{'data':{'k':'v'},'immutable':true}", NULL},
    {"ConfigMap", "{'data':{'k':null},'immutable':null}", NULL},
    {"ConfigMap", "{'data':{'k':1}}", "data.k: must be text, not a number"},
    {"ConfigMap", "{'data':{'a b':[]}}", "data[a b]: must be text, not a list"},
    {"ConfigMap", "{'data':['k']}", "data: must be a mapping, not a list"},
    {"ConfigMap", "{'binaryData':{'k':'dg=='}}", NULL},
    {"ConfigMap", "{'immutable':'yes'}", "immutable: must be true or false, not \"yes\""},
    {"ConfigMap", "{'metadata':{'labels':{'a':true}}}",
     "metadata.labels.a: must be text, not true"},
    {"ConfigMap", "{'metadata':{'creationTimestamp':null,'managedFields':[{'fieldsV1':{'a':1}}]}}",
     NULL},
    {"Secret", "{'data':{'k':'secret!'}}", "data.k: must be base64"},
    {"Service", "{'spec':{'ports':[{'port':80,'targetPort':'http'},{'port':81,'targetPort':1}]}}",
     NULL},
    {"Service", "{'spec':{'ports':[{'port':80},{'port':'http'}]}}",
     "spec.ports[1].port: must be a whole number, not \"http\""},
    {"Service", "{'spec':{'ports':[{'port':1.5}]}}",
     "spec.ports[0].port: must be a whole number, not a number"},
    {"Service", "{'spec':{'ports':['http']}}", "spec.ports[0]: must be a mapping, not \"http\""},
    {"Service", "{'spec':'none'}", "spec: must be a mapping, not \"none\""},
    {"Pod", "{'spec':{'volumes':[{'name':'v','hostPath':{'path':1}}]}}",
     "spec.volumes[0].hostPath.path: must be text, not a number"},
    {"Pod", "{'spec':{'containers':[{'command':['sleep',1]}]}}",
     "spec.containers[0].command[1]: must be text, not a number"},
    {"Pod", "{'spec':{'containers':[{'resources':{'limits':{'cpu':1,'memory':'1Gi'}}}]}}", NULL},
    {"Pod", "{'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'many'}}}]}}",
     "spec.containers[0].resources.limits[nvidia.com/gpu]: must be a quantity such as 500m or 1Gi, "
     "not \"many\""},
    {"Event", "{'firstTimestamp':'yesterday'}",
     "firstTimestamp: must be a time such as 2026-01-02T03:04:05Z, not \"yesterday\""},
    {"Unknown", "{'data':1}", NULL},
};

static void check(const struct row *row)
{
    muster_auto(doc) json_t *body = parse(row->body);
    struct buf fault;
    buf_init(&fault, 1024);
    bool fits = types_fit(body, "v1", row->kind, &fault);
    if (fits != !row->fault || strcmp(buf_str(&fault), row->fault ? row->fault : "") != 0) {
        fail_msg("%s: %s", row->body, fits ? "fits" : buf_str(&fault));
    }
    buf_done(&fault);
}

static void bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
