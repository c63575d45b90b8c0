/* See election.h. */
#include "kube/leader/election.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"

#include <stdio.h>
#include <string.h>

enum { MS_PER_S = 1000, DURATION_S_MAX = 3600 };

/* Prints a metav1.MicroTime: always six digits. */
static void print_micro_time(int64_t unix_ms, char ret[TIMESTAMP_BYTES])
{
    char seconds[TIMESTAMP_BYTES];
    timestamp_seconds(unix_ms, seconds);
    (void)snprintf(ret, TIMESTAMP_BYTES, "%.19s.%03d000Z", seconds, (int)(unix_ms % MS_PER_S));
}

/* Compares only as many bytes as were kept. */
static bool is_kept(const char kept[ELECTION_TEXT_BYTES], const char *text)
{
    return strncmp(kept, text, ELECTION_TEXT_BYTES - 1) == 0;
}

/* Takes a look at the Lease. Only a change that the holder itself writes counts as a sign of
 * life. */
static void look(struct election *e, const json_t *lease, int64_t now_ms)
{
    const char *holder = doc_text(lease, "spec.holderIdentity", "");
    const char *renewed = doc_text(lease, "spec.renewTime", "");
    if (!is_kept(e->holder, holder) || !is_kept(e->renewed, renewed)) {
        (void)snprintf(e->holder, sizeof e->holder, "%s", holder);
        (void)snprintf(e->renewed, sizeof e->renewed, "%s", renewed);
        e->seen_ms = now_ms;
    }
}

static bool is_held_by_another(const struct election *e, const json_t *lease, int64_t now_ms)
{
    const char *holder = doc_text(lease, "spec.holderIdentity", "");
    int64_t duration_s = doc_int(lease, "spec.leaseDurationSeconds", ELECTION_LEASE_S);
    duration_s = duration_s < 1                ? ELECTION_LEASE_S
                 : duration_s > DURATION_S_MAX ? DURATION_S_MAX
                                               : duration_s;
    return *holder && strcmp(holder, e->identity) != 0 &&
           now_ms < e->seen_ms + duration_s * MS_PER_S;
}

static json_t *make_body(const struct election *e, const json_t *lease, int64_t now_unix_ms)
{
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    bool renews = strcmp(doc_text(lease, "spec.holderIdentity", ""), e->identity) == 0;
    int64_t changes = doc_int(lease, "spec.leaseTransitions", 0) + (lease && !renews);
    print_micro_time(now_unix_ms, now);
    json_t *body = build_value(&b, lease ? json_deep_copy(lease) : json_object());
    build_text(&b, body, "apiVersion", "coordination.k8s.io/v1");
    build_text(&b, body, "kind", "Lease");
    json_t *spec = build_object_at(&b, body, "spec");
    build_text(&b, spec, "holderIdentity", e->identity);
    build_int(&b, spec, "leaseDurationSeconds", ELECTION_LEASE_S);
    build_int(&b, spec, "leaseTransitions", changes);
    build_text(&b, spec, "renewTime", now);
    if (!renews) {
        build_text(&b, spec, "acquireTime", now);
    }
    return build_end(&b, body);
}

int election_step(struct election *e, const json_t *lease, int64_t now_ms, int64_t now_unix_ms,
                  enum election_do *ret, json_t **ret_body)
{
    if (lease) {
        look(e, lease, now_ms);
    }
    if (lease && is_held_by_another(e, lease, now_ms)) {
        *ret = ELECTION_WAIT;
        return 0;
    }
    json_t *body = make_body(e, lease, now_unix_ms);
    if (!body) {
        return MUSTER_ENOMEM;
    }
    *ret = lease ? ELECTION_REPLACE : ELECTION_CREATE;
    *ret_body = body;
    return 0;
}

void election_won(struct election *e, int64_t sent_ms)
{
    e->leads = true;
    e->until_ms = sent_ms + ELECTION_DEADLINE_MS;
}

bool election_may_send(const struct election *e, int64_t now_ms)
{
    return !e->leads || now_ms < e->until_ms;
}

json_t *election_release(const json_t *lease, int64_t now_unix_ms)
{
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    print_micro_time(now_unix_ms, now);
    json_t *body = build_value(&b, json_deep_copy(lease));
    json_t *spec = build_object_at(&b, body, "spec");
    build_text(&b, spec, "holderIdentity", "");
    build_int(&b, spec, "leaseDurationSeconds", 1);
    build_text(&b, spec, "renewTime", now);
    return build_end(&b, body);
}
