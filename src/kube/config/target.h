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
    char *server;    /* "https://10.0.0.1:6443", without a slash at its end */
    char *socket;    /* a Unix socket that is connected to in place of the server's address */
    char *namespace; /* of what names none; never NULL after target_load */
    char *ca_file, *cert_file, *key_file; /* read by target_load into the texts below */
    char *ca_pem, *cert_pem, *key_pem;
    char *token;      /* a bearer token */
    char *token_file; /* where it is read again and again, as it is renewed there */
    char *user, *password;
    char *tls_server_name; /* in the server's certificate, where its address is not */
    char *proxy;           /* a URL; NULL: none */
    bool insecure;         /* any answer is taken for the server's */
    json_t *exec;          /* the program that says who we are (exec_plugin.h), or NULL */
    char *exec_folder;     /* of the kubeconfig */
};

void target_done(struct target *target);

/* Frees a secret of which nothing is left in memory; *text becomes NULL. */
void target_wipe(char **text);

/* Reads the files, drops what does not fit together (a token file beats a token), checks the
 * address. */
int target_load(struct target *target, struct muster_err *err);

/* The target of a pod: KUBERNETES_SERVICE_HOST and _PORT, and the service account's files below
 * `folder` (NULL: where Kubernetes mounts them). MUSTER_ENOENT when this is no pod. */
int target_in_cluster(const char *folder, struct target *ret, struct muster_err *err);

/* The controller's own socket. */
int target_socket(const char *path, struct target *ret, struct muster_err *err);
