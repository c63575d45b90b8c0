/* ?fieldValidation=Ignore|Warn|Strict: what becomes of fields that do not exist, and of keys that
 * are there twice. Warn, as on a cluster, when nothing is said.
 *
 * Both are problems marked `strict` (job/problem.h): unknown fields by job_check, duplicates by
 * fields_parse.
 *
 * Layer: services. Source: k8s.io/apimachinery, strict decoding.
 */
#pragma once

#include "api/internal.h"

/* Into call->fields. MUSTER_EINVAL: none of the three. */
int fields_read(struct api_call *call, struct muster_err *err);

/* The body as JSON into call->body; of a key that is there twice the last one counts, as in Go. */
int fields_parse(struct api_call *call, struct muster_err *err);

/* MUSTER_EINVAL, and call->fields_refused, when Strict refuses what the problems say. */
int fields_admit(struct api_call *call, struct muster_err *err);

/* The problem is told to the client as a warning. */
bool fields_warned(const struct api_call *call, const struct job_problem *problem);

/* `unknown field "spec.x"`; of a strict problem. */
void fields_word(const struct job_problem *problem, struct buf *out);

/* All of them, as an API server refuses them. */
void fields_word_refusal(const struct api_call *call, struct buf *out);
