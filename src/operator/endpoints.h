/* Serves /healthz and /readyz at one address, and /metrics at another.
 *
 * Layer: program. Thread: the loop's. Ownership: open/close; the loop must run once more.
 */
#pragma once

#include "base/buf.h"
#include "http/http.h"

struct endpoints;

struct endpoints_options {
    /* "HOST:PORT" as operator_address_read takes it; errors name the flags. */
    const char *metrics_address, *health_address;
    const char *(*trouble)(void *arg); /* why it is not ready, a sentence; NULL: it is ready */
    void (*print_metrics)(void *arg, struct buf *out);
    void *arg;
};

int endpoints_open(uv_loop_t *loop, const struct endpoints_options *options, struct endpoints **ret,
                   struct muster_err *err);
/* NULL is allowed. */
void endpoints_close(struct endpoints *endpoints);
