/* The two listeners: the Unix socket for our own verbs, and loopback TLS with a token for kubectl.
 *
 * Layer: services.
 */
#include "api/api.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "http/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_FILE_BYTES_MAX = 4096, SERVER_BYTES = 64, OWN_CONNECTIONS_MAX = 16384 };

static const char unauthorized[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
    "\"message\":\"Unauthorized: the bearer token is missing or wrong; `muster kubeconfig` prints "
    "one that fits\",\"reason\":\"Unauthorized\",\"code\":401}\n";

struct api_endpoint {
    struct http_server *socket;
    struct http_server *tls;
    char server[SERVER_BYTES];
};

/* Returns the port in HOME/server.json, so that kubeconfigs stay valid, or 0 if there is none
 * yet. */
static int saved_port(const char *path)
{
    muster_auto(free) char *text = NULL;
    muster_auto(doc) json_t *doc = NULL;
    size_t bytes = 0;
    if (file_read(path, SERVER_FILE_BYTES_MAX, &text, &bytes, NULL) < 0 ||
        doc_parse(text, bytes, &doc, NULL) < 0) {
        return 0;
    }
    const char *colon = strrchr(doc_text(doc, "server", ""), ':');
    long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    return port > 0 && port < 65536 ? (int)port : 0;
}

static int save_server(const char *path, const char *server, struct muster_err *err)
{
    char text[SERVER_BYTES + 32];
    int n = snprintf(text, sizeof text, "{\"server\":\"%s\"}\n", server);
    return file_write(path, text, (size_t)n, 0600, err);
}

static int listen_tls(uv_loop_t *loop, struct api *api, const struct http_identity *identity,
                      int port, struct http_server **ret, struct muster_err *err)
{
    const struct http_options options = {
        .port = port,
        .key_pem = identity->key_pem,
        .cert_pem = identity->cert_pem,
        .token = identity->token,
        .refused_type = "application/json",
        .refused_body = unauthorized,
    };
    int r = http_server_start(loop, &options, api_handle, api, ret, err);
    if (r == MUSTER_EUNAVAIL && port != 0) {
        muster_wrap(err,
                    "another program has the port for kubectl (stop it, or remove server.json of "
                    "MUSTER_HOME to have another one chosen; then muster down --keep, and muster "
                    "kubeconfig again)");
    }
    return r;
}

static int open_tls(struct api_endpoint *endpoint, uv_loop_t *loop, struct api *api,
                    const char *home_path, struct muster_err *err)
{
    struct http_identity identity = {0};
    muster_auto(free) char *path = file_join(home_path, "server.json");
    if (!path) {
        return err_no_memory(err);
    }
    int port = saved_port(path);
    int r = http_identity_load(home_path, &identity, err);
    r = r < 0 ? r : listen_tls(loop, api, &identity, port, &endpoint->tls, err);
    http_identity_done(&identity);
    if (r < 0) {
        return r;
    }
    (void)snprintf(endpoint->server, sizeof endpoint->server, "https://127.0.0.1:%d",
                   http_server_port(endpoint->tls));
    return port ? 0 : save_server(path, endpoint->server, err);
}

int api_endpoint_open(uv_loop_t *loop, struct api *api, const char *home_path,
                      const char *socket_path, struct api_endpoint **ret,
                      struct muster_err *tls_err, struct muster_err *err)
{
    struct api_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint) {
        return err_no_memory(err);
    }
    /* `muster run` reads the log of each of its ranks over a separate connection. */
    const struct http_options options = {.socket_path = socket_path,
                                         .limits.connections_max = OWN_CONNECTIONS_MAX};
    int r = http_server_start(loop, &options, api_handle, api, &endpoint->socket, err);
    if (r < 0) {
        free(endpoint);
        return r;
    }
    *tls_err = (struct muster_err)MUSTER_ERR_INIT;
    if (open_tls(endpoint, loop, api, home_path, tls_err) < 0) {
        http_server_stop(endpoint->tls);
        endpoint->tls = NULL;
    }
    *ret = endpoint;
    return 0;
}

void api_endpoint_close(struct api_endpoint *endpoint)
{
    if (endpoint) {
        http_server_stop(endpoint->socket);
        http_server_stop(endpoint->tls);
        free(endpoint);
    }
}

unsigned api_endpoint_connections(const struct api_endpoint *endpoint)
{
    return http_server_connections(endpoint->socket) +
           (endpoint->tls ? http_server_connections(endpoint->tls) : 0);
}

const char *api_endpoint_server(const struct api_endpoint *endpoint)
{
    return endpoint->tls ? endpoint->server : NULL;
}
