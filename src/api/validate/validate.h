/* The rules of an API server for objects of Kubernetes' own kinds, in addition to those of
 * job/check/check.h: a file that this machine accepts is also accepted by a cluster.
 *
 * All mistakes are reported at once, with the fields and reasons of an API server. Values have the
 * types of their fields (api/protobuf/types.h). Layer: services, pure.
 * Source: k8s.io/kubernetes pkg/apis/core/validation.
 */
#pragma once

#include "job/problem.h"

#include <jansson.h>

/* `before` is NULL for a new object. Some fields are checked only in a new object: this machine
 * filled them in, or they cannot change. */
void validate_service(const json_t *before, const json_t *object, struct job_problems *problems);
void validate_event(const json_t *before, const json_t *object, struct job_problems *problems);
void validate_pod(const json_t *before, const json_t *object, struct job_problems *problems);
