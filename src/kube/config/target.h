/* A target: all that a connection to an API server needs to know.
 *
 * It comes from a kubeconfig (config/kubeconfig.h), from the files that Kubernetes mounts into a
 * pod, or is the socket of muster's own controller. Nothing of it is ever printed but the server's
 * address and the namespace: it holds keys and tokens.
 *
 * Layer: services, room kube/config; target_load and target_in_cluster read files. Ownership: the
 * caller's struct, every text is its own.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>

struct target {
    char *server;    /* "https://10.0.0.1:6443", without a slash at the end */
    char *socket;    /* a Unix socket to connect to instead of the server's address */
    char *namespace; /* for requests that name none; never NULL after target_load */
    char *ca_file, *cert_file, *key_file; /* target_load reads them into the texts below */
    char *ca_pem, *cert_pem, *key_pem;
    char *token;      /* a bearer token */
    char *token_file; /* read repeatedly, because the token in it is renewed */
    char *user, *password;
    char *tls_server_name; /* the name in the server's certificate, if it is not in the address */
    char *proxy;           /* a URL; NULL: no proxy */
    bool insecure;         /* the server's certificate is not checked */
    json_t *exec;          /* the program that provides the credentials (exec_plugin.h), or NULL */
    char *exec_folder;     /* the folder of the kubeconfig */
};

void target_done(struct target *target);

/* Frees a secret and overwrites its memory; *text becomes NULL. */
void target_wipe(char **text);

/* Reads the files, drops what does not fit together (a token file is preferred to a token), and
 * checks the address. */
int target_load(struct target *target, struct muster_err *err);

/* Makes the target of a pod from KUBERNETES_SERVICE_HOST and _PORT, and the service account's files
 * in `folder` (NULL: where Kubernetes mounts them). MUSTER_ENOENT if this is not a pod. */
int target_in_cluster(const char *folder, struct target *ret, struct muster_err *err);

/* Makes the target of the controller's own socket. */
int target_socket(const char *path, struct target *ret, struct muster_err *err);
