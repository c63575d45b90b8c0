/* What is read of Kubeflow's training-operator if it is, or was, installed: whether it works on
 * PyTorchJobs, which of its parts are left, and which other kinds it handles.
 *
 * Layer: program. Pure. Texts are borrowed.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

#define UPSTREAM_DEPLOYMENT "training-operator"
#define UPSTREAM_NAMESPACE "kubeflow" /* the namespace in upstream's manifests */
#define UPSTREAM_WEBHOOKS "validator.training-operator.kubeflow.org"

/* Whether that Deployment has pods, perhaps still ending, that create the pods of PyTorchJobs. */
bool upstream_runs(const json_t *deployment);

/* Whether that Deployment works on our namespace ("": all namespaces). */
bool upstream_is_in(const json_t *deployment, const char *namespace);

/* Returns the index in the configuration of the webhook that validates PyTorchJobs; -1: there is
 * none. *ret_namespace: the namespace of its Service, UPSTREAM_NAMESPACE if it names none. */
int upstream_find_webhook(const json_t *configuration, const char **ret_namespace);

/* Returns another program that has written the job's status since that time, when this operator
 * began: an entry of managedFields that is newer than ours. NULL: there is none, which is also so
 * for a job that was taken over. Times have whole seconds: a program that writes in the same second
 * is found later. */
const char *upstream_other_writer(const json_t *job, int64_t since_unix_ms);

/* Writes "MPIJobs, TFJobs": the kinds in the group's list of resources, without ours. */
void upstream_say_kinds(const json_t *resources, struct buf *out);
