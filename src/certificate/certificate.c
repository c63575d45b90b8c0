/* See certificate.h. */
#include "certificate/certificate.h"

#include <arpa/inet.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SERIAL_BYTES = 16, KEY_ID_BYTES = 64, MS_PER_S = 1000 };

/* A certificate with its key, while it is being made or signs another one. */
struct parts {
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
};

static void parts_done(struct parts *p)
{
    gnutls_x509_crt_deinit(p->cert);
    gnutls_x509_privkey_deinit(p->key);
}

static int parts_init(struct parts *p)
{
    int rc = gnutls_x509_crt_init(&p->cert);
    return rc < 0 ? rc : gnutls_x509_privkey_init(&p->key);
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

/* ---- making ---- */

static int name_server(gnutls_x509_crt_t cert, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, address) == 1) {
        return gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address,
                                                    sizeof(struct in_addr), GNUTLS_FSAN_APPEND);
    }
    if (inet_pton(AF_INET6, name, address) == 1) {
        return gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address,
                                                    sizeof address, GNUTLS_FSAN_APPEND);
    }
    return gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, name,
                                                (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
}

static int name_servers(gnutls_x509_crt_t cert, const char *const *names)
{
    int rc = 0;
    for (; rc >= 0 && names && *names; names++) {
        rc = name_server(cert, *names);
    }
    return rc;
}

static int number(gnutls_x509_crt_t cert)
{
    unsigned char serial[SERIAL_BYTES];
    if (getrandom(serial, sizeof serial, 0) != (ssize_t)sizeof serial) {
        return GNUTLS_E_RANDOM_FAILED;
    }
    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, of all bytes (RFC 5280, 4.1.2.2) */
    return gnutls_x509_crt_set_serial(cert, serial, sizeof serial);
}

/* Adds the identifiers of key and issuer, by which a client can choose among several authorities of
 * one name. */
static int identify(const struct parts *made, const struct parts *issuer)
{
    unsigned char id[KEY_ID_BYTES];
    size_t bytes = sizeof id;
    int rc = gnutls_x509_privkey_get_key_id(made->key, 0, id, &bytes);
    rc = rc < 0 ? rc : gnutls_x509_crt_set_subject_key_id(made->cert, id, bytes);
    bytes = sizeof id;
    rc = rc < 0 ? rc : gnutls_x509_privkey_get_key_id(issuer->key, 0, id, &bytes);
    return rc < 0 ? rc : gnutls_x509_crt_set_authority_key_id(made->cert, id, bytes);
}

static unsigned usage_of(const struct certificate_order *order)
{
    return (order->names ? GNUTLS_KEY_DIGITAL_SIGNATURE : 0) |
           (order->authority ? GNUTLS_KEY_KEY_CERT_SIGN : 0);
}

/* Sets the fields of the certificate as RFC 5280 requires, and signs it. */
static int describe(const struct certificate_order *order, const struct parts *made,
                    const struct parts *issuer)
{
    gnutls_x509_crt_t cert = made->cert;
    const char *purpose = GNUTLS_KP_TLS_WWW_SERVER;
    const int results[] = {
        gnutls_x509_crt_set_version(cert, 3),
        number(cert),
        gnutls_x509_crt_set_activation_time(cert, (time_t)(order->from_unix_ms / MS_PER_S)),
        gnutls_x509_crt_set_expiration_time(cert, (time_t)(order->until_unix_ms / MS_PER_S)),
        gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, order->subject,
                                      (unsigned)strlen(order->subject)),
        name_servers(cert, order->names),
        gnutls_x509_crt_set_basic_constraints(cert, order->authority, order->authority ? 0 : -1),
        gnutls_x509_crt_set_key_usage(cert, usage_of(order)),
        order->names ? gnutls_x509_crt_set_key_purpose_oid(cert, purpose, 0) : 0,
        gnutls_x509_crt_set_key(cert, made->key),
        identify(made, issuer),
        gnutls_x509_crt_sign2(cert, issuer->cert, issuer->key, GNUTLS_DIG_SHA256, 0),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] < 0) {
            return results[i];
        }
    }
    return 0;
}

static char *take_text(gnutls_datum_t *datum)
{
    char *text = datum->data ? strndup((const char *)datum->data, datum->size) : NULL;
    if (datum->data) {
        explicit_bzero(datum->data, datum->size);
        gnutls_free(datum->data);
    }
    return text;
}

static int print(const struct parts *made, struct certificate_pair *ret)
{
    gnutls_datum_t cert = {0};
    gnutls_datum_t key = {0};
    int rc = gnutls_x509_crt_export2(made->cert, GNUTLS_X509_FMT_PEM, &cert);
    rc = rc < 0 ? rc : gnutls_x509_privkey_export2(made->key, GNUTLS_X509_FMT_PEM, &key);
    *ret = (struct certificate_pair){take_text(&cert), take_text(&key)};
    if (rc >= 0 && ret->cert_pem && ret->key_pem) {
        return 0;
    }
    certificate_pair_done(ret);
    return rc < 0 ? rc : GNUTLS_E_MEMORY_ERROR;
}

static int read_parts(const struct certificate_pair *pair, struct parts *ret)
{
    gnutls_datum_t cert = datum_of(pair->cert_pem);
    gnutls_datum_t key = datum_of(pair->key_pem);
    int rc = gnutls_x509_crt_import(ret->cert, &cert, GNUTLS_X509_FMT_PEM);
    return rc < 0 ? rc : gnutls_x509_privkey_import2(ret->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
}

static int make(const struct certificate_order *order, struct parts *made, struct parts *issuer,
                struct certificate_pair *ret)
{
    int rc = parts_init(made);
    rc = rc < 0 ? rc : parts_init(issuer);
    rc = rc < 0 || !order->issuer ? rc : read_parts(order->issuer, issuer);
    if (rc >= 0) {
        rc = gnutls_x509_privkey_generate(made->key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    }
    rc = rc < 0 ? rc : describe(order, made, order->issuer ? issuer : made);
    return rc < 0 ? rc : print(made, ret);
}

int certificate_make(const struct certificate_order *order, struct certificate_pair *ret,
                     struct muster_err *err)
{
    struct parts made = {0};
    struct parts issuer = {0};
    int rc = make(order, &made, &issuer, ret);
    parts_done(&made);
    parts_done(&issuer);
    return rc < 0 ? muster_fail(err, MUSTER_EINTERNAL, "cannot make the TLS certificate of %s: %s",
                                order->subject, gnutls_strerror(rc))
                  : 0;
}

void certificate_pair_done(struct certificate_pair *pair)
{
    if (pair->key_pem) {
        explicit_bzero(pair->key_pem, strlen(pair->key_pem));
    }
    free(pair->key_pem);
    free(pair->cert_pem);
    *pair = (struct certificate_pair){0};
}

/* ---- looking ---- */

/* Returns the first certificate in the text, which the caller deinits; NULL if there is none. */
static gnutls_x509_crt_t read_cert(const char *pem)
{
    gnutls_datum_t datum = datum_of(pem);
    gnutls_x509_crt_t cert = NULL;
    if (gnutls_x509_crt_init(&cert) >= 0 &&
        gnutls_x509_crt_import(cert, &datum, GNUTLS_X509_FMT_PEM) >= 0) {
        return cert;
    }
    gnutls_x509_crt_deinit(cert);
    return NULL;
}

int certificate_span(const char *cert_pem, struct certificate_span *ret, struct muster_err *err)
{
    gnutls_x509_crt_t cert = read_cert(cert_pem);
    if (!cert) {
        return muster_fail(err, MUSTER_EDATA, "it is no certificate in PEM");
    }
    ret->from_unix_ms = (int64_t)gnutls_x509_crt_get_activation_time(cert) * MS_PER_S;
    ret->until_unix_ms = (int64_t)gnutls_x509_crt_get_expiration_time(cert) * MS_PER_S;
    gnutls_x509_crt_deinit(cert);
    return 0;
}

static bool key_id_of_cert(const char *pem, unsigned char ret[KEY_ID_BYTES], size_t *ret_bytes)
{
    gnutls_x509_crt_t cert = read_cert(pem);
    *ret_bytes = KEY_ID_BYTES;
    bool found = cert && gnutls_x509_crt_get_key_id(cert, 0, ret, ret_bytes) >= 0;
    gnutls_x509_crt_deinit(cert);
    return found;
}

static bool key_id_of_key(const char *pem, unsigned char ret[KEY_ID_BYTES], size_t *ret_bytes)
{
    gnutls_datum_t datum = datum_of(pem);
    gnutls_x509_privkey_t key = NULL;
    *ret_bytes = KEY_ID_BYTES;
    bool found = gnutls_x509_privkey_init(&key) >= 0 &&
                 gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0) >= 0 &&
                 gnutls_x509_privkey_get_key_id(key, 0, ret, ret_bytes) >= 0;
    gnutls_x509_privkey_deinit(key);
    return found;
}

bool certificate_has_key(const char *cert_pem, const char *key_pem)
{
    unsigned char of_cert[KEY_ID_BYTES];
    unsigned char of_key[KEY_ID_BYTES];
    size_t cert_bytes;
    size_t key_bytes;
    return key_id_of_cert(cert_pem, of_cert, &cert_bytes) &&
           key_id_of_key(key_pem, of_key, &key_bytes) && cert_bytes == key_bytes &&
           memcmp(of_cert, of_key, cert_bytes) == 0;
}

bool certificate_names(const char *cert_pem, const char *name)
{
    gnutls_x509_crt_t cert = read_cert(cert_pem);
    bool named = cert && gnutls_x509_crt_check_hostname(cert, name) != 0;
    gnutls_x509_crt_deinit(cert);
    return named;
}

bool certificate_is_signed_by(const char *cert_pem, const char *authority_pem)
{
    gnutls_x509_crt_t cert = read_cert(cert_pem);
    gnutls_x509_crt_t authority = read_cert(authority_pem);
    unsigned how = 0;
    bool verified =
        cert && authority &&
        gnutls_x509_crt_verify(cert, &authority, 1, GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &how) >= 0 &&
        how == 0;
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_crt_deinit(authority);
    return verified;
}
