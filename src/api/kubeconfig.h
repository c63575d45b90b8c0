/* The kubeconfig of the embedded cluster.
 *
 * Layer: services. It reads what the controller wrote (server.json, tls/cert.pem, token) and needs
 * no controller.
 */
#pragma once

#include <muster/err.h>

/* Returns YAML, which the caller frees. MUSTER_EUNAVAIL if no controller ever served TLS from this
 * home. */
int api_kubeconfig(const char *home_path, const char *namespace, char **ret,
                   struct muster_err *err);
