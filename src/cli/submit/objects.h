/* Reads the objects of the files on a command line, and checks all of them before anything is done
 * with them.
 *
 * Layer: cli. Ownership: objects_done.
 */
#pragma once

#include "cli/command/cli.h"

struct objects {
    json_t **list; /* what jobs use first (claims, config maps, secrets), then the jobs */
    size_t count;
    bool are_the_jobs; /* others were made for the one job, and are deleted with it (owner.h) */
};

enum objects_use {
    OBJECTS_ALL,   /* to be created: every problem is printed */
    OBJECTS_QUIET, /* the same, printing errors only */
    OBJECTS_NAMES, /* only the names count: what the objects need of this machine is not checked */
};

/* Reads the files of -f and of the operands, and prints the problems on standard error.
 * MUSTER_EDATA if any file has an error; MUSTER_EINVAL if no file is named. */
int objects_read(struct cli *cli, enum objects_use use, struct objects *ret);
/* The same for one text, which problems call `label`. */
int objects_read_text(struct cli *cli, const char *label, const char *text, enum objects_use use,
                      struct objects *ret);
void objects_done(struct objects *objects);

/* The place where an object is or will be: the namespace of --namespace, else its own, else that of
 * a cluster's context, else default. Borrowed. */
struct kube_ref objects_ref(const struct cli *cli, const json_t *object);

/* MUSTER_EDATA if the file gives the object only a generateName, by which no object can be found.
 */
int objects_check_named(struct cli *cli, const json_t *object);

bool objects_is_job(const json_t *object);

/* Sets one annotation; takes over `value`. */
int objects_set_annotation(struct cli *cli, json_t *job, const char *name, json_t *value);

/* Adds what a job needs to run here as it would for its submitter: muster.dev/submit (the folder
 * and the umask), muster.dev/environment, and the annotations of --image, --network, … as far as
 * the command has these options. `before` is the existing object, or NULL. No-op for other kinds.
 */
int objects_annotate(struct cli *cli, json_t *object, const json_t *before);

/* Applies --all-ranks to a job, if the command has this option. No-op for other kinds. */
int objects_set_policy(struct cli *cli, json_t *object);

/* Adds only the annotations of the options, which a printed file (--dry-run) has, too. */
int objects_annotate_options(struct cli *cli, json_t *object);

/* Creates one object, a job's environment before it; prints nothing. */
int objects_create(struct cli *cli, const json_t *object, json_t **ret);
