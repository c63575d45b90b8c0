/* See definition.h. */
#include "deploy/definition.h"

#include "deploy/openapi.h"

/* Limits the cost of the CRD's validation rule; there are two replica types. */
enum { REPLICA_TYPES_MAX = 8 };

/* Returns a map, not an object of two properties: in an object the API server would drop a misspelt
 * name ("Wroker"), and the job would run without it. */
static json_t *replica_specs(struct build *b)
{
    json_t *schema = openapi_object();
    build_set(b, schema, "additionalProperties", openapi_type(b, SCHEMA_replica_spec));
    build_set(b, schema, "minProperties", json_integer(1));
    build_set(b, schema, "maxProperties", json_integer(REPLICA_TYPES_MAX));
    openapi_rule(b, schema, "self.all(type, type in ['Master', 'Worker'])",
                 "unknown replica type: use Master and Worker");
    openapi_rule(b, schema,
                 "!('Master' in self) || !has(self['Master'].replicas) || "
                 "self['Master'].replicas == 1",
                 "Master.replicas must be 1");
    openapi_rule(b, schema,
                 "!('Worker' in self) || !has(self['Worker'].replicas) || "
                 "self['Worker'].replicas >= 1",
                 "Worker.replicas must be at least 1");
    return schema;
}

static void change_run_policy(struct build *b, json_t *policy)
{
    json_t *queue = openapi_property(openapi_property(policy, "schedulingPolicy"), "queue");
    build_set(b, openapi_property(policy, "suspend"), "default", json_false());
    openapi_rule(b, queue, "self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable");
    openapi_rule(b, openapi_property(policy, "managedBy"), "self == oldSelf",
                 "spec.runPolicy.managedBy is immutable");
}

static json_t *spec_of(struct build *b)
{
    json_t *spec = openapi_type(b, SCHEMA_job_spec);
    build_set(b, json_object_get(spec, "properties"), "pytorchReplicaSpecs", replica_specs(b));
    change_run_policy(b, openapi_property(spec, "runPolicy"));
    return spec;
}

static void be_time(struct build *b, json_t *schema, const char *name)
{
    build_set(b, openapi_property(schema, name), "format", json_string("date-time"));
}

/* Fields that the operator keeps there beside those that clients know are preserved as they are. */
static json_t *status(struct build *b)
{
    json_t *schema = openapi_type(b, SCHEMA_job_status);
    json_t *condition = json_object_get(openapi_property(schema, "conditions"), "items");
    be_time(b, schema, "startTime");
    be_time(b, schema, "completionTime");
    be_time(b, schema, "lastReconcileTime");
    be_time(b, condition, "lastUpdateTime");
    be_time(b, condition, "lastTransitionTime");
    build_set(b, schema, "x-kubernetes-preserve-unknown-fields", json_true());
    /* One owner, one entry in managedFields, although there may be thousands of replicas below
     * it. */
    json_t *counters = openapi_property(schema, "counters");
    build_set(b, counters, "type", json_string("object"));
    build_set(b, counters, "x-kubernetes-map-type", json_string("atomic"));
    json_t *replicas = openapi_object();
    build_set(b, replicas, "additionalProperties", openapi_type(b, SCHEMA_replica_status));
    build_set(b, json_object_get(schema, "properties"), "replicaStatuses", replicas);
    return schema;
}

static json_t *job_schema(struct build *b)
{
    json_t *schema = openapi_object();
    json_t *properties = json_pack("{s:{s:s}, s:{s:s}, s:{s:s}}", "apiVersion", "type", "string",
                                   "kind", "type", "string", "metadata", "type", "object");
    build_set(b, properties, "spec", spec_of(b));
    build_set(b, properties, "status", status(b));
    build_set(b, schema, "description",
              json_string("A training job of PyTorch: its ranks are a Master and Workers."));
    build_set(b, schema, "properties", properties);
    build_set(b, schema, "required", json_pack("[s]", "spec"));
    return schema;
}

static json_t *columns(void)
{
    return json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "name", "State", "type", "string",
                     "jsonPath", ".status.conditions[-1:].type", "name", "Age", "type", "date",
                     "jsonPath", ".metadata.creationTimestamp");
}

static json_t *subresources(void)
{
    return json_pack("{s:{}, s:{s:s, s:s, s:s}}", "status", "scale", "specReplicasPath",
                     ".spec.pytorchReplicaSpecs.Worker.replicas", "statusReplicasPath",
                     ".status.replicaStatuses.Worker.active", "labelSelectorPath",
                     ".status.replicaStatuses.Worker.selector");
}

static json_t *version_new(struct build *b)
{
    return json_pack("{s:s, s:b, s:b, s:o, s:o, s:{s:o}}", "name", "v1", "served", 1, "storage", 1,
                     "additionalPrinterColumns", columns(), "subresources", subresources(),
                     "schema", "openAPIV3Schema", job_schema(b));
}

json_t *definition_new(void)
{
    struct build b = {0};
    json_t *made =
        json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:{s:s, s:s, s:s, s:s}, s:s, s:[o]}}", "apiVersion",
                  "apiextensions.k8s.io/v1", "kind", "CustomResourceDefinition", "metadata", "name",
                  "pytorchjobs.kubeflow.org", "spec", "group", "kubeflow.org", "names", "kind",
                  "PyTorchJob", "listKind", "PyTorchJobList", "plural", "pytorchjobs", "singular",
                  "pytorchjob", "scope", "Namespaced", "versions", version_new(&b));
    return build_end(&b, made);
}
