/* The objects a command line names: "KIND NAME…", "KIND/NAME…", "all", or bare names.
 *
 * Layer: cli. Ownership: borrows argv but for the kinds cut off it.
 */
#pragma once

#include "cli/command/cli.h"

enum { TARGETS_MAX = 256 };

struct target {
    const struct kube_resource *resource; /* NULL: a bare name, kind unknown */
    const char *name;                     /* NULL: all of the kind */
};

struct targets {
    struct target list[TARGETS_MAX];
    size_t count;
};

/* Reads the operands. bare_names: whether names without a kind are allowed. */
int targets_read(struct cli *cli, bool bare_names, struct targets *ret);

/* Reads one word "KIND/NAME" or "NAME". */
int target_read(struct cli *cli, const char *word, struct target *ret);

/* Reads "[KIND] NAME…" and "KIND/NAME…", with 1 to `most` names. One word alone is a name: a job
 * may be called "job". */
int targets_read_named(struct cli *cli, size_t most, struct targets *ret);

/* MUSTER_EINVAL names the first target that is not a job: pods cannot be `done` ("scaled"). */
int targets_are_jobs(struct cli *cli, const struct targets *targets, const char *done);

/* MUSTER_EINVAL if an object is named and --selector or --all is given, too: one of them would have
 * no effect. */
int targets_check_selector(struct cli *cli, const struct targets *targets);

/* Finds the object of a target, in *ret (may be NULL). A bare name becomes the job of that name, or
 * with `or_pod` the pod. MUSTER_ENOENT says what was looked for. */
int target_find(struct cli *cli, const char *namespace, bool or_pod, struct target *target,
                json_t **ret);

/* Prints a note if the job is over: a change of its number of ranks is stored, but starts and ends
 * no rank. */
void target_say_over(const struct target *target, const json_t *job);
