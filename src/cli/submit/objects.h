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
    bool are_the_jobs; /* what is no job was made for the one job, and goes with it (owner.h) */
};

enum objects_use {
    OBJECTS_ALL,   /* to be created: every problem is printed */
    OBJECTS_QUIET, /* the same, printing errors only */
    OBJECTS_NAMES, /* the names are all that counts: this machine is not asked for what they need */
};

/* Reads the files of -f and of the operands, prints the problems on standard error. MUSTER_EDATA
 * when there is an error in any; MUSTER_EINVAL when no file is named. */
int objects_read(struct cli *cli, enum objects_use use, struct objects *ret);
/* The same of one text, which problems call `label`. */
int objects_read_text(struct cli *cli, const char *label, const char *text, enum objects_use use,
                      struct objects *ret);
void objects_done(struct objects *objects);

/* The place where an object is or will be: --namespace wins, then its own, then the context's of a
 * cluster, then default. Borrowed. */
struct kube_ref objects_ref(const struct cli *cli, const json_t *object);

/* MUSTER_EDATA when the file gives it a generateName alone, which finds no object. */
int objects_check_named(struct cli *cli, const json_t *object);

bool objects_is_job(const json_t *object);

/* One annotation; takes `value`. */
int objects_set_annotation(struct cli *cli, json_t *job, const char *name, json_t *value);

/* Adds what a job needs to run here as it would for its submitter: muster.dev/submit (the folder
 * and the umask), muster.dev/environment, and the annotations of --image, --network, … as far as
 * the command has these options. `before`: the object as it is there already, or NULL. No-op for
 * other kinds. */
int objects_annotate(struct cli *cli, json_t *object, const json_t *before);

/* What --all-ranks says of a job, where the command has it. No-op for other kinds. */
int objects_set_policy(struct cli *cli, json_t *object);

/* The annotations of the options alone: what a printed file (--dry-run) carries, too. */
int objects_annotate_options(struct cli *cli, json_t *object);

/* Creates one, a job's environment first; prints nothing. */
int objects_create(struct cli *cli, const json_t *object, json_t **ret);
