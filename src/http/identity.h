/* The certificate and token of the loopback TLS listener: made at the first start, then kept.
 *
 * Layer: services. Ownership: http_identity_done.
 */
#pragma once

#include <muster/err.h>

struct http_identity {
    char *key_pem;
    char *cert_pem; /* self-signed, for 127.0.0.1, ::1 and localhost; it is its own CA */
    char *token;    /* 64 hexadecimal digits */
};

/* Reads FOLDER/tls/{key,cert}.pem and FOLDER/token, and makes those that are missing or out of date
 * (key and token with mode 0600). Returns MUSTER_ECREATE, or MUSTER_ECONFIG if a file does not
 * contain what it should. */
int http_identity_load(const char *folder, struct http_identity *ret, struct muster_err *err);
void http_identity_done(struct http_identity *identity);
