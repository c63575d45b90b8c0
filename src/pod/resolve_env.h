/* The environment of a container: env, envFrom and valueFrom are resolved, and $(VAR) is expanded
 * in env, command and args.
 *
 * Layer: pure: ConfigMaps and Secrets come in as data. Ownership: results are new references.
 * Source: Kubernetes API reference, Container and EnvVarSource.
 */
#pragma once

#include "pod/sources.h"

/* Makes the environment, an object {"NAME": "value"} in the order of first mention; a later entry
 * of the same name replaces the value. `container` is the container's spec. Errors have a kubelet's
 * words, for reason CreateContainerConfigError: MUSTER_ENOENT (a ConfigMap, Secret or key is
 * missing and not optional), MUSTER_EDATA. */
int pod_environment(const json_t *pod, const json_t *container, const struct pod_sources *sources,
                    json_t **ret_env, struct muster_err *err);

/* Makes the words to execute: command + args, expanded. If there is no command, `entrypoint` (array
 * of text, which represents the image's ENTRYPOINT; may be NULL) is used instead, not expanded.
 * MUSTER_EDATA if both are missing. */
int pod_command(const json_t *container, const json_t *entrypoint, const json_t *env,
                json_t **ret_words, struct muster_err *err);

/* Expands $(NAME) from env; $$ becomes $; an unknown name stays as it is written. */
void pod_expand(const char *text, const json_t *env, struct buf *out);
