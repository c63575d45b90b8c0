/* The webhooks of `muster operator`: one HTTPS server (src/http) that answers the reviews of API
 * servers (answers.h), with a certificate that the operator keeps itself (keeper.h) or that is in
 * files. Every replica serves them, whether it leads or not.
 *
 * Layer: program. Thread: the loop's. Ownership: open/close; the loop must run once more.
 */
#pragma once

#include "controller/cluster.h"

#include <uv.h>

/* The flags of the command line; texts are borrowed. */
struct hooks_flags {
    bool on;
    int port;            /* 0: any free port */
    const char *host;    /* an IPv4 address; NULL: not given */
    const char *service; /* a name by which API servers reach the webhooks */
    const char *names;   /* more such names, separated by commas; NULL: none */
    const char *secret;
    int64_t life_ms;         /* of a certificate that this program makes */
    const char *cert_path;   /* a folder with tls.crt and tls.key, instead of the Secret; or NULL */
    const char *images_path; /* a file of patterns (webhook/images.h); NULL: every image */
};

struct hooks;

struct hooks_options {
    const struct hooks_flags *flags; /* borrowed */
    struct cluster *cluster;
    const char *namespace; /* the operator's own; borrowed */
    bool in_pod;
};

/* Opens the webhooks. MUSTER_EUNAVAIL: the port is in use; MUSTER_EDATA: the list of images cannot
 * be read. */
int hooks_open(uv_loop_t *loop, const struct hooks_options *options, struct hooks **ret,
               struct muster_err *err);
/* NULL is allowed. */
void hooks_close(struct hooks *hooks);

/* This replica is about to end: it still answers, but keeps no connection open. NULL is allowed. */
void hooks_leave(struct hooks *hooks);

/* Returns why API servers cannot rely on the webhooks; NULL: they can, or there are none (`hooks`
 * NULL). */
const char *hooks_trouble(const struct hooks *hooks);
