/* Makes a key, a self-signed certificate and a token once, and reads them from then on. See
 * identity.h.
 *
 * Layer: services. Thread: any.
 */
#include "http/identity.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/system/random.h"
#include "base/time/clock.h"
#include "certificate/certificate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PEM_BYTES_MAX = 65536, TOKEN_BYTES = 32 };

static const int64_t validity_ms = INT64_C(10) * 365 * 24 * 3600 * 1000;
static const int64_t renew_before_ms = INT64_C(24) * 3600 * 1000;
static const int64_t clock_lag_ms = INT64_C(24) * 3600 * 1000; /* how late clients' clocks may be */

/* ---- making ---- */

/* Makes a pair that is valid for the names of this machine's loopback. */
static int make_pair(const char *key_path, const char *cert_path, struct muster_err *err)
{
    static const char *const names[] = {"127.0.0.1", "::1", "localhost", NULL};
    int64_t now_ms = clock_unix_ms();
    const struct certificate_order order = {
        .subject = "muster",
        .names = names,
        .authority = true,
        .from_unix_ms = now_ms - clock_lag_ms,
        .until_unix_ms = now_ms + validity_ms,
    };
    struct certificate_pair made = {0};
    int r = certificate_make(&order, &made, err);
    r = r < 0 ? r : file_write(key_path, made.key_pem, strlen(made.key_pem), 0600, err);
    r = r < 0 ? r : file_write(cert_path, made.cert_pem, strlen(made.cert_pem), 0644, err);
    certificate_pair_done(&made);
    return r;
}

/* ---- reading ---- */

/* Whether the certificate can be read and is valid for at least another day. */
static bool still_good(const char *cert_path)
{
    muster_auto(free) char *pem = NULL;
    struct certificate_span span;
    return file_read(cert_path, PEM_BYTES_MAX, &pem, NULL, NULL) == 0 &&
           certificate_span(pem, &span, NULL) == 0 &&
           span.until_unix_ms > clock_unix_ms() + renew_before_ms;
}

static int load_pair(const char *folder, struct http_identity *identity, struct muster_err *err)
{
    muster_auto(free) char *key_path = file_join(folder, "tls/key.pem");
    muster_auto(free) char *cert_path = file_join(folder, "tls/cert.pem");
    muster_auto(free) char *tls = file_join(folder, "tls");
    if (!key_path || !cert_path || !tls) {
        return err_no_memory(err);
    }
    int r = file_mkdir(tls, 0700, err);
    if (r == 0 && !(file_exists(key_path) && still_good(cert_path))) {
        r = make_pair(key_path, cert_path, err);
    }
    r = r < 0 ? r : file_read(key_path, PEM_BYTES_MAX, &identity->key_pem, NULL, err);
    r = r < 0 ? r : file_read(cert_path, PEM_BYTES_MAX, &identity->cert_pem, NULL, err);
    return r;
}

static int make_token(const char *path, struct muster_err *err)
{
    char text[2 * TOKEN_BYTES + 1];
    int r = random_hex(text, TOKEN_BYTES, err);
    text[2 * TOKEN_BYTES] = '\n';
    return r < 0 ? r : file_write(path, text, sizeof text, 0600, err);
}

static int load_token(const char *folder, struct http_identity *identity, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, "token");
    if (!path) {
        return err_no_memory(err);
    }
    int r = file_exists(path) ? 0 : make_token(path, err);
    r = r < 0 ? r : file_read(path, PEM_BYTES_MAX, &identity->token, NULL, err);
    if (r < 0) {
        return r;
    }
    identity->token[strcspn(identity->token, "\r\n")] = '\0';
    if (strlen(identity->token) < TOKEN_BYTES) {
        return muster_fail(
            err, MUSTER_ECONFIG,
            "%s contains no token of at least %d characters: remove the file, and a new one is created",
            path, TOKEN_BYTES);
    }
    return 0;
}

int http_identity_load(const char *folder, struct http_identity *ret, struct muster_err *err)
{
    struct http_identity identity = {0};
    int r = load_pair(folder, &identity, err);
    r = r < 0 ? r : load_token(folder, &identity, err);
    if (r < 0) {
        http_identity_done(&identity);
        return r;
    }
    *ret = identity;
    return 0;
}

static void forget(char *secret)
{
    if (secret) {
        explicit_bzero(secret, strlen(secret));
        free(secret);
    }
}

void http_identity_done(struct http_identity *identity)
{
    forget(identity->key_pem);
    forget(identity->token);
    free(identity->cert_pem);
    *identity = (struct http_identity){0};
}
