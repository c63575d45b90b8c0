/* What all checks share: where in the object they are, and the list to which they write.
 *
 * Layer: pure. Ownership: check_init/check_done.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"
#include "job/schema.h"

enum { CHECK_DEPTH_MAX = 32 };

struct check {
    struct job_problems *problems;
    const struct yaml_document *source; /* NULL: the object came through the API */
    bool partial;          /* a syntax error ended the object: missing fields may come after it */
    bool coordinated;      /* by the job's annotation: its workers keep their PYTHONUNBUFFERED */
    bool entrypoint_known; /* an annotation says what a container without a command runs */
    struct buf path;
    /* The types of the objects around the present one, for "did you mean". */
    struct {
        enum schema_type type;
        size_t path_used;
    } around[CHECK_DEPTH_MAX];
    int depth;
};

void check_init(struct check *c, const struct yaml_document *source, struct job_problems *problems);
void check_done(struct check *c);

/* Checks everything about one object (check.c). */
void check_object(struct check *c, const json_t *object);

/* Checks the labels and annotations of a metadata: their keys, the values of labels, the size of
 * all annotations together (check.c). */
void check_maps(struct check *c, const json_t *metadata);

/* Goes one step down; returns the mark that check_leave needs to go back. */
size_t check_enter(struct check *c, const char *key);
size_t check_enter_index(struct check *c, size_t index);
void check_leave(struct check *c, size_t mark);

/* Adds a problem at the present path; `below` (may be NULL) is one more key of the path. */
void check_say(struct check *c, enum job_severity severity, const char *below, const char *hint,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Sets the reason by which clients of the API know the last problem: static text. */
void check_reason(struct check *check, const char *reason);
/* Adds an error: something is missing. */
void check_required(struct check *check, const char *below, const char *hint, const char *message);

/* Checks an object against the schema: unknown and missing fields, types, forms, nulls, and what
 * this machine does with the fields. */
void check_walk(struct check *c, const json_t *object, enum schema_type type);

/* Check what the schema cannot express about a job (check_job.c) and a pod template
 * (check_pod.c). */
void check_job_spec(struct check *c, const json_t *object);
void check_pod_template(struct check *c, const json_t *replica_spec);
void check_pod(struct check *c, const json_t *object);          /* not made by a job; check_pod.c */
void check_resources(struct check *c, const json_t *container); /* check_resources.c */

/* Returns how long a job's name may be so that the names of its pods fit, and what its longest pod
 * name appends ("-worker-1"). */
size_t check_job_name_max(const json_t *job, char *ret_suffix, size_t suffix_bytes);

/* Check the same for the other kinds (check_other.c). */
void check_config_map(struct check *c, const json_t *object);
void check_secret(struct check *c, const json_t *object);
void check_claim(struct check *c, const json_t *object);

/* Adds an error if `word` is not one of the words. */
void check_choice(struct check *c, const char *word, const char *words);
