/* What the core reads of a pod: all that a driver needs to keep of one.
 *
 * Layer: pure. A step on projections has the same effects as one on whole objects
 * (projection_test.c, and every step of test/simulation).
 */
#pragma once

#include <jansson.h>

/* Returns a new object, which shares values with the pod; NULL without memory. */
json_t *control_project_pod(const json_t *pod);

/* Projects a Service or a claim, of which only the metadata is read. */
json_t *control_project_object(const json_t *object);

/* Projects a job's companion (control/companions.h): also its spec and its phase. */
json_t *control_project_companion(const json_t *object);
