/* What may stand in an object: the fields of every kind we read, from job.def and podspec.def.
 *
 * Layer: pure. Static data only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types that fields may have: X(name, title) for each. */
#define SCHEMA_TYPES                                                                               \
    X(job, "PyTorchJob")                                                                           \
    X(config_map, "ConfigMap")                                                                     \
    X(secret, "Secret")                                                                            \
    X(claim, "PersistentVolumeClaim")                                                              \
    X(namespace, "Namespace")                                                                      \
    X(metadata, "ObjectMeta")                                                                      \
    X(job_spec, "PyTorchJobSpec")                                                                  \
    X(run_policy, "RunPolicy")                                                                     \
    X(scheduling_policy, "SchedulingPolicy")                                                       \
    X(elastic_policy, "ElasticPolicy")                                                             \
    X(rdzv_conf, "RDZVConf")                                                                       \
    X(replica_specs, "the map of replica types")                                                   \
    X(replica_spec, "ReplicaSpec")                                                                 \
    X(claim_template, "PersistentVolumeClaimTemplate")                                             \
    X(claim_spec, "PersistentVolumeClaimSpec")                                                     \
    X(claim_resources, "VolumeResourceRequirements")                                               \
    X(job_status, "PyTorchJobStatus")                                                              \
    X(condition, "JobCondition")                                                                   \
    X(replica_statuses, "the map of replica statuses")                                             \
    X(replica_status, "ReplicaStatus")                                                             \
    X(pod_template, "PodTemplateSpec")                                                             \
    X(pod_spec, "PodSpec")                                                                         \
    X(container, "Container")                                                                      \
    X(port, "ContainerPort")                                                                       \
    X(security, "SecurityContext")                                                                 \
    X(env, "EnvVar")                                                                               \
    X(env_source, "EnvVarSource")                                                                  \
    X(field_ref, "ObjectFieldSelector")                                                            \
    X(resource_ref, "ResourceFieldSelector")                                                       \
    X(key_ref, "KeySelector")                                                                      \
    X(env_from, "EnvFromSource")                                                                   \
    X(object_ref, "LocalObjectReference")                                                          \
    X(resources, "ResourceRequirements")                                                           \
    X(mount, "VolumeMount")                                                                        \
    X(volume, "Volume")                                                                            \
    X(config_map_volume, "ConfigMapVolumeSource")                                                  \
    X(secret_volume, "SecretVolumeSource")                                                         \
    X(key_to_path, "KeyToPath")                                                                    \
    X(empty_dir, "EmptyDirVolumeSource")                                                           \
    X(host_path, "HostPathVolumeSource")                                                           \
    X(claim_volume, "PersistentVolumeClaimVolumeSource")

enum schema_type {
#define X(name, title) SCHEMA_##name,
    SCHEMA_TYPES
#undef X
        SCHEMA_TYPE_COUNT
};

enum schema_kind {
    SCHEMA_ANY,
    SCHEMA_TEXT,
    SCHEMA_TEXTS,    /* a list of text */
    SCHEMA_TEXT_MAP, /* labels */
    SCHEMA_INTEGER,  /* min to max */
    SCHEMA_BOOLEAN,
    SCHEMA_QUANTITY,     /* "500m", 1, "1Gi" */
    SCHEMA_QUANTITY_MAP, /* limits */
    SCHEMA_OBJECT,       /* of a type */
    SCHEMA_LIST,         /* of objects of a type */
};

/* The form that text must have (job/text.h describes it in words). */
enum schema_form {
    SCHEMA_FREE,
    SCHEMA_WORDS,      /* one of field->words */
    SCHEMA_NOT_EMPTY,  /* an image */
    SCHEMA_LABEL,      /* DNS-1123 label: container and volume names */
    SCHEMA_LABEL_1035, /* DNS-1035 label: job names */
    SCHEMA_SUBDOMAIN,  /* DNS-1123 subdomain: other objects' names */
    SCHEMA_LABEL_VALUE,
    SCHEMA_QUALIFIED, /* the name of a label or annotation: [domain/]name */
    SCHEMA_ENV_NAME,
    SCHEMA_PORT_NAME,
    SCHEMA_ABSOLUTE, /* a path */
    SCHEMA_INSIDE,   /* a path in a volume */
    SCHEMA_PROCESSES /* auto, cpu, gpu or a count */
};

enum schema_support {
    SCHEMA_SUPPORTED,
    SCHEMA_WARNED,   /* runs, but the field does nothing here */
    SCHEMA_REJECTED, /* cannot be run here */
};

struct schema_field {
    enum schema_type type; /* the type that has this field */
    const char *name;
    enum schema_kind kind;
    enum schema_type of; /* SCHEMA_OBJECT, SCHEMA_LIST */
    enum schema_form form;
    const char *words; /* separated by blanks */
    int64_t min;
    int64_t max;
    bool required;
    enum schema_support support;
    const char *says; /* a sentence: what happens to the field on this machine */
};

/* Returns NULL if the type has no such field. */
const struct schema_field *schema_find(enum schema_type type, const char *name);

/* Returns the fields of all types, in the order of the tables; fields of one type are together. */
const struct schema_field *schema_fields(size_t *ret_count);

const char *schema_title(enum schema_type type);

/* Returns the known field nearest to a misspelt name, or NULL if none is near. */
const struct schema_field *schema_nearest(enum schema_type type, const char *name);

/* Searches for a field of exactly that name below `type`, the shallowest first, and writes the path
 * to it ("template.spec.containers[0]", "" for the type itself). Returns false if there is none. */
bool schema_find_below(enum schema_type type, const char *name, char *ret_path, size_t path_bytes);
