/* --cluster_spec_json: what ElasticDL's pods get besides.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* JSON as it is, or in base64; {} of "". */
int cluster_spec_read(const char *text, json_t **ret, struct muster_err *err);

/* Adds what it says of all pods, and of those of `kind` ("master", "worker"), to a pod template. */
int cluster_spec_apply(const json_t *spec, const char *kind, json_t *template,
                       struct muster_err *err);
