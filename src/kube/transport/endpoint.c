/* See transport/endpoint.h. */
#include "kube/transport/endpoint.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "kube/config/exec_plugin.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    TOKEN_FRESH_MS = 60000, /* as in client-go */
    TOKEN_REFUSED_MS = 1000,
    TOKEN_BYTES_MAX = 1 << 20,
    EXPIRES_SOON_MS = 5000, /* a credential that expires sooner is not used any more */
    CONNECT_MS = 10000,
    KEEPALIVE_S = 15,
    PATH_BYTES = 40,
};

enum { PEM_CA, PEM_CERT, PEM_KEY, PEM_COUNT };

struct kube_endpoint {
    struct target target;
    int fds[PEM_COUNT]; /* -1: none */
    char paths[PEM_COUNT][PATH_BYTES];
    char *token;              /* from the token file or the plugin; NULL: not read yet */
    int64_t token_read_ms;    /* when the token was read */
    int64_t expires_unix_ms;  /* when the plugin's credential expires; 0: the plugin must run */
    int64_t refused_ms;       /* when the server refused the credential */
    struct curl_slist *route; /* to the address, if the URL has the certificate's name */
};

static int keep_pem(struct kube_endpoint *e, int which, const char *pem, struct muster_err *err)
{
    if (!pem) {
        return 0;
    }
    int fd = memfd_create("muster-pem", MFD_CLOEXEC);
    if (fd < 0 || file_write_all(fd, pem, strlen(pem)) < 0) {
        (void)muster_fail(err, MUSTER_EOS, "cannot keep a certificate in memory: %s",
                          strerror(errno));
        cleanup_close(&fd);
        return MUSTER_EOS;
    }
    cleanup_close(&e->fds[which]); /* closed last: curl must see a new path */
    e->fds[which] = fd;
    snprintf(e->paths[which], PATH_BYTES, "/proc/self/fd/%d", fd);
    return 0;
}

/* Keeps "::host:port", which tells curl where to connect, whatever the URL says. */
static int keep_route(struct kube_endpoint *e, struct muster_err *err)
{
    const char *address = strstr(e->target.server, "://") + 3;
    muster_auto(free) char *route = NULL;
    if (!e->target.tls_server_name) {
        return 0;
    }
    size_t length = strcspn(address, "/");
    bool has_port = memrchr(address, ':', length) && address[length - 1] != ']';
    if (asprintf(&route, "::%.*s%s", (int)length, address, has_port ? "" : ":443") < 0) {
        route = NULL;
        return err_no_memory(err);
    }
    e->route = curl_slist_append(NULL, route);
    return e->route ? 0 : err_no_memory(err);
}

int kube_endpoint_open(struct target *target, struct kube_endpoint **ret, struct muster_err *err)
{
    struct kube_endpoint *e = calloc(1, sizeof *e);
    if (!e) {
        return err_no_memory(err);
    }
    memset(e->fds, -1, sizeof e->fds);
    e->target = *target;
    int r = keep_pem(e, PEM_CA, target->ca_pem, err);
    r = r < 0 ? r : keep_pem(e, PEM_CERT, target->cert_pem, err);
    r = r < 0 ? r : keep_pem(e, PEM_KEY, target->key_pem, err);
    r = r < 0 ? r : keep_route(e, err);
    if (r < 0) {
        e->target = (struct target){0}; /* on failure the target stays the caller's */
        kube_endpoint_close(e);
        return r;
    }
    *target = (struct target){0};
    *ret = e;
    return 0;
}

void kube_endpoint_close(struct kube_endpoint *endpoint)
{
    if (!endpoint) {
        return;
    }
    for (int i = 0; i < PEM_COUNT; i++) {
        cleanup_close(&endpoint->fds[i]);
    }
    target_wipe(&endpoint->token);
    curl_slist_free_all(endpoint->route);
    target_done(&endpoint->target);
    free(endpoint);
}

const struct target *kube_endpoint_target(const struct kube_endpoint *endpoint)
{
    return &endpoint->target;
}

static void apply_tls(const struct kube_endpoint *e, CURL *easy)
{
    const struct target *t = &e->target;
    if (e->fds[PEM_CA] >= 0) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, e->paths[PEM_CA]);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (e->fds[PEM_CERT] >= 0) {
        curl_easy_setopt(easy, CURLOPT_SSLCERT, e->paths[PEM_CERT]);
        curl_easy_setopt(easy, CURLOPT_SSLKEY, e->paths[PEM_KEY]);
    }
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
}

static void apply_connection(const struct kube_endpoint *e, CURL *easy)
{
    const struct target *t = &e->target;
    if (t->socket) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, t->socket);
    }
    if (e->route) {
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, e->route);
    }
    curl_easy_setopt(easy, CURLOPT_PROXY, t->proxy ? t->proxy : "");
    /* One request at a time on each connection, so that a stalled watch delays no other request. */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "muster/" MUSTER_VERSION);
    if (t->user) {
        curl_easy_setopt(easy, CURLOPT_USERNAME, t->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD, t->password ? t->password : "");
    }
}

/* Gets the credentials from an exec plugin: the first time, when they expire, and when they were
 * refused. */
static int ask_plugin(struct kube_endpoint *e, struct muster_err *err)
{
    struct exec_credential credential = {0};
    if (!e->target.exec || clock_unix_ms() + EXPIRES_SOON_MS < e->expires_unix_ms) {
        return 0;
    }
    int r = exec_plugin_run(&e->target, EXEC_PLUGIN_MS, &credential, err);
    if (r < 0) {
        return r;
    }
    target_wipe(&e->token);
    e->token = muster_take(credential.token);
    r = keep_pem(e, PEM_CERT, credential.cert_pem, err);
    r = r < 0 ? r : keep_pem(e, PEM_KEY, credential.key_pem, err);
    e->expires_unix_ms = r < 0 ? 0 : credential.expires_unix_ms; /* a partial one is useless */
    exec_credential_done(&credential);
    return r;
}

int kube_endpoint_apply(struct kube_endpoint *endpoint, CURL *easy, const char *path,
                        struct muster_err *err)
{
    const struct target *t = &endpoint->target;
    muster_auto(free) char *url = NULL;
    const char *address = strstr(t->server, "://") + 3;
    int written = t->tls_server_name ? asprintf(&url, "https://%s%s%s", t->tls_server_name,
                                                address + strcspn(address, "/"), path)
                                     : asprintf(&url, "%s%s", t->server, path);
    if (written < 0) {
        url = NULL;
        return err_no_memory(err);
    }
    int r = ask_plugin(endpoint, err);
    if (r < 0) {
        return r;
    }
    apply_connection(endpoint, easy);
    apply_tls(endpoint, easy);
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK ? 0 : err_no_memory(err);
}

/* Returns the token; if its file cannot be read at the moment, because it is being replaced, the
 * previous token stays in use. */
static const char *token_of(struct kube_endpoint *e, int64_t now_ms)
{
    char *text = NULL;
    size_t bytes;
    if (!e->target.token_file) {
        return e->target.exec ? e->token : e->target.token;
    }
    if (e->token && now_ms - e->token_read_ms < TOKEN_FRESH_MS) {
        return e->token;
    }
    e->token_read_ms = now_ms;
    if (file_read(e->target.token_file, TOKEN_BYTES_MAX, &text, &bytes, NULL) == 0) {
        target_wipe(&e->token);
        e->token = text;
    }
    return e->token ? e->token : e->target.token;
}

int kube_endpoint_authorize(struct kube_endpoint *endpoint, int64_t now_ms,
                            struct curl_slist **headers, struct muster_err *err)
{
    muster_auto(free) char *header = NULL;
    const char *token = token_of(endpoint, now_ms);
    size_t length = 0;
    while (token && isgraph((unsigned char)token[length])) {
        length++; /* ends at the first invisible byte, so that a token cannot add a header */
    }
    if (length == 0) {
        return 0;
    }
    if (asprintf(&header, "Authorization: Bearer %.*s", (int)length, token) < 0) {
        header = NULL;
        return err_no_memory(err);
    }
    struct curl_slist *more = curl_slist_append(*headers, header);
    explicit_bzero(header, strlen(header));
    *headers = more ? more : *headers;
    return more ? 0 : err_no_memory(err);
}

static bool plugin_refused(struct kube_endpoint *e, int64_t sent_ms, int64_t now_ms)
{
    bool again = now_ms - e->refused_ms >= TOKEN_REFUSED_MS;
    bool is_old = sent_ms < e->refused_ms;
    e->refused_ms = again ? now_ms : e->refused_ms;
    e->expires_unix_ms = again ? 0 : e->expires_unix_ms;
    return again || is_old;
}

bool kube_endpoint_token_refused(struct kube_endpoint *endpoint, int64_t sent_ms, int64_t now_ms)
{
    struct kube_endpoint *e = endpoint;
    if (e->target.exec) {
        return plugin_refused(e, sent_ms, now_ms);
    }
    if (!e->target.token_file || !e->token) {
        return false;
    }
    if (sent_ms < e->token_read_ms) { /* not the first of requests that were sent together */
        return true;
    }
    bool again = now_ms - e->token_read_ms >= TOKEN_REFUSED_MS;
    e->token_read_ms = again ? now_ms - TOKEN_FRESH_MS : e->token_read_ms;
    return again;
}
