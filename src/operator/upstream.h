/* What is read of Kubeflow's training-operator where it is, or was, installed: whether it works on
 * the jobs that are ours, what it left behind, and of which other kinds it takes care.
 *
 * Layer: program. Pure. Texts are borrowed.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

#define UPSTREAM_DEPLOYMENT "training-operator"
#define UPSTREAM_NAMESPACE "kubeflow" /* where its manifests put it */
#define UPSTREAM_WEBHOOKS "validator.training-operator.kubeflow.org"

/* Does that Deployment run, or still end, pods that make those of PyTorchJobs? */
bool upstream_runs(const json_t *deployment);

/* … of our namespace ("": of all). */
bool upstream_is_in(const json_t *deployment, const char *namespace);

/* The index in the configuration of the webhook that judges PyTorchJobs; -1: it has none.
 * *ret_namespace: that of the Service it asks, UPSTREAM_NAMESPACE where it names none. */
int upstream_find_webhook(const json_t *configuration, const char **ret_namespace);

/* The other program that writes the job's status since this operator does, which began at that
 * time: of managedFields an entry that is newer than ours. NULL: nobody; that is what a job says
 * which was taken over. Times have whole seconds: a program that writes in the same one is seen
 * later. */
const char *upstream_other_writer(const json_t *job, int64_t since_unix_ms);

/* "MPIJobs, TFJobs": the kinds of the group's list of resources but ours. */
void upstream_say_kinds(const json_t *resources, struct buf *out);
