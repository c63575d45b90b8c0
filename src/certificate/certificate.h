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
    char *key_pem; /* a secret: never logged, wiped when it is done */
};

struct certificate_order {
    const char *subject;      /* its common name */
    const char *const *names; /* DNS names and IP addresses of a server, ending with NULL; NULL: of
                                 none */
    bool authority;           /* it may sign others */
    int64_t from_unix_ms, until_unix_ms;   /* whole seconds are kept */
    const struct certificate_pair *issuer; /* NULL: signed by itself */
};

int certificate_make(const struct certificate_order *order, struct certificate_pair *ret,
                     struct muster_err *err);
/* A zeroed one is fine. */
void certificate_pair_done(struct certificate_pair *pair);

/* When it is valid, of the first one in the text. MUSTER_EDATA: the text is no certificate. */
struct certificate_span {
    int64_t from_unix_ms, until_unix_ms;
};
int certificate_span(const char *cert_pem, struct certificate_span *ret, struct muster_err *err);

/* False also of what is no certificate or no key. */
bool certificate_has_key(const char *cert_pem, const char *key_pem);
bool certificate_names(const char *cert_pem, const char *name);
bool certificate_is_signed_by(const char *cert_pem, const char *authority_pem);
