/* Checks what must not change in an existing object, whoever writes it. Both objects are in their
 * stored form.
 *
 * Layer: services, pure. Source: k8s.io/kubernetes pkg/apis/core/validation.
 */
#pragma once

#include "job/problem.h"

#include <jansson.h>

/* Each function adds its problems; those that may fail return 0 or MUSTER_ENOMEM. */

/* An object of any kind that is being deleted cannot get a new finalizer. */
void immutable_finalizers(const json_t *before, const json_t *after, struct job_problems *problems);
/* In a pod's spec, only the images may change, the deadline may become shorter, and tolerations may
 * be added. */
int immutable_pod(const json_t *before, const json_t *after, struct job_problems *problems);
/* In a claim's spec, only the requested size may change. */
int immutable_claim(const json_t *before, const json_t *after, struct job_problems *problems);
/* Config maps and secrets have a field `immutable`; a secret's type never changes. */
int immutable_data(const json_t *before, const json_t *after, struct job_problems *problems);
