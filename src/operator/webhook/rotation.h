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
    ROTATION_ANEW,      /* authority and certificate: there are none that can be used */
    ROTATION_AUTHORITY, /* a new authority in front of the list */
    ROTATION_SERVING,   /* a new certificate, of the newest authority */
    ROTATION_FORGET,    /* all authorities but the newest leave the list */
};

struct rotation_lives {
    int64_t authority_ms, serving_ms;
    int64_t margin_ms; /* how long news need to get about, and how far clocks may be apart: what is
                          made is valid from so long before */
};

/* Derives the times from the certificate's life: an authority lives four times as long, and news
 * spread within a twelfth of it, at most an hour. */
struct rotation_lives rotation_lives_of(int64_t serving_ms);

struct rotation_facts {
    bool usable;    /* keys and certificates belong together, and name what they have to */
    bool published; /* API servers were told the list as it is */
    bool serving_is_of_newest;
    bool has_older; /* authorities than the newest */
    struct certificate_span newest, serving;
};

enum rotation_do rotation_step(const struct rotation_facts *facts,
                               const struct rotation_lives *lives, int64_t now_unix_ms);
