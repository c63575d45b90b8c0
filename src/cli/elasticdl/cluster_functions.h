/* The functions with_pod and with_service of --cluster_spec's file: their arguments, and the use of
 * their results. ElasticDL calls them for each pod and Service that it makes; here the argument is
 * the template of the Master, as the coordinator's pod, and that of the Workers, as the first
 * worker.
 *
 * Layer: cli; pure. Messages are {"pods": […], "services": […]}, with the Master's first.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Makes the pods and Services of a job, as objects of the API; the caller releases *ret. */
int cluster_functions_ask(const json_t *job, json_t **ret, struct muster_err *err);

/* Puts labels, annotations, spec and restart policy of the answer's pods into the job's templates.
 * MUSTER_EDATA if a pod has a change that no template can hold, or if a Service was changed. */
int cluster_functions_take(json_t *job, const json_t *asked, const json_t *answer,
                           struct muster_err *err);
