/* Reads the values of ElasticDL's flags: variables and resources; volumes.h has volumes.
 *
 * Layer: cli; pure. Ownership: new references in ret_. MUSTER_EINVAL names the flag and what of it
 * is wrong.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* "A=1,B=x=y,z": [{"name","value"}]. A comma ends a value only where another NAME= follows; of two
 * of one name the last counts. A $ means itself. */
int values_variables(const char *flag, const char *text, json_t **ret, struct muster_err *err);

/* HOROVOD_GLOO_TIMEOUT_SECONDS of such variables; 0: it is not there. */
int values_peer_limit(const json_t *variables, int64_t *ret_s, struct muster_err *err);

/* "cpu=0.2,memory=1Gi,gpu=1": {"cpu": "0.2", …, "nvidia.com/gpu": "1"}. */
int values_resources(const char *flag, const char *text, json_t **ret, struct muster_err *err);

/* "disable_relaunch=true;…" */
int values_relaunch_is_off(const char *text, int *ret, struct muster_err *err);
