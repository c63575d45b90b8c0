/* X.509 certificates for TLS servers of our own: made, signed by an authority of our own, and
 * looked at. By GnuTLS; keys are ECDSA on P-256, all texts are PEM.
 *
 * Layer: services. Thread: any. Ownership: pairs are the caller's, and done with
 * certificate_pair_done. The clock is the caller's: times are data.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct certificate_pair {
    char *cert_pem;
    char *key_pem; /* a secret: never logged, and wiped by certificate_pair_done */
};

struct certificate_order {
    const char *subject;      /* its common name */
    const char *const *names; /* DNS names and IP addresses of a server, ending with NULL; NULL:
                                 it has none */
    bool authority;           /* it may sign other certificates */
    int64_t from_unix_ms, until_unix_ms;   /* fractions of a second are dropped */
    const struct certificate_pair *issuer; /* NULL: it signs itself */
};

int certificate_make(const struct certificate_order *order, struct certificate_pair *ret,
                     struct muster_err *err);
/* The pair may be all zero. */
void certificate_pair_done(struct certificate_pair *pair);

/* When the first certificate in the text is valid. certificate_span returns MUSTER_EDATA if the
 * text is not a certificate. */
struct certificate_span {
    int64_t from_unix_ms, until_unix_ms;
};
int certificate_span(const char *cert_pem, struct certificate_span *ret, struct muster_err *err);

/* Whether the key belongs to the certificate; false if one of them cannot be read. */
bool certificate_has_key(const char *cert_pem, const char *key_pem);
bool certificate_names(const char *cert_pem, const char *name);
bool certificate_is_signed_by(const char *cert_pem, const char *authority_pem);
