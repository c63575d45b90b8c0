/* Checks the API's verbs as clients see them: objects, errors, patches, scale, deletion, dry runs,
 * discovery. */
#include "api/fixture.h"

static void an_object_lives_its_life(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a")), 201);
    assert_string_equal(answer(&f, "kind"), "ConfigMap");
    assert_string_equal(answer(&f, "apiVersion"), "v1");
    assert_string_equal(answer(&f, "metadata.namespace"), "default");
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/a", NULL), 200);
    assert_int_equal(
        fixture_call(&f, "PUT", CONFIG_MAPS "/a", "{'metadata':{'name':'a'},'data':{'k':'w'}}"),
        200);
    assert_string_equal(answer(&f, "data.k"), "w");
    assert_int_equal(
        fixture_call(&f, "GET", "/api/v1/configmaps?fieldSelector=metadata.name=a", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "ConfigMapList");
    assert_string_equal(answer(&f, "items.0.data.k"), "w");
    assert_int_equal(fixture_call(&f, "DELETE", CONFIG_MAPS "/a", NULL), 200);
    assert_string_equal(answer(&f, "status"), "Success");
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/a", NULL), 404);
    fixture_done(&f);
}

/* A resourceVersion that is not a 64-bit number is ignored at a creation, and so is 0. */
static void what_is_no_version_does_not_hinder_a_creation(void **state)
{
    (void)state;
    static const char *const versions[] = {"0", "x", "-5", "99999999999999999999999"};
    struct fixture f;
    fixture_init(&f, NULL);
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{'metadata':{'name':'a%zu','resourceVersion':'%s'}}", i,
                       versions[i]);
        assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS, body), 201);
    }
    fixture_done(&f);
}

/* Requests, and the Status that refuses each of them, which kubectl prints as a sentence. */
#define LETTERS_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct refusal {
    const char *method;
    const char *target;
    const char *body;
    int code;
    const char *reason;
    const char *message; /* a part of the message */
} refusals[] = {
    {"GET", JOBS "/no", NULL, 404, "NotFound", "pytorchjobs.kubeflow.org \"no\" not found"},
    {"POST", CONFIG_MAPS, CONFIG_MAP("there"), 409, "AlreadyExists",
     "configmaps \"there\" already exists"},
    {"PUT", CONFIG_MAPS "/there", "{'metadata':{'name':'there','resourceVersion':'1'}}", 409,
     "Conflict",
     "Operation cannot be fulfilled on configmaps \"there\": the object has been modified"},
    {"PUT", CONFIG_MAPS "/there", "{'metadata':{'name':'other'}}", 400, "BadRequest",
     "the name of the provided object does not match"},
    {"POST", CONFIG_MAPS, "{'kind':'Pod','metadata':{'name':'a'}}", 400, "BadRequest", "kind"},
    {"POST", CONFIG_MAPS, "{'metadata':{'name':'a','namespace':'other'}}", 400, "BadRequest",
     "namespace"},
    {"POST", CONFIG_MAPS, "{'metadata':", 400, "BadRequest", "the body: JSON: line 1,"},
    {"POST", PODS, "{'metadata':{'name':'p'},'spec':{'containers':{'name':'a'}}}", 400,
     "BadRequest",
     "Pod in version \"v1\" cannot be handled as a Pod: spec.containers: must be a list, not a "
     "mapping"},
    {"PUT", CONFIG_MAPS "/there", "{'metadata':{'name':'there'},'data':{'k':1}}", 400, "BadRequest",
     "cannot be handled as a ConfigMap: data.k: must be text, not a number"},
    {"POST", CONFIG_MAPS, "[]", 400, "BadRequest", "must be a JSON object"},
    {"POST", CONFIG_MAPS, NULL, 400, "BadRequest", "no body"},
    {"POST", CONFIG_MAPS, "{'metadata':{'name':'A_'}}", 422, "Invalid",
     "ConfigMap \"A_\" is invalid: metadata.name: \"A_\" must be made of"},
    {"POST", CONFIG_MAPS, "{'metadata':{'name':'a','labels':{'b c':'d','e':'!'}}}", 422, "Invalid",
     "is invalid: [metadata.labels"},
    {"POST", CONFIG_MAPS, "{'metadata':{}}", 422, "Invalid", "metadata.name: is missing"},
    {"POST", PODS, "{'spec':{'containers':[{'name':'a'}]}}", 422, "Invalid", "metadata.name: is"},
    {"POST", PODS, "{'metadata':{'name':'a','annotations':{'b c':'d'}}}", 422, "Invalid",
     "metadata.annotations[b c]: an annotation's name must be"},
    {"POST", CONFIG_MAPS, "{'metadata':{'name':'a','resourceVersion':'5'}}", 500, "InternalError",
     "resourceVersion should not be set on objects to be created"},
    {"POST", CONFIG_MAPS "?fieldValidation=Maybe", CONFIG_MAP("a"), 422, "Invalid",
     "fieldValidation: Unsupported value: \"Maybe\""},
    {"POST", CONFIG_MAPS "?fieldValidation=Strict",
     "{'metadata':{'name':'a','labls':{}},'data':{'k':'1','k':'2'},'dta':{}}", 400, "BadRequest",
     "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: "
     "duplicate field \"data.k\", unknown field \"metadata.labls\", unknown field \"dta\""},
    {"POST", CONFIG_MAPS, CONFIG_MAP(LETTERS_64 LETTERS_64 LETTERS_64 LETTERS_64), 422, "Invalid",
     "must have 1 to 253 characters"},
    {"POST", PODS, "{'metadata':{'name':'p'},'spec':{}}", 422, "Invalid",
     "Pod \"p\" is invalid: spec.containers: is missing"},
    {"POST", "/api/v1/configmaps", CONFIG_MAP("a"), 400, "BadRequest", "namespace"},
    {"PATCH", CONFIG_MAPS, "{}", 405, "MethodNotAllowed", "does not allow this method"},
    {"DELETE", "/api/v1/namespaces/default", NULL, 403, "Forbidden", "default"},
    {"GET", CONFIG_MAPS "?labelSelector=a in b", NULL, 400, "BadRequest", "selector"},
    {"GET", CONFIG_MAPS "?fieldSelector=status.phase=x", NULL, 400, "BadRequest",
     "field label not supported: status.phase"},
    {"GET", CONFIG_MAPS "?limit=x", NULL, 400, "BadRequest", "limit"},
    {"GET", CONFIG_MAPS "?watch=1&resourceVersion=99999", NULL, 410, "Expired", "resourceVersion"},
    {"GET", "/apis/kubeflow.org/v1beta1/namespaces/default/pytorchjobs", NULL, 404, "NotFound",
     "could not find the requested resource"},
    {"GET", "/api/v1/namespaces/default/configmaps/a/status", NULL, 404, "NotFound",
     "could not find"},
    {"GET", "/api/v1/pods/a", NULL, 404, "NotFound", "could not find"},
    {"DELETE", CONFIG_MAPS "/there?propagationPolicy=Never", NULL, 422, "Invalid",
     "propagationPolicy: Unsupported value"},
    {"DELETE", CONFIG_MAPS "/there", "{'orphanDependents':true,'propagationPolicy':'Foreground'}",
     422, "Invalid", "orphanDependents and deletionPropagation cannot be both set"},
    {"POST", CONFIG_MAPS "?dryRun=Some", CONFIG_MAP("a"), 422, "Invalid",
     "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]"},
    {"GET", CONFIG_MAPS "?resourceVersion=99999", NULL, 504, "Timeout",
     "Timeout: Too large resource version: 99999, current: "},
    {"GET", "/muster/v1/nothing", NULL, 404, "NotFound", "could not find"},
    {"POST", "/api/v1/namespaces/default/pods/a/exec", NULL, 404, "NotFound",
     "pods \"a\" not found"},
    {"GET", "/api/v1/namespaces/default/pods/a/portforward", NULL, 404, "NotFound",
     "pods \"a\" not found"},
    {"POST", "/apis/apps/v1/namespaces/default/deployments", "{'metadata':{'name':'a'}}", 405,
     "MethodNotAllowed", "there are no deployments here: what makes pods is a PyTorchJob"},
    {"PATCH", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/a", "{}", 405,
     "MethodNotAllowed", "there are no horizontalpodautoscalers here: kubectl scale"},
    {"GET", "/apis/apps/v1/namespaces/default/deployments/a", NULL, 404, "NotFound",
     "deployments.apps \"a\" not found"},
    {"DELETE", "/apis/apps/v1/namespaces/default/deployments/a", NULL, 404, "NotFound",
     "deployments.apps \"a\" not found"},
    {"GET", "/apis/apps/v2/namespaces/default/deployments", NULL, 404, "NotFound",
     "could not find the requested resource"},
    {"GET", "/api/v1/namespaces/default/pods/a/proxy", NULL, 405, "MethodNotAllowed",
     "a rank's ports are ports of this machine"},
};

static void refusals_say_what_kubectl_expects(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("there"));
    fixture_call(&f, "PUT", CONFIG_MAPS "/there", "{'metadata':{'name':'there'},'data':{'a':'b'}}");
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        int code = fixture_call(&f, r->method, r->target, r->body);
        if (code != r->code || strcmp(answer(&f, "reason"), r->reason) != 0 ||
            !strstr(answer(&f, "message"), r->message) || doc_int(f.doc, "code", 0) != code) {
            fail_msg("%s %s: %s", r->method, r->target, buf_str(&f.last.bytes));
        }
    }
    fixture_call(&f, "GET", CONFIG_MAPS, NULL);
    assert_int_equal(json_array_size(json_object_get(f.doc, "items")), 1);
    fixture_done(&f);
}

/* These become parts of paths: names of containers and volumes, and the uid of an owner. */
static const struct odd_name {
    const char *target;
    const char *body;
    const char *message;
} odd_names[] = {
#define WITH(metadata, spec) "{'metadata':{" metadata "},'spec':{" spec "}}"
#define ONE(name) "'containers':[{'name':'" name "','image':'x'}]"
    {PODS, WITH("'name':'p'", ONE("../../../x")), "spec.containers[0].name: \"../../../x\" must"},
    {PODS, WITH("'name':'p'", ONE("")), "spec.containers[0].name: \"\" must"},
    {PODS, WITH("'name':'p'", "'containers':[]"), "spec.containers: is empty"},
    {PODS, WITH("'name':'p'", "'containers':[{'name':'a','image':'x'},{'name':'a','image':'x'}]"),
     "spec.containers[1].name: duplicate name"},
    {PODS, WITH("'name':'p'", ONE("a") ",'initContainers':[{'name':'..','image':'x'}]"),
     "spec.initContainers[0].name: \"..\" must"},
    {PODS, WITH("'name':'p'", ONE("a") ",'volumes':[{'name':'../v','emptyDir':{}}]"),
     "spec.volumes[0].name: \"../v\" must"},
    {PODS,
     WITH("'name':'p'", "'containers':[{'name':'a','image':'x','volumeMounts':[{'name':'v',"
                        "'mountPath':'/v','subPath':'../../etc'}]}],'volumes':[{'name':'v'}]"),
     "spec.containers[0].volumeMounts[0].subPath: \"../../etc\" must"},
    {PODS, WITH("'generateName':'../x/'", ONE("a")), "metadata.generateName: \"../x/\" must"},
    {PODS, WITH("'name':null,'generateName':'../x/'", ONE("a")),
     "metadata.generateName: \"../x/\" must"},
    {PODS,
     WITH("'name':'p','ownerReferences':[{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob',"
          "'name':'j','uid':'../../x','controller':true}]",
          ONE("a")),
     "metadata.ownerReferences[0].uid: \"../../x\" must"},
    {CLAIMS, WITH("'generateName':'../../x'", "'accessModes':['ReadWriteOnce']"),
     "metadata.generateName: \"../../x\" must"},
    {CLAIMS, WITH("'name':null,'generateName':'../../x'", "'accessModes':['ReadWriteOnce']"),
     "metadata.generateName: \"../../x\" must"},
    {CONFIG_MAPS, "{'metadata':{'generateName':'../../x'}}",
     "metadata.generateName: \"../../x\" must"},
    {JOBS,
     "{'metadata':{'name':null,'generateName':'../../x'},'spec':{'pytorchReplicaSpecs':{"
     "'Master':" REPLICA(1) "}}}",
     "metadata.generateName: \"../../x\" must"},
    {"/api/v1/namespaces", "{'metadata':{'name':null,'generateName':'../../x'}}",
     "metadata.generateName: \"../../x\" must"},
#undef WITH
#undef ONE
};

static void no_name_leaves_its_folder(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    int failed = 0;
    for (size_t i = 0; i < sizeof odd_names / sizeof odd_names[0]; i++) {
        int code = fixture_call(&f, "POST", odd_names[i].target, odd_names[i].body);
        if (code != 422 || !strstr(answer(&f, "message"), odd_names[i].message)) {
            print_error("%s %s: %d %s\n", odd_names[i].target, odd_names[i].body, code,
                        buf_str(&f.last.bytes));
            failed++;
        }
    }
    assert_int_equal(failed, 0);
    fixture_done(&f);
}

static void who_applies_another_value_is_told_whose_the_field_is(void **state)
{
    static const char type[] = "application/apply-patch+yaml";
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call_as(&f, "PATCH", CONFIG_MAPS "/a?fieldManager=one",
                                     "{'metadata':{'name':'a'},'data':{'k':'v'}}", type, NULL),
                     201);
    assert_string_equal(answer(&f, "metadata.managedFields.0.manager"), "one");
    assert_int_equal(fixture_call_as(&f, "PATCH", CONFIG_MAPS "/a?fieldManager=two",
                                     "{'metadata':{'name':'a'},'data':{'k':'w'}}", type, NULL),
                     409);
    assert_string_equal(answer(&f, "message"),
                        "Apply failed with 1 conflict: conflict with \"one\": .data.k");
    assert_string_equal(answer(&f, "details.causes.0.reason"), "FieldManagerConflict");
    assert_int_equal(fixture_call_as(&f, "PATCH", CONFIG_MAPS "/a?fieldManager=two&force=true",
                                     "{'metadata':{'name':'a'},'data':{'k':'w'}}", type, NULL),
                     200);
    assert_string_equal(answer(&f, "metadata.managedFields.0.manager"), "two");
    assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS,
                                  "{'metadata':{'name':'b','managedFields':[{'manager':'x'}]}}"),
                     201);
    assert_null(doc_at(f.doc, "metadata.managedFields"));
    fixture_done(&f);
}

static void what_a_patch_makes_of_another_type_is_a_cause(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    assert_int_equal(fixture_call_as(&f, "PATCH", CONFIG_MAPS "/a", "{'data':{'k':1}}",
                                     "application/merge-patch+json", NULL),
                     422);
    assert_string_equal(answer(&f, "details.causes.0.field"), "patch");
    assert_non_null(strstr(answer(&f, "message"), "data.k: must be text, not a number"));
    assert_int_equal(json_array_size(doc_at(f.doc, "details.causes")), 1);
    fixture_done(&f);
}

static void a_bad_job_gets_all_its_causes_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", JOBS,
                                  "{'metadata':{'name':'j'},'spec':{'pytorchReplicaSpecs':{"
                                  "'Master':" REPLICA(2) ",'Worker':" REPLICA(0) "}}}"),
                     422);
    const json_t *causes = doc_at(f.doc, "details.causes");
    assert_int_equal(json_array_size(causes), 2);
    assert_string_equal(answer(&f, "details.causes.0.field"),
                        "spec.pytorchReplicaSpecs.Master.replicas");
    assert_string_equal(answer(&f, "details.kind"), "PyTorchJob");
    assert_non_null(strstr(answer(&f, "message"), "PyTorchJob.kubeflow.org \"j\" is invalid: ["));
    fixture_done(&f);
}

/* The message may quote text of the user, so the reason does not depend on it. */
static void the_reason_of_a_cause_is_not_taken_from_its_message(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", JOBS,
                                  "{'metadata':{'name':'required!'},'spec':{"
                                  "'pytorchReplicaSpecs':{'Master':" REPLICA(1) "}}}"),
                     422);
    assert_string_equal(answer(&f, "details.causes.0.field"), "metadata.name");
    assert_non_null(strstr(answer(&f, "details.causes.0.message"), "required"));
    assert_string_equal(answer(&f, "details.causes.0.reason"), "FieldValueInvalid");
    fixture_done(&f);
}

/* kubectl prints the causes and not the message, so each refusal has a cause. */
static void what_is_wrong_with_no_field_is_a_cause_too(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j",
                                     "[{'op':'test','path':'/metadata/name','value':'x'}]",
                                     "application/json-patch+json", NULL),
                     422);
    assert_string_equal(answer(&f, "details.kind"), "PyTorchJob");
    assert_string_equal(answer(&f, "details.causes.0.field"), "<object>");
    assert_string_equal(answer(&f, "details.causes.0.message"), answer(&f, "message"));
    fixture_done(&f);
}

static void a_body_over_the_limit_is_refused_as_all_else(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    const struct http_request request = {.method = "POST",
                                         .path = CONFIG_MAPS,
                                         .body = "",
                                         .too_large = true,
                                         .body_bytes_max = 5 << 20};
    api_handle(f.api, &request, &f.last.reply);
    assert_int_equal(f.last.status, 413);
    assert_non_null(strstr(buf_str(&f.last.bytes), "\"reason\":\"RequestEntityTooLarge\""));
    assert_non_null(strstr(buf_str(&f.last.bytes), "too large: 5.0 MiB at most"));
    fixture_done(&f);
}

static void unknown_fields_of_a_job_are_warned_about(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", JOBS,
                                  "{'metadata':{'name':'j'},'spec':{'runPolicy':{'suspendd':true},"
                                  "'pytorchReplicaSpecs':{'Master':" REPLICA(1) "}}}"),
                     201);
    assert_non_null(
        strstr(buf_str(&f.last.headers),
               "Warning: 299 - \"unknown field \\\"spec.runPolicy.suspendd\\\" (did you "
               "mean suspend?)\""));
    fixture_done(&f);
}

static void keys_that_are_there_twice_are_warned_about(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    static const char twice[] = "{'metadata':{'name':'c'},'data':{'k':'1','k':'2'}}";
    assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS, twice), 201);
    assert_string_equal(answer(&f, "data.k"), "2");
    assert_non_null(strstr(buf_str(&f.last.headers), "duplicate field \\\"data.k\\\""));
    assert_int_equal(fixture_call(&f, "PUT", CONFIG_MAPS "/c?fieldValidation=Ignore",
                                  "{'metadata':{'name':'c','lbls':{}},'data':{'k':'1','k':'3'}}"),
                     200);
    assert_null(strstr(buf_str(&f.last.headers), "Warning"));
    fixture_done(&f);
}

static void patches_of_three_kinds(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    fixture_call(&f, "POST", PODS, POD("p"));
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j",
                                     "{'spec':{'runPolicy':{'suspend':true}}}",
                                     "application/merge-patch+json", NULL),
                     200);
    assert_int_equal(doc_int(f.doc, "metadata.generation", 0), 2);
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j",
                                     "[{'op':'replace','path':'/spec/runPolicy/suspend','value':"
                                     "false}]",
                                     "application/json-patch+json", NULL),
                     200);
    assert_false(doc_bool(f.doc, "spec.runPolicy.suspend", true));
    assert_int_equal(fixture_call_as(&f, "PATCH", PODS "/p",
                                     "{'spec':{'containers':[{'name':'main','image':'y'}]}}",
                                     "application/strategic-merge-patch+json; charset=utf-8", NULL),
                     200);
    assert_string_equal(answer(&f, "spec.containers.0.image"), "y");
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j", "{}",
                                     "application/strategic-merge-patch+json", NULL),
                     415);
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/new?fieldManager=me", JOB("new"),
                                     "application/apply-patch+yaml", NULL),
                     201);
    fixture_done(&f);
}

static void status_is_written_through_its_own_door(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j", "{'status':{'startTime':'x'}}",
                                     "application/merge-patch+json", NULL),
                     200);
    assert_null(doc_at(f.doc, "status.startTime"));
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j/status",
                                     "{'status':{'startTime':'x'},'spec':{'nprocPerNode':'9'}}",
                                     "application/merge-patch+json", NULL),
                     200);
    assert_string_equal(answer(&f, "status.startTime"), "x");
    assert_null(doc_at(f.doc, "spec.nprocPerNode"));
    fixture_done(&f);
}

static void scale_reads_and_writes_the_workers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    assert_int_equal(fixture_call(&f, "GET", JOBS "/j/scale", NULL), 200);
    assert_string_equal(answer(&f, "apiVersion"), "autoscaling/v1");
    assert_int_equal(doc_int(f.doc, "spec.replicas", 0), 2);
    assert_int_equal(fixture_call_as(&f, "PATCH", JOBS "/j/scale", "{'spec':{'replicas':5}}",
                                     "application/merge-patch+json", NULL),
                     200);
    assert_int_equal(doc_int(f.doc, "spec.replicas", 0), 5);
    assert_int_equal(fixture_call(&f, "PUT", JOBS "/j/scale", "{'spec':{'replicas':-1}}"), 422);
    fixture_call(&f, "GET", JOBS "/j", NULL);
    assert_int_equal(doc_int(f.doc, "spec.pytorchReplicaSpecs.Worker.replicas", 0), 5);
    fixture_done(&f);
}

static void a_dry_run_does_everything_and_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    int64_t before = store_version(f.store);
    assert_int_equal(fixture_call(&f, "POST", CONFIG_MAPS "?dryRun=All", CONFIG_MAP("a")), 201);
    assert_int_equal(strlen(answer(&f, "metadata.uid")), 36);
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/a", NULL), 404);
    assert_int_equal(store_version(f.store), before);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    assert_int_equal(fixture_call(&f, "DELETE", CONFIG_MAPS "/a?dryRun=All", NULL), 200);
    assert_int_equal(fixture_call(&f, "DELETE", CONFIG_MAPS "/a", "{'dryRun':['All']}"), 200);
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/a", NULL), 200);
    fixture_done(&f);
}

/* A new job replaces a finished job of the same name in one step, but never a live job. */
static void a_finished_job_makes_room(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    muster_auto(free) char *uid = strdup(answer(&f, "metadata.uid"));
    assert_int_equal(fixture_call(&f, "POST", JOBS "?musterReplaceFinished=true", JOB("j")), 409);
    fixture_call_as(&f, "PATCH", JOBS "/j/status",
                    "{'status':{'conditions':[{'type':'Failed','status':'True'}]}}",
                    "application/merge-patch+json", NULL);
    assert_int_equal(fixture_call(&f, "POST", JOBS, JOB("j")), 409);
    assert_int_equal(fixture_call(&f, "POST", JOBS "?musterReplaceFinished=true", JOB("j")), 201);
    assert_string_not_equal(answer(&f, "metadata.uid"), uid);
    fixture_done(&f);
}

static void media_types_are_of_either_case(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call_as(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"),
                                     "Application/JSON; Charset=UTF-8", NULL),
                     201);
    assert_int_equal(fixture_call_as(&f, "PATCH", CONFIG_MAPS "/a", "{'data':{'k':'w'}}",
                                     "application/Merge-Patch+json", NULL),
                     200);
    assert_string_equal(answer(&f, "data.k"), "w");
    fixture_done(&f);
}

static void a_bound_pod_terminates_others_go_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", PODS, POD("unbound"));
    fixture_call(&f, "POST", PODS,
                 "{'metadata':{'name':'bound'},'spec':{'nodeName':'n','containers':[{'name':'m',"
                 "'image':'x'}]}}");
    assert_int_equal(fixture_call(&f, "DELETE", PODS "/unbound", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "Status");
    assert_int_equal(fixture_call(&f, "DELETE", PODS "/bound", "{'gracePeriodSeconds':7}"), 200);
    assert_string_equal(answer(&f, "kind"), "Pod");
    assert_int_equal(doc_int(f.doc, "metadata.deletionGracePeriodSeconds", 0), 7);
    assert_int_equal(fixture_call(&f, "DELETE", PODS "/bound?gracePeriodSeconds=0", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", PODS "/bound", NULL), 404);
    fixture_done(&f);
}

/* kubectl delete --cascade=foreground and client-go send these requests. */
static void in_the_foreground_a_job_outlives_its_pods(void **state)
{
    (void)state;
    struct fixture f;
    char pod[512];
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", JOBS, JOB("j"));
    (void)snprintf(pod, sizeof pod,
                   "{'metadata':{'name':'p','ownerReferences':[{'apiVersion':'kubeflow.org/v1',"
                   "'kind':'PyTorchJob','name':'j','uid':'%s','blockOwnerDeletion':true}]},"
                   "'spec':{'nodeName':'n','containers':[{'name':'m','image':'x'}]}}",
                   answer(&f, "metadata.uid"));
    assert_int_equal(fixture_call(&f, "POST", PODS, pod), 201);
    assert_int_equal(fixture_call(&f, "DELETE", JOBS "/j", "{'propagationPolicy':'Foreground'}"),
                     200);
    assert_string_equal(answer(&f, "kind"), "PyTorchJob");
    assert_string_equal(answer(&f, "metadata.finalizers.0"), "foregroundDeletion");
    assert_int_equal(fixture_call(&f, "GET", PODS "/p", NULL), 200);
    assert_non_null(doc_at(f.doc, "metadata.deletionTimestamp"));
    assert_int_equal(fixture_call(&f, "DELETE", JOBS "/j", NULL), 200); /* it still waits */
    assert_int_equal(fixture_call(&f, "GET", JOBS "/j", NULL), 200);
    assert_int_equal(fixture_call(&f, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", JOBS "/j", NULL), 404);

    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("c"));
    assert_int_equal(
        fixture_call(&f, "DELETE", CONFIG_MAPS "/c?propagationPolicy=Foreground", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "ConfigMap"); /* as it was when it was marked */
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/c", NULL), 404);
    fixture_done(&f);
}

static void collections_and_namespaces_are_deleted_whole(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    fixture_call(&f, "POST", CONFIG_MAPS, "{'metadata':{'name':'b'}}");
    assert_int_equal(fixture_call(&f, "DELETE", CONFIG_MAPS "?labelSelector=l=v", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/a", NULL), 404);
    assert_int_equal(fixture_call(&f, "GET", CONFIG_MAPS "/b", NULL), 200);

    fixture_call(&f, "POST", "/api/v1/namespaces/team/configmaps", CONFIG_MAP("c"));
    assert_int_equal(fixture_call(&f, "GET", "/api/v1/namespaces/team", NULL), 200);
    assert_int_equal(fixture_call(&f, "DELETE", "/api/v1/namespaces/team", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", "/api/v1/namespaces/team/configmaps/c", NULL), 404);
    fixture_done(&f);
}

static void secrets_take_plain_text_and_keep_base64(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", "/api/v1/namespaces/default/secrets",
                                  "{'metadata':{'name':'s'},'stringData':{'a':'hello','b':''}}"),
                     201);
    assert_string_equal(answer(&f, "data.a"), "aGVsbG8=");
    assert_string_equal(answer(&f, "data.b"), "");
    assert_null(doc_at(f.doc, "stringData"));
    assert_string_equal(answer(&f, "type"), "Opaque");
    fixture_done(&f);
}

static void kubectl_gets_its_table(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", PODS, POD("p"));
    assert_int_equal(
        fixture_call_as(&f, "GET", PODS, NULL, NULL,
                        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
        200);
    assert_string_equal(answer(&f, "kind"), "Table");
    assert_string_equal(answer(&f, "columnDefinitions.2.name"), "Status");
    muster_auto(free) char *cells = doc_print(doc_at(f.doc, "rows.0.cells"));
    assert_non_null(
        strstr(cells, "[\"p\",\"0/1\",\"Pending\",\"0\",\"0s\",\"<none>\",\"<none>\"]"));
    assert_string_equal(answer(&f, "rows.0.object.kind"), "PartialObjectMetadata");
    fixture_done(&f);
}

static void pages_follow_each_other(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("a"));
    fixture_call(&f, "POST", CONFIG_MAPS, CONFIG_MAP("b"));
    fixture_call(&f, "GET", CONFIG_MAPS "?limit=1", NULL);
    assert_string_equal(answer(&f, "items.0.metadata.name"), "a");
    char target[256];
    (void)snprintf(target, sizeof target, CONFIG_MAPS "?limit=1&continue=%s",
                   answer(&f, "metadata.continue"));
    fixture_call(&f, "GET", target, NULL);
    assert_string_equal(answer(&f, "items.0.metadata.name"), "b");
    assert_string_equal(answer(&f, "metadata.continue"), "");
    fixture_done(&f);
}

static void what_is_immutable_stays(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    fixture_call(&f, "POST", CONFIG_MAPS, "{'metadata':{'name':'a'},'data':{'k':'1'}}");
    assert_int_equal(fixture_call(&f, "PUT", CONFIG_MAPS "/a",
                                  "{'metadata':{'name':'a'},'data':{'k':'1'},'immutable':true}"),
                     200);
    assert_int_equal(fixture_call(&f, "PUT", CONFIG_MAPS "/a",
                                  "{'metadata':{'name':'a'},'data':{'k':'1'},'immutable':false}"),
                     422);
    assert_int_equal(fixture_call(&f, "PUT", CONFIG_MAPS "/a",
                                  "{'metadata':{'name':'a'},'data':{'k':'2'},'immutable':true}"),
                     422);
    assert_int_equal(fixture_call(&f, "PUT", CONFIG_MAPS "/a",
                                  "{'metadata':{'name':'a','labels':{'b':'c'}},'data':{'k':'1'},"
                                  "'immutable':true}"),
                     200);
    fixture_done(&f);
}

static void a_claim_is_bound(void **state)
{
    (void)state;
    muster_auto(doc) json_t *claim =
        json_pack("{s:{s:[s], s:{s:{s:s}}}}", "spec", "accessModes", "ReadWriteMany", "resources",
                  "requests", "storage", "1Gi");
    assert_int_equal(api_fill("persistentvolumeclaims", claim), 0);
    assert_string_equal(doc_text(claim, "status.phase", ""), "Bound");
    assert_string_equal(doc_text(claim, "status.capacity.storage", ""), "1Gi");
    assert_string_equal(doc_text(claim, "status.accessModes.0", ""), "ReadWriteMany");
}

static void an_evicted_pod_is_deleted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "POST", PODS,
                                  "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'c',"
                                  "'image':'i'}]}}"),
                     201);
    const char *dry = "{'metadata':{'name':'a'},'deleteOptions':{'dryRun':['All']}}";
    assert_int_equal(fixture_call(&f, "POST", PODS "/a/eviction", dry), 200);
    assert_int_equal(fixture_call(&f, "GET", PODS "/a", NULL), 200);
    const char *other = "{'deleteOptions':{'preconditions':{'uid':'another'}}}";
    assert_int_equal(fixture_call(&f, "POST", PODS "/a/eviction", other), 409);
    assert_int_equal(fixture_call(&f, "POST", PODS "/a/eviction", "{}"), 200);
    assert_int_equal(fixture_call(&f, "GET", PODS "/a", NULL), 404);
    fixture_done(&f);
}

static void a_client_asks_what_it_may_and_who_it_is(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    int code = fixture_call(&f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                            "{'spec':{'resourceAttributes':{'verb':'create'}}}");
    assert_int_equal(code, 201);
    assert_true(doc_bool(f.doc, "status.allowed", false));
    assert_string_equal(answer(&f, "spec.resourceAttributes.verb"), "create");
    code = fixture_call(&f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "{}");
    assert_int_equal(code, 201);
    assert_string_equal(answer(&f, "status.resourceRules.0.verbs.0"), "*");
    code = fixture_call(&f, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
    assert_int_equal(code, 201);
    assert_string_equal(answer(&f, "kind"), "SelfSubjectReview");
    assert_string_equal(answer(&f, "status.userInfo.username"), "muster");
    assert_null(doc_at(f.doc, "spec"));
    fixture_done(&f);
}

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

static json_t *a_definition(void)
{
    return json_pack("{s:{s:s}, s:{s:{s:s}, s:[{s:s, s:{s:{s:s}}}]}}", "metadata", "name",
                     "pytorchjobs.kubeflow.org", "spec", "names", "kind", "PyTorchJob", "versions",
                     "name", "v1", "schema", "openAPIV3Schema", "type", "object");
}

static json_t *a_schema(const char *api_version, const char *kind)
{
    (void)api_version;
    return strcmp(kind, "PyTorchJob") == 0 ? json_pack("{s:s}", "type", "object") : NULL;
}

static void the_custom_resource_is_defined(void **state)
{
    const struct api_hooks hooks = {.definition = a_definition, .schema = a_schema};
    (void)state;
    struct fixture f;
    fixture_init(&f, &hooks);
    assert_int_equal(fixture_call(&f, "GET", DEFINITIONS, NULL), 200);
    assert_string_equal(answer(&f, "items.0.metadata.name"), "pytorchjobs.kubeflow.org");
    assert_int_equal(fixture_call(&f, "GET", DEFINITIONS "/pytorchjobs.kubeflow.org", NULL), 200);
    assert_string_equal(answer(&f, "status.acceptedNames.kind"), "PyTorchJob");
    assert_int_equal(fixture_call(&f, "GET", DEFINITIONS "/tfjobs.kubeflow.org", NULL), 404);
    assert_non_null(strstr(answer(&f, "message"), "\"tfjobs.kubeflow.org\" not found"));
    assert_int_equal(fixture_call(&f, "POST", DEFINITIONS, "{}"), 405);
    assert_int_equal(fixture_call(&f, "GET", "/openapi/v3/apis/kubeflow.org/v1/", NULL), 200);
    const json_t *schema =
        json_object_get(doc_at(f.doc, "components.schemas"), "kubeflow.org.v1.PyTorchJob");
    assert_string_equal(doc_text(schema, "type", ""), "object");
    assert_string_equal(doc_text(schema, "x-kubernetes-group-version-kind.0.kind", ""),
                        "PyTorchJob");
    fixture_done(&f);
}

static void discovery_names_every_resource(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, NULL);
    assert_int_equal(fixture_call(&f, "GET", "/apis/kubeflow.org/v1", NULL), 200);
    assert_string_equal(answer(&f, "resources.0.name"), "pytorchjobs");
    assert_string_equal(answer(&f, "resources.2.kind"), "Scale");
    assert_int_equal(fixture_call(&f, "GET", "/api/v1/", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", "/apis", NULL), 200);
    assert_string_equal(answer(&f, "groups.0.name"), "kubeflow.org");
    assert_int_equal(fixture_call(&f, "GET", "/apis/authorization.k8s.io/v1", NULL), 200);
    assert_int_equal(json_array_size(doc_at(f.doc, "resources")), 2);
    assert_string_equal(answer(&f, "resources.1.name"), "selfsubjectrulesreviews");
    assert_string_equal(answer(&f, "resources.1.verbs.0"), "create");
    assert_null(doc_at(f.doc, "resources.1.verbs.1"));
    assert_int_equal(fixture_call(&f, "GET", "/apis/apiextensions.k8s.io/v1/", NULL), 200);
    assert_string_equal(answer(&f, "resources.0.shortNames.1"), "crds");
    assert_int_equal(fixture_call(&f, "GET", "/apis/apiextensions.k8s.io", NULL), 200);
    assert_string_equal(answer(&f, "kind"), "APIGroup");
    assert_string_equal(answer(&f, "preferredVersion.groupVersion"), "apiextensions.k8s.io/v1");
    assert_int_equal(fixture_call(&f, "GET", "/apis/apiextensions.k8s.io/v2", NULL), 404);
    assert_int_equal(fixture_call(&f, "GET", "/version", NULL), 200);
    static const char *const said[] = {"major",        "minor",     "gitVersion",
                                       "gitCommit",    "buildDate", "goVersion",
                                       "gitTreeState", "compiler",  "platform"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        assert_true(json_is_string(doc_at(f.doc, said[i]))); /* Python's VersionInfo needs each */
    }
    assert_int_equal(fixture_call(&f, "GET", "/openapi/v3", NULL), 200);
    assert_int_equal(fixture_call(&f, "GET", "/openapi/v3/apis/kubeflow.org/v1", NULL), 200);
    assert_non_null(strstr(buf_str(&f.last.bytes), "fieldValidation"));
    assert_int_equal(fixture_call(&f, "GET", "/healthz", NULL), 200);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_version_does_not_hinder_a_creation),
        cmocka_unit_test(an_object_lives_its_life),
        cmocka_unit_test(refusals_say_what_kubectl_expects),
        cmocka_unit_test(no_name_leaves_its_folder),
        cmocka_unit_test(who_applies_another_value_is_told_whose_the_field_is),
        cmocka_unit_test(what_a_patch_makes_of_another_type_is_a_cause),
        cmocka_unit_test(a_bad_job_gets_all_its_causes_at_once),
        cmocka_unit_test(the_reason_of_a_cause_is_not_taken_from_its_message),
        cmocka_unit_test(what_is_wrong_with_no_field_is_a_cause_too),
        cmocka_unit_test(a_body_over_the_limit_is_refused_as_all_else),
        cmocka_unit_test(unknown_fields_of_a_job_are_warned_about),
        cmocka_unit_test(keys_that_are_there_twice_are_warned_about),
        cmocka_unit_test(patches_of_three_kinds),
        cmocka_unit_test(status_is_written_through_its_own_door),
        cmocka_unit_test(scale_reads_and_writes_the_workers),
        cmocka_unit_test(a_dry_run_does_everything_and_leaves_nothing),
        cmocka_unit_test(a_finished_job_makes_room),
        cmocka_unit_test(media_types_are_of_either_case),
        cmocka_unit_test(a_bound_pod_terminates_others_go_at_once),
        cmocka_unit_test(in_the_foreground_a_job_outlives_its_pods),
        cmocka_unit_test(collections_and_namespaces_are_deleted_whole),
        cmocka_unit_test(secrets_take_plain_text_and_keep_base64),
        cmocka_unit_test(kubectl_gets_its_table),
        cmocka_unit_test(pages_follow_each_other),
        cmocka_unit_test(discovery_names_every_resource),
        cmocka_unit_test(what_is_immutable_stays),
        cmocka_unit_test(a_claim_is_bound),
        cmocka_unit_test(an_evicted_pod_is_deleted),
        cmocka_unit_test(a_client_asks_what_it_may_and_who_it_is),
        cmocka_unit_test(the_custom_resource_is_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
