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

/* Takes the target over on success: it becomes empty. */
int kube_endpoint_open(struct target *target, struct kube_endpoint **ret, struct muster_err *err);
void kube_endpoint_close(struct kube_endpoint *endpoint);

const struct target *kube_endpoint_target(const struct kube_endpoint *endpoint);

/* Sets what all our transfers need: the URL of `path`, the address, the trusted certificates, the
 * credentials. The endpoint must outlive the handle's transfers. */
int kube_endpoint_apply(struct kube_endpoint *endpoint, CURL *easy, const char *path,
                        struct muster_err *err);

/* Adds the Authorization header, if there is one, to the list. On MUSTER_ENOMEM the list is
 * unchanged. */
int kube_endpoint_authorize(struct kube_endpoint *endpoint, int64_t now_ms,
                            struct curl_slist **headers, struct muster_err *err);

/* The server refused a request that was authorized at `sent_ms`: before the next request, a token
 * file is read again, or an exec plugin is run again. Returns true if the next request may have
 * other credentials: they will be read, or were read since this request was sent. This is done at
 * most once a second, however many requests are refused. */
bool kube_endpoint_token_refused(struct kube_endpoint *endpoint, int64_t sent_ms, int64_t now_ms);
