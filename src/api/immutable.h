/* What may not change of an object that is there, whoever writes it. Both as they are stored.
 *
 * Layer: services, pure. Source: k8s.io/kubernetes pkg/apis/core/validation.
 */
#pragma once

#include "job/problem.h"

#include <jansson.h>

/* Each adds its problems; those that may fail return 0 or MUSTER_ENOMEM. */

/* What is being deleted gets no finalizer that it had not. Of any kind. */
void immutable_finalizers(const json_t *before, const json_t *after, struct job_problems *problems);
/* Of a pod's spec the images, a shorter deadline and more tolerations alone may change. */
int immutable_pod(const json_t *before, const json_t *after, struct job_problems *problems);
/* Of a claim's spec what it asks for alone may change. */
int immutable_claim(const json_t *before, const json_t *after, struct job_problems *problems);
/* Config maps and secrets say it themselves; a secret's type never changes. */
int immutable_data(const json_t *before, const json_t *after, struct job_problems *problems);
