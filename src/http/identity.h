/* The certificate and token of the loopback TLS listener: made at the first start, then kept.
 *
 * Layer: services. Ownership: http_identity_done.
 */
#pragma once

#include <muster/err.h>

struct http_identity {
    char *key_pem;
    char *cert_pem; /* self-signed, for 127.0.0.1, ::1 and localhost; serves as its own CA */
    char *token;    /* 64 hexadecimal digits */
};

/* Reads FOLDER/tls/{key,cert}.pem and FOLDER/token, and makes what is missing or past its date (key
 * and token mode 0600). MUSTER_ECREATE; MUSTER_ECONFIG for a file that cannot be read as what it
 * should be. */
int http_identity_load(const char *folder, struct http_identity *ret, struct muster_err *err);
void http_identity_done(struct http_identity *identity);
