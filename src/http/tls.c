/* The certificate of a server's connections, which may be exchanged while it serves: GnuTLS asks
 * for it at each handshake, and gets a copy of its own.
 *
 * Layer: services. Thread: the loop's.
 */
#include "http/internal.h"

#include "base/err.h"

#include <gnutls/gnutls.h>
#include <string.h>

enum { CHAIN_MAX = 8 };

int http_server_set_certificate(struct http_server *server, const char *key_pem,
                                const char *cert_pem, struct muster_err *err)
{
    if (!certificate_has_key(cert_pem, key_pem)) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "the TLS certificate and its key cannot be read, or do not belong "
                           "together");
    }
    struct certificate_pair copy = {strdup(cert_pem), strdup(key_pem)};
    if (!copy.cert_pem || !copy.key_pem) {
        certificate_pair_done(&copy);
        return err_no_memory(err);
    }
    certificate_pair_done(&server->certificate);
    server->certificate = copy;
    return 0;
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

/* The caller gives both to GnuTLS, which frees them with its own allocator. */
static int read_pair(const struct certificate_pair *pair, gnutls_pcert_st **ret_certs,
                     unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    gnutls_datum_t cert = datum_of(pair->cert_pem);
    gnutls_datum_t key = datum_of(pair->key_pem);
    gnutls_pcert_st *certs = gnutls_calloc(CHAIN_MAX, sizeof *certs);
    gnutls_privkey_t made = NULL;
    unsigned count = CHAIN_MAX;
    int rc = certs ? gnutls_privkey_init(&made) : GNUTLS_E_MEMORY_ERROR;
    rc = rc < 0 ? rc : gnutls_privkey_import_x509_raw(made, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    rc = rc < 0 ? rc
                : gnutls_pcert_list_import_x509_raw(certs, &count, &cert, GNUTLS_X509_FMT_PEM,
                                                    GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (rc < 0) {
        gnutls_privkey_deinit(made);
        gnutls_free(certs);
        return rc;
    }
    *ret_certs = certs;
    *ret_count = count;
    *ret_key = made;
    return 0;
}

int tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                 gnutls_pcert_st **ret_certs, unsigned int *ret_count, gnutls_ocsp_data_st **ocsp,
                 unsigned int *ocsp_count, gnutls_privkey_t *ret_key, unsigned int *flags)
{
    (void)info;
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    const struct http_server *server = connection ? visits_server(connection) : NULL;
    if (!server || !server->certificate.cert_pem ||
        read_pair(&server->certificate, ret_certs, ret_count, ret_key) < 0) {
        return -1;
    }
    *ocsp = NULL;
    *ocsp_count = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return 0;
}
