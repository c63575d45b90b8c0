/* An endpoint: a target in the form in which libcurl takes it.
 *
 * Certificates and keys lie in memory files, as libcurl's GnuTLS reads no others; they never reach
 * a disk. A token file is read again each minute, and at once after the server refused the token.
 * An exec plugin runs before the first request, when what it gave expires, and when that was
 * refused: the loop waits for it, EXEC_PLUGIN_MS at most.
 *
 * Layer: services, room kube/transport. Thread: one. Ownership: open/close; it keeps the target.
 */
#pragma once

#include "kube/config/target.h"

#include <curl/curl.h>
#include <stdint.h>

struct kube_endpoint;

/* Takes the target over when it succeeds: it becomes empty. */
int kube_endpoint_open(struct target *target, struct kube_endpoint **ret, struct muster_err *err);
void kube_endpoint_close(struct kube_endpoint *endpoint);

const struct target *kube_endpoint_target(const struct kube_endpoint *endpoint);

/* What every transfer of ours has set: the URL of `path`, where to connect, whom to believe, who we
 * are. The endpoint must outlive the handle's transfers. */
int kube_endpoint_apply(struct kube_endpoint *endpoint, CURL *easy, const char *path,
                        struct muster_err *err);

/* Adds the Authorization header, where there is one, to the list. MUSTER_ENOMEM leaves the list as
 * it was. */
int kube_endpoint_authorize(struct kube_endpoint *endpoint, int64_t now_ms,
                            struct curl_slist **headers, struct muster_err *err);

/* The server refused a request that was authorized at `sent_ms`: a token file is read, an exec
 * plugin asked before the next request. True when the next request may show something else: that is
 * done, or was done since this one was sent. Within a second it is done once, however many requests
 * are refused. */
bool kube_endpoint_token_refused(struct kube_endpoint *endpoint, int64_t sent_ms, int64_t now_ms);
