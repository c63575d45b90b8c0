/* Objects as tables: the messages about each object, one line for each fault.
 * test/kubernetes/test_faulty.py checks that a real API server reports the same fields. */
#include "api/validate/validate.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"

#include <string.h>

enum { PROBLEMS_MAX = 20, TEXT_BYTES_MAX = 4096 };

struct row {
    const char *object;
    const char *said;
};

typedef void (*validator)(const json_t *before, const json_t *object,
                          struct job_problems *problems);

static void check(const struct row *row, validator validate, bool stored)
{
    muster_auto(doc) json_t *object = parse(row->object);
    struct job_problems problems;
    struct buf said;
    job_problems_init(&problems, PROBLEMS_MAX);
    buf_init(&said, TEXT_BYTES_MAX);
    validate(stored ? object : NULL, object, &problems);
    for (size_t i = 0; i < problems.count; i++) {
        buf_format(&said, "%s: %s\n", problems.list[i].path, problems.list[i].message);
    }
    if (strcmp(buf_str(&said), row->said) != 0) {
        fail_msg("%s:\n%s", row->object, buf_str(&said));
    }
    buf_done(&said);
    job_problems_done(&problems);
}

#define CHECK_ALL(rows, validate, stored)                                                          \
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows)[0]; i++) {                                  \
        check(&(rows)[i], validate, stored);                                                       \
    }

#define SERVICE(spec) "{'metadata':{'name':'s'},'spec':{" spec "}}"
#define PORTS(ports) SERVICE("'ports':[" ports "]")

static void services(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {PORTS("{'port':80}"), ""},
        {"{'metadata':{'name':'s'}}", "spec.ports: Required value\n"},
        {SERVICE("'clusterIP':'None'"), ""},
        {SERVICE("'type':'ExternalName','externalName':'a.b'"), ""},
        {SERVICE("'type':'ExternalName'"), "spec.externalName: Required value\n"},
        {PORTS("{'port':0,'targetPort':'a'}"),
         "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"},
        {PORTS("{'port':80},{'name':'a','port':81}"), "spec.ports[0].name: Required value\n"},
        {PORTS("{'name':'a','port':80},{'name':'a','port':81}"),
         "spec.ports[1].name: Duplicate value: \"a\"\n"},
        {PORTS("{'name':'a','port':80},{'name':'b','port':80}"),
         "spec.ports[1]: Duplicate value: \"TCP/80\"\n"},
        {PORTS("{'name':'a','port':80},{'name':'b','port':80,'protocol':'UDP'}"), ""},
        {PORTS("{'port':80,'protocol':'HTTP'}"),
         "spec.ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", "
         "\"TCP\", \"UDP\"\n"},
        {PORTS("{'port':80,'nodePort':30000}"),
         "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'\n"},
        {SERVICE("'ports':[{'port':80}],'clusterIP':'here'"),
         "spec.clusterIPs[0]: Invalid value: \"here\": must be a valid IP address, (e.g. 10.9.8.7 "
         "or 2001:db8::ffff)\n"},
        {SERVICE("'ports':[{'port':80}],'clusterIP':'fd00::1'"), ""},
        {SERVICE("'ports':[{'port':80}],'clusterIP':'None','type':'NodePort'"),
         "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort "
         "services\n"},
        {"{'metadata':{'name':'a.b'},'spec':{'ports':[{'port':80}]}}",
         "metadata.name: Invalid value: \"a.b\": must be made of a-z, 0-9 and '-'\n"},
    };
    static const struct row stored[] = {
        {SERVICE("'ports':[{'port':80}],'clusterIP':'None','type':'NodePort'"), ""},
        {SERVICE("'clusterIP':'None','type':'ExternalName','externalName':'a'"), ""},
        {SERVICE("'ports':[{'port':70000}],'clusterIP':'None'"),
         "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
         "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, "
         "inclusive\n"},
    };
    CHECK_ALL(rows, validate_service, false);
    CHECK_ALL(stored, validate_service, true);
}

#define EVENT(namespace, more)                                                                     \
    "{'metadata':{'namespace':'" namespace "'},'involvedObject':{'kind':'Pod'" more "}}"

static void events(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {EVENT("a", ",'namespace':'a'"), ""},
        {EVENT("default", ""), ""},
        {EVENT("a", ""),
         "involvedObject.namespace: Invalid value: \"\": does not match event.namespace\n"},
        {EVENT("a", ",'namespace':'b'"),
         "involvedObject.namespace: Invalid value: \"b\": does not match event.namespace\n"},
    };
    CHECK_ALL(rows, validate_event, false);
}

#define POD(spec) "{'spec':{'containers':[{'name':'c','image':'i'}]," spec "}}"
#define CONTAINER(more) "{'spec':{'containers':[{'name':'c','image':'i'," more "}]}}"
#define AT "spec.containers[0]."

static void containers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{'spec':{'containers':[{'name':'c','image':' i'}]}}",
         AT "image: Invalid value: \" i\": must not have leading or trailing whitespace\n"},
        {CONTAINER("'ports':[{'containerPort':1,'hostPort':1},{'containerPort':2,'hostPort':1}]"),
         AT "ports[1].hostPort: Duplicate value: \"TCP//1\"\n"},
        {CONTAINER("'envFrom':[{}]"), AT "envFrom: Invalid value: \"\": must specify one of: "
                                         "`configMapRef` or `secretRef`\n"},
        {CONTAINER("'resources':{'requests':{'nvidia.com/gpu':1}}"), AT
         "resources.limits: Required value: Limit must be set for non overcommitable resources\n"},
        {CONTAINER("'resources':{'requests':{'nvidia.com/gpu':1},'limits':{'nvidia.com/gpu':'2'}}"),
         AT "resources.requests: Invalid value: 1: must be equal to nvidia.com/gpu limit\n"},
        {CONTAINER("'resources':{'requests':{'cpu':1},'limits':{'cpu':2}}"), ""},
        {CONTAINER("'livenessProbe':{'exec':{'command':['a']},'periodSeconds':5}"), ""},
        {CONTAINER("'livenessProbe':{}"),
         AT "livenessProbe: Required value: must specify a handler type\n"},
        {CONTAINER("'readinessProbe':{'tcpSocket':{'port':1},'httpGet':{'port':'a'}}"),
         AT "readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type\n"},
        {CONTAINER("'startupProbe':{'exec':{'command':['a']},'successThreshold':2}"),
         AT "startupProbe.successThreshold: Invalid value: 2: must be 1\n"},
        {CONTAINER("'lifecycle':{'preStop':{'sleep':{'seconds':1}}}"), ""},
        {POD("'initContainers':[{'name':'i','image':'i','livenessProbe':{'exec':{'command':['a']}}}"
             "]"),
         "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
         "without restartPolicy=Always\n"},
    };
    CHECK_ALL(rows, validate_pod, false);
}

static void pods(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {POD("'hostname':'a'"), ""},
        {POD("'hostname':'A_b'"),
         "spec.hostname: Invalid value: \"A_b\": must be made of a-z, 0-9 and '-'\n"},
        {POD("'volumes':[{'name':'v','hostPath':{'path':'/a/../b'}}]"),
         "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'\n"},
        {POD("'volumes':[{'name':'v','hostPath':{'path':'/a..b'}}]"), ""},
        {POD("'volumes':[{'name':'v','secret':{'items':[{'key':'k','path':'/p'}]}}]"),
         "spec.volumes[0].secret.items[0].path: Invalid value: \"/p\": must be a relative path\n"},
        {POD("'tolerations':[{'operator':'Exists'},{'key':'a','value':'b'}]"), ""},
        {POD("'tolerations':[{'effect':'Perhaps','operator':'Exists'}]"),
         "spec.tolerations[0].effect: Unsupported value: \"Perhaps\": supported values: "
         "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"\n"},
        {POD("'schedulingGates':[{'name':'a'},{'name':'a'}]"),
         "spec.schedulingGates[1]: Duplicate value: \"a\"\n"},
        {POD("'dnsPolicy':'None'"), "spec.dnsConfig: Required value: must provide `dnsConfig` when "
                                    "`dnsPolicy` is None\n"},
    };
    static const struct row stored[] = {{POD("'hostname':'A_b'"), ""}};
    CHECK_ALL(rows, validate_pod, false);
    CHECK_ALL(stored, validate_pod, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services),
        cmocka_unit_test(events),
        cmocka_unit_test(containers),
        cmocka_unit_test(pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
