/* The flags of the operator, read as Go programs read theirs: -name and --name, a value after '='
 * or as the next word.
 *
 * Layer: program. Pure but for operator_options_read, which asks the environment. Ownership: texts
 * are borrowed from argv.
 */
#pragma once

#include "control/control.h"
#include "operator/webhook/hooks.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than there are flags without a use. */
enum { OPERATOR_UNUSED_MAX = 16 };

struct operator_options {
    const char *kubeconfig, *context; /* NULL: not given */
    const char *namespace;            /* "": all */
    const char *metrics_address;      /* NULL: not given; "0": none */
    const char *health_address;
    int qps, burst;
    int side_by_side;
    bool watch_nodes;
    int64_t lost_after_ms; /* 0: silence does not make a node lost */
    bool leader_elect;
    const char *lease; /* the lease's name */
    struct control_gang gang;
    const char *log_level; /* debug, info or error */
    bool logs_json;
    struct hooks_flags hooks;
    struct {
        const char *flag, *why;
    } unused[OPERATOR_UNUSED_MAX]; /* flags that were given but have no effect here */
    size_t unused_count;
};

/* Reads the flags; the error of MUSTER_EINVAL names the flag. */
int operator_options_read(int argc, char **argv, struct operator_options *ret,
                          struct muster_err *err);

/* Reads "127.0.0.1:8080", ":8080" (every address of the machine) or "0" (NULL host: none). `host`
 * has room for INET_ADDRSTRLEN bytes. */
enum { OPERATOR_HOST_BYTES = 16 };
int operator_address_read(const char *flag, const char *text, char host[OPERATOR_HOST_BYTES],
                          int *ret_port, struct muster_err *err);

/* Prints all flags, for people, on standard output. */
void operator_options_help(const char *program);
