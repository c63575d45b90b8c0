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

/* bare_names: whether names without a kind are allowed. */
int targets_read(struct cli *cli, bool bare_names, struct targets *ret);

/* One word "KIND/NAME" or "NAME". */
int target_read(struct cli *cli, const char *word, struct target *ret);

/* "[KIND] NAME…" and "KIND/NAME…", of which there are 1 to `most`. One word alone is a name: a job
 * may be called "job". */
int targets_read_named(struct cli *cli, size_t most, struct targets *ret);

/* MUSTER_EINVAL names the first that is no job: pods cannot be `done` ("scaled"). */
int targets_are_jobs(struct cli *cli, const struct targets *targets, const char *done);

/* MUSTER_EINVAL when an object is named and --selector or --all is given, too: one would be in
 * vain. */
int targets_check_selector(struct cli *cli, const struct targets *targets);

/* A bare name becomes the job of that name, or where `or_pod` the pod; its object in *ret (may be
 * NULL). MUSTER_ENOENT says what was looked for. */
int target_find(struct cli *cli, const char *namespace, bool or_pod, struct target *target,
                json_t **ret);

/* A change of the number of ranks is stored for a job that is over, too: a note says that it starts
 * and ends none. */
void target_say_over(const struct target *target, const json_t *job);
