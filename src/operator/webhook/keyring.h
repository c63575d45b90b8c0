/* The webhooks' certificates and keys, as the Secret has them that all replicas share: ca.crt (the
 * authorities, newest first), ca.key (of the newest), tls.crt, tls.key.
 *
 * Layer: program; no I/O. Ownership: read/done, the caller's struct; done wipes the keys.
 */
#pragma once

#include "operator/webhook/rotation.h"

#include <jansson.h>

enum { KEYRING_NAMES_MAX = 16 };

struct keyring {
    char *authorities;               /* PEM */
    struct certificate_pair newest;  /* the newest authority */
    struct certificate_pair serving; /* the certificate that clients of the webhooks see */
};

void keyring_done(struct keyring *keyring);

/* Reads the Secret's `data`; a missing or malformed text becomes "", and all of them if `secret` is
 * NULL. MUSTER_ENOMEM. */
int keyring_read(const json_t *secret, struct keyring *ret, struct muster_err *err);

/* Sets all facts but `published`, which is not in the keyring. `names`: of the server,
 * NULL-terminated. */
void keyring_look(const struct keyring *keyring, const char *const *names,
                  struct rotation_facts *ret);

/* Makes the change that rotation_step returned. On failure nothing has changed. */
int keyring_change(struct keyring *keyring, enum rotation_do what, const char *const *names,
                   const struct rotation_lives *lives, int64_t now_unix_ms, struct muster_err *err);

/* Returns the Secret's `data`; a new reference, NULL when out of memory. */
json_t *keyring_data(const struct keyring *keyring);
