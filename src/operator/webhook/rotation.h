/* When the certificates of the webhooks are renewed, so that at no moment an API server meets one
 * that it does not trust.
 *
 * API servers are told a list of authorities, newest first; the webhooks' certificate is signed by
 * one of them. What is new needs time to get about: to API servers, which read the list, and to
 * other replicas, which read the Secret. So a new authority is listed first, signs only when it has
 * been listed for a while, and the one before leaves the list only when no replica serves a
 * certificate of it any more. Where each step stands is seen from the certificates alone.
 *
 * Layer: program; pure: time comes in. Ownership: the caller's structs.
 */
#pragma once

#include "certificate/certificate.h"

enum rotation_do {
    ROTATION_NOTHING,
    ROTATION_ANEW,      /* a new authority and certificate: the present ones cannot be used */
    ROTATION_AUTHORITY, /* a new authority at the front of the list */
    ROTATION_SERVING,   /* a new certificate, signed by the newest authority */
    ROTATION_FORGET,    /* remove all authorities but the newest from the list */
};

struct rotation_lives {
    int64_t authority_ms, serving_ms;
    int64_t margin_ms; /* how long a change needs to spread, and how far clocks may be apart:
                          certificates are valid from this long before they are made */
};

/* Derives the times from the certificate's life: an authority lives four times as long; a change
 * spreads within a twelfth of it, at most an hour. */
struct rotation_lives rotation_lives_of(int64_t serving_ms);

struct rotation_facts {
    bool usable;    /* keys and certificates match, and have all the names */
    bool published; /* API servers were given the present list */
    bool serving_is_of_newest;
    bool has_older; /* there are authorities besides the newest */
    struct certificate_span newest, serving;
};

enum rotation_do rotation_step(const struct rotation_facts *facts,
                               const struct rotation_lives *lives, int64_t now_unix_ms);
