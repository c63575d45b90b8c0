/* Refuses unknown fields and duplicate keys, or warns of them, as the query
 * ?fieldValidation=Ignore|Warn|Strict says. The default is Warn, as on a cluster.
 *
 * Both are problems marked `strict` (job/problem.h): unknown fields are found by job_check,
 * duplicates by fields_parse. options.c reads the query.
 *
 * Layer: services. Source: k8s.io/apimachinery, strict decoding.
 */
#pragma once

#include "api/internal.h"

/* Reads the body, which is JSON, into call->body. If a key occurs twice, the last value counts, as
 * in Go. */
int fields_parse(struct api_call *call, struct muster_err *err);

/* Returns MUSTER_EINVAL, and sets call->refusal, when Strict refuses the fields that the problems
 * name. */
int fields_admit(struct api_call *call, struct muster_err *err);

/* Whether the problem is sent to the client as a warning. */
bool fields_warned(const struct api_call *call, const struct job_problem *problem);

/* Writes a strict problem: `unknown field "spec.x"`. */
void fields_word(const struct job_problem *problem, struct buf *out);

/* Writes all strict problems in the words with which an API server refuses them. */
void fields_word_refusal(const struct api_call *call, struct buf *out);
