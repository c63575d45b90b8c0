/* Key, self-signed certificate and token, made once with GnuTLS. See identity.h.
 *
 * Layer: services. Thread: any.
 */
#include "http/identity.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { PEM_BYTES_MAX = 65536, TOKEN_BYTES = 32, SERIAL_BYTES = 16 };

static const time_t validity_s = (time_t)10 * 365 * 24 * 3600;
static const time_t renew_before_s = (time_t)24 * 3600;

static int tls_fail(struct muster_err *err, const char *what, int rc)
{
    return muster_fail(err, MUSTER_EINTERNAL, "cannot %s: %s", what, gnutls_strerror(rc));
}

/* ---- making ---- */

/* RFC 5280; names as clients on this machine say them. */
static int describe(gnutls_x509_crt_t cert, gnutls_x509_privkey_t key)
{
    static const unsigned char v4[] = {127, 0, 0, 1};
    static const unsigned char v6[16] = {[15] = 1};
    unsigned char serial[SERIAL_BYTES];
    time_t now = time(NULL);
    if (getrandom(serial, sizeof serial, 0) != (ssize_t)sizeof serial) {
        return GNUTLS_E_RANDOM_FAILED;
    }
    serial[0] &= 0x7f; /* positive */
    const int results[] = {
        gnutls_x509_crt_set_version(cert, 3),
        gnutls_x509_crt_set_serial(cert, serial, sizeof serial),
        gnutls_x509_crt_set_activation_time(cert, now - renew_before_s),
        gnutls_x509_crt_set_expiration_time(cert, now + validity_s),
        gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, "muster", 6),
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, v4, sizeof v4,
                                             GNUTLS_FSAN_APPEND),
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, v6, sizeof v6,
                                             GNUTLS_FSAN_APPEND),
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                             GNUTLS_FSAN_APPEND),
        gnutls_x509_crt_set_basic_constraints(cert, 1, 0),
        gnutls_x509_crt_set_key_usage(cert,
                                      GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_CERT_SIGN),
        gnutls_x509_crt_set_key_purpose_oid(cert, GNUTLS_KP_TLS_WWW_SERVER, 0),
        gnutls_x509_crt_set_key(cert, key),
        gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] < 0) {
            return results[i];
        }
    }
    return 0;
}

static int save(const char *path, const gnutls_datum_t *pem, mode_t mode, struct muster_err *err)
{
    return file_write(path, pem->data, pem->size, mode, err);
}

static int export_pair(gnutls_x509_crt_t cert, gnutls_x509_privkey_t key, const char *key_path,
                       const char *cert_path, struct muster_err *err)
{
    gnutls_datum_t key_pem = {0};
    gnutls_datum_t cert_pem = {0};
    int rc = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem);
    if (rc == 0) {
        rc = gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &cert_pem);
    }
    int r = rc < 0 ? tls_fail(err, "write the TLS certificate", rc)
                   : save(key_path, &key_pem, 0600, err);
    r = r < 0 ? r : save(cert_path, &cert_pem, 0644, err);
    gnutls_free(key_pem.data);
    gnutls_free(cert_pem.data);
    return r;
}

static int make_pair(const char *key_path, const char *cert_path, struct muster_err *err)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t cert = NULL;
    int rc = gnutls_x509_privkey_init(&key);
    if (rc == 0 && (rc = gnutls_x509_crt_init(&cert)) == 0) {
        rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    }
    if (rc == 0) {
        rc = describe(cert, key);
    }
    int r = rc < 0 ? tls_fail(err, "make a TLS certificate", rc)
                   : export_pair(cert, key, key_path, cert_path, err);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
    return r;
}

/* ---- reading ---- */

/* Is it a certificate whose time has not come to an end? */
static bool still_good(const char *cert_path)
{
    muster_auto(free) char *pem = NULL;
    size_t bytes = 0;
    gnutls_x509_crt_t cert = NULL;
    if (file_read(cert_path, PEM_BYTES_MAX, &pem, &bytes, NULL) < 0 ||
        gnutls_x509_crt_init(&cert) < 0) {
        return false;
    }
    gnutls_datum_t datum = {(unsigned char *)pem, (unsigned)bytes};
    bool good = gnutls_x509_crt_import(cert, &datum, GNUTLS_X509_FMT_PEM) == 0 &&
                gnutls_x509_crt_get_expiration_time(cert) > time(NULL) + renew_before_s;
    gnutls_x509_crt_deinit(cert);
    return good;
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
    unsigned char random[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return muster_fail(err, MUSTER_EOS, "the system provides no random numbers");
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", random[i]);
    }
    text[2 * TOKEN_BYTES] = '\n';
    return file_write(path, text, 2 * TOKEN_BYTES + 1, 0600, err);
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
    if (strlen(identity->token) < 2 * TOKEN_BYTES / 2) {
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
