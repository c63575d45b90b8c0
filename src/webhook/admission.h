/* Decides whether an object may be written: the answer to an API server's AdmissionReview
 * (admission.k8s.io/v1), for PyTorchJobs and for pods.
 *
 * A job is checked as `muster lint` checks it; all mistakes are in one message, so that the user of
 * kubectl sees them at once. Stored fields that a request does not change are not checked again: a
 * job that an older operator accepted can still be labelled, suspended by its status, and deleted.
 * Images, also those of init containers, are compared with a list (images.h), in jobs and in pods,
 * at creation and at each change.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include "webhook/images.h"

#include <jansson.h>

/* Returns the answer to a review, which the caller frees; NULL only when out of memory. Objects
 * that are neither PyTorchJobs nor pods are allowed. */
json_t *webhook_answer_admission(const json_t *review, const struct images *images);
