/* See kinds.h. */
#include "job/check/kinds.h"

#include "base/doc.h"

#include <stdio.h>
#include <string.h>

#define TEMPLATE                                                                                   \
    "put its pod template under spec.pytorchReplicaSpecs.Master.template of a PyTorchJob"
#define FROM_COMMAND "; \"muster run -n 2 --dry-run -- COMMAND\" prints a PyTorchJob to start from"
#define NOT_NEEDED "remove this document: muster does not need it"
#define READS "muster reads PyTorchJob, ConfigMap, Secret, PersistentVolumeClaim and Namespace"

static const struct kind {
    const char *kind;
    const char *group; /* how apiVersion starts; NULL: any */
    const char *what;
    const char *hint;
} kinds[] = {
    {"TrainJob", "trainer.kubeflow.org/", "Kubeflow Trainer v2",
     "write a PyTorchJob (kubeflow.org/v1) with a Master and numNodes - 1 Workers, the trainer's "
     "image, command and env in the container called pytorch" FROM_COMMAND},
    {"TrainingRuntime", "trainer.kubeflow.org/", "Kubeflow Trainer v2", NOT_NEEDED},
    {"ClusterTrainingRuntime", "trainer.kubeflow.org/", "Kubeflow Trainer v2", NOT_NEEDED},
    {"TFJob", NULL, "TensorFlow jobs", "muster starts ranks of torch.distributed" FROM_COMMAND},
    {"MPIJob", NULL, "MPI jobs", "muster starts the ranks itself, without mpirun" FROM_COMMAND},
    {"XGBoostJob", NULL, "XGBoost jobs", "muster starts ranks of torch.distributed" FROM_COMMAND},
    {"PaddleJob", NULL, "Paddle jobs", "muster starts ranks of torch.distributed" FROM_COMMAND},
    {"JAXJob", NULL, "JAX jobs", "muster starts ranks of torch.distributed" FROM_COMMAND},
    {"MXJob", NULL, "MXNet jobs", "muster starts ranks of torch.distributed" FROM_COMMAND},
    {"Job", "batch.volcano.sh/", "Volcano jobs", TEMPLATE FROM_COMMAND},
    {"Job", NULL, "Kubernetes batch jobs", TEMPLATE FROM_COMMAND},
    {"CronJob", NULL, "Kubernetes batch jobs", TEMPLATE ", and start it from cron"},
    {"JobSet", NULL, "JobSets", TEMPLATE FROM_COMMAND},
    {"RayJob", NULL, "Ray", "run Ray without muster, or write a PyTorchJob" FROM_COMMAND},
    {"RayCluster", NULL, "Ray", "run Ray without muster, or write a PyTorchJob" FROM_COMMAND},
    {"Pod", NULL, "single pods",
     "put it under spec.pytorchReplicaSpecs.Master.template of a "
     "PyTorchJob, its container called pytorch" FROM_COMMAND},
    {"Deployment", NULL, "long-running services", TEMPLATE FROM_COMMAND},
    {"StatefulSet", NULL, "long-running services", TEMPLATE FROM_COMMAND},
    {"DaemonSet", NULL, "long-running services", TEMPLATE FROM_COMMAND},
    {"ReplicaSet", NULL, "long-running services", TEMPLATE FROM_COMMAND},
    {"Service", NULL, "services", "remove this document: each pod gets its service from muster"},
    {"PersistentVolume", NULL, "volumes without a claim",
     "keep the PersistentVolumeClaim and remove this document: muster makes the volume"},
    {"StorageClass", NULL, "storage classes", NOT_NEEDED},
    {"ServiceAccount", NULL, "accounts", NOT_NEEDED},
    {"Role", NULL, "access rights", NOT_NEEDED},
    {"RoleBinding", NULL, "access rights", NOT_NEEDED},
    {"ClusterRole", NULL, "access rights", NOT_NEEDED},
    {"ClusterRoleBinding", NULL, "access rights", NOT_NEEDED},
    {"NetworkPolicy", NULL, "network policies", NOT_NEEDED},
    {"PodGroup", NULL, "gang scheduling", "remove this document: a job's pods start together"},
    {"PriorityClass", NULL, "priorities", NOT_NEEDED},
    {"CustomResourceDefinition", NULL, "resource definitions", NOT_NEEDED},
    {"Kustomization", NULL, "input of kustomize",
     "render it first: kubectl kustomize FOLDER | "
     "muster run -f -"},
};

/* Files of other programs: they have no kind, but keys by which they can be recognized. */
static const struct file {
    const char *key;
    const char *other_key;
    const char *what;
    const char *hint;
} files[] = {
    {"services", NULL, "this is a file of Docker Compose",
     "\"muster run -n 2 -- COMMAND\" starts ranks from a command"},
    {"resources", NULL, "this is a kustomization",
     "render it first: kubectl kustomize FOLDER | muster run -f -"},
    {"appVersion", NULL, "this is the Chart.yaml of a Helm chart",
     "render the chart: helm template FOLDER | muster run -f -"},
    {"image", "replicaCount", "these are values of a Helm chart",
     "render the chart: helm template FOLDER | muster run -f -"},
};

static const struct kind *find(const char *kind, const char *version)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *group = kinds[i].group;
        if (strcmp(kinds[i].kind, kind) == 0 &&
            (!group || strncmp(version, group, strlen(group)) == 0)) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Returns "Kind" or "KIND" if the object has it in place of "kind", otherwise NULL. */
static const char *misspelt_kind(const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        if (strcasecmp(key, "kind") == 0) {
            return key;
        }
    }
    return NULL;
}

static void explain_missing(const json_t *object, char *message, size_t message_bytes, char *hint,
                            size_t hint_bytes)
{
    const char *misspelt = misspelt_kind(object);
    if (json_object_get(object, "kind")) {
        snprintf(message, message_bytes, "must be text that is not empty");
        snprintf(hint, hint_bytes, "write kind: PyTorchJob");
        return;
    }
    snprintf(message, message_bytes, "is missing");
    snprintf(hint, hint_bytes, READS);
    if (misspelt && strcmp(misspelt, "kind") != 0) {
        snprintf(hint, hint_bytes, "write kind: in place of %.20s:", misspelt);
        return;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const struct file *f = &files[i];
        if (json_object_get(object, f->key) &&
            (!f->other_key || json_object_get(object, f->other_key))) {
            snprintf(message, message_bytes, "is missing: %s", f->what);
            snprintf(hint, hint_bytes, "%s", f->hint);
            return;
        }
    }
}

void kinds_explain(const json_t *object, char *ret_message, size_t message_bytes, char *ret_hint,
                   size_t hint_bytes)
{
    const char *name = doc_text(object, "kind", "");
    const struct kind *kind = find(name, doc_text(object, "apiVersion", ""));
    if (!*name) {
        explain_missing(object, ret_message, message_bytes, ret_hint, hint_bytes);
    } else if (kind) {
        snprintf(ret_message, message_bytes, "%s (%s) is not supported", name, kind->what);
        snprintf(ret_hint, hint_bytes, "%s", kind->hint);
    } else {
        snprintf(ret_message, message_bytes, "\"%.60s\" is not a kind that muster reads", name);
        snprintf(ret_hint, hint_bytes, READS);
    }
}
