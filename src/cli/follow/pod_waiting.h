/* Tells why a pod does not run yet, and whether waiting can help. Layer: cli; pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum { POD_WAITING_TEXT_BYTES = 1536 };

struct pod_waiting {
    char why[POD_WAITING_TEXT_BYTES]; /* "no such thing (Reason)"; "": it runs, or nothing is known
                                       */
    char command[512];                /* makes what is missing; "": none is known */
    bool missing;                     /* something must be made before it can run */
    bool hopeless;                    /* this machine does not have what is missing: a hostPath */
};

/* `pod` may be NULL. */
void pod_waiting_of(const json_t *pod, struct pod_waiting *ret);
