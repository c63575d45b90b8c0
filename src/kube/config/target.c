/* See config/target.h. */
#include "kube/config/target.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20 };

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

void target_wipe(char **text)
{
    if (*text) {
        explicit_bzero(*text, strlen(*text));
    }
    free(*text);
    *text = NULL;
}

void target_done(struct target *target)
{
    char **const texts[] = {
        &target->server,    &target->socket,          &target->namespace,  &target->ca_file,
        &target->cert_file, &target->key_file,        &target->ca_pem,     &target->cert_pem,
        &target->key_pem,   &target->token,           &target->token_file, &target->user,
        &target->password,  &target->tls_server_name, &target->proxy,      &target->exec_folder};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        target_wipe(texts[i]);
    }
    json_decref(target->exec);
    target->exec = NULL;
}

/* Reads the file, unless the configuration itself has the text. */
static int read_into(char **text, const char *file, struct muster_err *err)
{
    size_t bytes;
    return *text || !file ? 0 : file_read(file, FILE_BYTES_MAX, text, &bytes, err);
}

static int check_server(struct target *target, struct muster_err *err)
{
    const char *server = target->server ? target->server : "";
    if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "the server's address must begin with https:// or http://: \"%.200s\"",
                           server);
    }
    for (size_t length = strlen(server); length > 0 && server[length - 1] == '/'; length--) {
        target->server[length - 1] = '\0';
    }
    if (!target->cert_pem != !target->key_pem) {
        return muster_fail(err, MUSTER_ECONFIG, "a client certificate and its key need each other");
    }
    return 0;
}

int target_load(struct target *target, struct muster_err *err)
{
    int r = read_into(&target->ca_pem, target->ca_file, err);
    r = r < 0 ? r : read_into(&target->cert_pem, target->cert_file, err);
    r = r < 0 ? r : read_into(&target->key_pem, target->key_file, err);
    r = r < 0 ? r : check_server(target, err);
    if (r == 0 && !target->namespace) {
        target->namespace = strdup("default");
        r = target->namespace ? 0 : err_no_memory(err);
    }
    return r;
}

static int account_file(char **ret, const char *folder, const char *name, struct muster_err *err)
{
    *ret = file_join(folder, name);
    return *ret ? 0 : err_no_memory(err);
}

/* Reads the namespace's file; if a pod has an account without this file, it is "default". */
static int read_namespace(struct target *t, const char *folder, struct muster_err *err)
{
    size_t bytes;
    muster_auto(free) char *path = file_join(folder, "namespace");
    if (!path) {
        return err_no_memory(err);
    }
    if (!file_exists(path)) {
        return 0;
    }
    int r = file_read(path, FILE_BYTES_MAX, &t->namespace, &bytes, err);
    if (r == 0) {
        t->namespace[strcspn(t->namespace, "\r\n")] = '\0';
    }
    return r;
}

int target_in_cluster(const char *folder, struct target *ret, struct muster_err *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    struct target t = {0};
    folder = folder ? folder : ACCOUNT;
    if (!host || !*host || !port || !*port) {
        return muster_fail(err, MUSTER_ENOENT,
                           "this is no pod of a cluster: KUBERNETES_SERVICE_HOST and "
                           "KUBERNETES_SERVICE_PORT are not set");
    }
    bool is_v6 = strchr(host, ':');
    if (asprintf(&t.server, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port) <
        0) {
        t.server = NULL;
        return err_no_memory(err);
    }
    int r = account_file(&t.ca_file, folder, "ca.crt", err);
    r = r < 0 ? r : account_file(&t.token_file, folder, "token", err);
    r = r < 0 ? r : read_namespace(&t, folder, err);
    r = r < 0 ? r : target_load(&t, err);
    if (r < 0) {
        target_done(&t);
        return r;
    }
    *ret = t;
    return 0;
}

int target_socket(const char *path, struct target *ret, struct muster_err *err)
{
    struct target t = {
        .server = strdup("http://muster"), .socket = strdup(path), .namespace = strdup("default")};
    if (!t.server || !t.socket || !t.namespace) {
        target_done(&t);
        return err_no_memory(err);
    }
    *ret = t;
    return 0;
}
