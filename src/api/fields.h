/* Refuses, or warns of, fields that do not exist and keys that are there twice, as
 * ?fieldValidation=Ignore|Warn|Strict says. Warn, as on a cluster, when nothing is said.
 *
 * Both are problems marked `strict` (job/problem.h): unknown fields by job_check, duplicates by
 * fields_parse. What the query says is read by options.c.
 *
 * Layer: services. Source: k8s.io/apimachinery, strict decoding.
 */
#pragma once

#include "api/internal.h"

/* Reads the body, JSON, into call->body; of a key that is there twice the last one counts, as in
 * Go. */
int fields_parse(struct api_call *call, struct muster_err *err);

/* MUSTER_EINVAL, and call->refusal, when Strict refuses what the problems say. */
int fields_admit(struct api_call *call, struct muster_err *err);

/* True when the problem is told to the client as a warning. */
bool fields_warned(const struct api_call *call, const struct job_problem *problem);

/* Writes a strict problem: `unknown field "spec.x"`. */
void fields_word(const struct job_problem *problem, struct buf *out);

/* Writes all of them, as an API server refuses them. */
void fields_word_refusal(const struct api_call *call, struct buf *out);
