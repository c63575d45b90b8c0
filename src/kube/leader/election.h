/* Decides which of several programs works (operators, coordinators of one journal): a Lease of the
 * API server, as client-go has it.
 *
 * Whoever wrote the Lease last works until ELECTION_DEADLINE_MS after it has sent that write, and
 * sends nothing after that. The others take the Lease when they have seen no change of it for
 * ELECTION_LEASE_S: by then the one before has been silent for three seconds. All durations are of
 * one machine's clock that goes on while it sleeps (CLOCK_BOOTTIME); clocks need not agree.
 *
 * Layer: services, room kube/leader. Pure: time comes in. Ownership: the caller's struct.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ELECTION_LEASE_S = 8,
    ELECTION_DEADLINE_MS = 5000,
    ELECTION_RETRY_MS = 1000,
    ELECTION_TEXT_BYTES = 256,
};

struct election {
    char identity[ELECTION_TEXT_BYTES]; /* this program's */
    /* The Lease as of its last change, and when this program saw that change. */
    char holder[ELECTION_TEXT_BYTES];
    char renewed[ELECTION_TEXT_BYTES];
    int64_t seen_ms;
    bool leads;
    int64_t until_ms; /* until when the leader may send */
};

enum election_do { ELECTION_WAIT, ELECTION_CREATE, ELECTION_REPLACE };

/* Decides what to do about the Lease (NULL: it does not exist). *ret_body: what to write, a new
 * reference; only for CREATE and REPLACE. MUSTER_ENOMEM. */
int election_step(struct election *e, const json_t *lease, int64_t now_ms, int64_t now_unix_ms,
                  enum election_do *ret, json_t **ret_body);

/* The write that was sent at that time was carried out. */
void election_won(struct election *e, int64_t sent_ms);

/* Whether requests may be sent. Also true for a program that does not lead, because it sends only
 * requests about the Lease. */
bool election_may_send(const struct election *e, int64_t now_ms);

/* Returns the Lease without a holder, for the next leader. New reference, NULL without memory. */
json_t *election_release(const json_t *lease, int64_t now_unix_ms);
