/* Exec plugins: the program of a kubeconfig's user that prints who we are to the server
 * (client.authentication.k8s.io/v1 and v1beta1).
 *
 * It gets this process's environment, the variables of the kubeconfig, and KUBERNETES_EXEC_INFO. It
 * has our standard error, because it may ask the user to log in, and our standard input if the
 * kubeconfig allows it. Its output is a secret: no message contains any of it.
 *
 * Layer: services, room kube/config. Blocks until the program has ended, or was killed for its
 * time. Ownership: init by exec_plugin_run, exec_credential_done.
 */
#pragma once

#include "kube/config/target.h"

#include <stdint.h>

enum { EXEC_PLUGIN_MS = 60000, EXEC_OUTPUT_BYTES_MAX = 1 << 20 };

struct exec_credential {
    char *token;
    char *cert_pem, *key_pem;
    int64_t expires_unix_ms; /* INT64_MAX: the plugin does not say */
};

/* Returns MUSTER_EUNSUPPORTED if this cannot run the `exec` of a kubeconfig; runs nothing. */
int exec_plugin_check(const json_t *exec, struct muster_err *err);

/* Runs the target's plugin. The error of MUSTER_EUNAUTH names the program that gave no credential,
 * and why. */
int exec_plugin_run(const struct target *target, int64_t limit_ms, struct exec_credential *ret,
                    struct muster_err *err);

/* Reads what a plugin printed; pure. `api_version` is the version that was asked for. */
int exec_credential_read(const char *text, size_t bytes, const char *api_version,
                         struct exec_credential *ret, struct muster_err *err);
void exec_credential_done(struct exec_credential *credential);
