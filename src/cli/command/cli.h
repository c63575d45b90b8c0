/* The command line: what every verb is given.
 *
 * Layer: program. One thread, one libuv loop. A verb returns its exit status, or a negative muster
 * code with the sentence in cli->err, which cli_main prints and turns into an exit status.
 */
#pragma once

#include "base/cleanup.h"
#include "base/doc.h"
#include "cli/command/args.h"
#include "kube/kube.h"

#include <muster/err.h>
#include <stdint.h>
#include <uv.h>

struct environment;

struct cli {
    struct args args;
    uv_loop_t loop;
    struct kube *kube;               /* NULL until cli_connect */
    struct environment *environment; /* cli/submit/environment.h; NULL until it is first used */
    struct sources *sources; /* of the files that were read (cli/submit/sources.h), or NULL */
    struct muster_err err;
};

/* Fills cli->kube when --context or --kubeconfig names a cluster; sends nothing to it yet. */
int cli_choose_cluster(struct cli *cli);
/* Whether the verb speaks to a cluster, not to the controller of this machine. */
bool cli_on_cluster(const struct cli *cli);

/* Fills cli->kube, unless a cluster was chosen. */
int cli_connect(struct cli *cli, enum kube_start start);

/* Prints "muster: …" or "muster: warning: …" on standard error. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "No resources found in default namespace." on standard error, as kubectl does. */
void cli_say_none(const struct cli *cli);

/* The namespace of --namespace (else the context's), or NULL with --all-namespaces. */
const char *cli_namespace(const struct cli *cli);

/* Prints all of it, or fails with MUSTER_EIO (a full disk, a closed pipe). */
int cli_print(const char *text, struct muster_err *err);

/* Prints an object as "json" or "yaml". */
int cli_print_doc(const json_t *doc, const char *format, struct muster_err *err);
/* The same for one of several objects, the `index`th: in YAML, "---" separates them. */
int cli_print_next(const json_t *doc, size_t index, const char *format, struct muster_err *err);

/* Writes "pytorchjob.kubeflow.org/mnist". */
void cli_object_name(const json_t *object, char *ret, size_t size);

/* MUSTER_EINVAL when the number of operands is not in [least, most]. */
int cli_expect_operands(struct cli *cli, size_t least, size_t most);
