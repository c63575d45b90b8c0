/* Reads the values of ElasticDL's flags: variables and resources; volumes.h has volumes.
 *
 * Layer: cli; pure. Ownership: new references in ret_. MUSTER_EINVAL names the flag and what of it
 * is wrong.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>

/* Reads "A=1,B=x=y,z" as [{"name","value"}]. A comma ends a value only where another NAME= follows;
 * if a name is repeated, the last one counts. A $ means itself. */
int values_variables(const char *flag, const char *text, json_t **ret, struct muster_err *err);

/* Reads HOROVOD_GLOO_TIMEOUT_SECONDS from such variables; 0 if it is missing. */
int values_peer_limit(const json_t *variables, int64_t *ret_s, struct muster_err *err);

/* Reads "cpu=0.2,memory=1Gi,gpu=1" as {"cpu": "0.2", …, "nvidia.com/gpu": "1"}. */
int values_resources(const char *flag, const char *text, json_t **ret, struct muster_err *err);

/* Reads "disable_relaunch=true;…". */
int values_relaunch_is_off(const char *text, int *ret, struct muster_err *err);
