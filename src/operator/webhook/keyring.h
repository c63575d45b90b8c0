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
    struct certificate_pair newest;  /* of them */
    struct certificate_pair serving; /* what clients of the webhooks see */
};

void keyring_done(struct keyring *keyring);

/* Reads the Secret's `data`; what is missing or malformed is "", all of it where `secret` is NULL.
 * MUSTER_ENOMEM. */
int keyring_read(const json_t *secret, struct keyring *ret, struct muster_err *err);

/* `names`: of the server, ending with NULL. All but `published`, which the keyring does not say. */
void keyring_look(const struct keyring *keyring, const char *const *names,
                  struct rotation_facts *ret);

/* What rotation_step said. On failure nothing has changed. */
int keyring_change(struct keyring *keyring, enum rotation_do what, const char *const *names,
                   const struct rotation_lives *lives, int64_t now_unix_ms, struct muster_err *err);

/* The Secret's `data`; a new reference, NULL when out of memory. */
json_t *keyring_data(const struct keyring *keyring);
