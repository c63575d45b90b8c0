/* --cluster_spec_json: additional fields of ElasticDL's pods.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Reads JSON, as it is or in base64; "" gives {}. */
int cluster_spec_read(const char *text, json_t **ret, struct muster_err *err);

/* Adds what the spec says about all pods, and about those of `kind` ("master", "worker"), to a pod
 * template. */
int cluster_spec_apply(const json_t *spec, const char *kind, json_t *template,
                       struct muster_err *err);
