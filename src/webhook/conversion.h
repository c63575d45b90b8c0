/* Converts PyTorchJobs between their versions, and answers an API server that asks for objects in
 * another version than the one they are stored in (ConversionReview, apiextensions.k8s.io/v1).
 *
 * v1 is the version in which jobs are stored, and holds all that the others can say. v1beta1 and
 * v1beta2 have some fields of runPolicy directly under spec, and cannot say the rest of v1's spec:
 * that is carried along in an annotation, as JSON, and put back on the way to v1, so that a client
 * of an old version which changes an object does not lose what it cannot see. Status is the same in
 * all versions. Source: kubeflow/pytorch-operator, pkg/apis/pytorch, its branches v0.4 to v0.6.
 *
 * Layer: pure. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* The annotation in which an object of an old version keeps the fields that only v1 has. */
#define WEBHOOK_ANNOTATION_V1_FIELDS "muster.dev/v1-fields"

/* Makes a copy of the job in that version ("kubeflow.org/v1beta2"), which the caller frees.
 * Malformed parts are copied unchanged: the schema of the version judges them. MUSTER_EDATA: one of
 * the two versions is not ours, or the job is not an object. MUSTER_ENOMEM. */
int webhook_convert(const json_t *job, const char *version, json_t **ret, struct muster_err *err);

/* Returns the answer to a review: all of its objects converted, or one sentence that says why not.
 * The caller frees it; NULL only when out of memory. */
json_t *webhook_answer_conversion(const json_t *review);
