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
    const struct yaml_document *source; /* NULL: an object that came by the API */
    bool partial;          /* a syntax error ended the object: what is missing may come after it */
    bool coordinated;      /* the job says so: its workers keep their PYTHONUNBUFFERED */
    bool entrypoint_known; /* an annotation says what a container without a command runs */
    struct buf path;
    /* The types of the objects around the one being walked, for "did you mean". */
    struct {
        enum schema_type type;
        size_t path_used;
    } around[CHECK_DEPTH_MAX];
    int depth;
};

void check_init(struct check *c, const struct yaml_document *source, struct job_problems *problems);
void check_done(struct check *c);

/* Everything about one object (check.c). */
void check_object(struct check *c, const json_t *object);

/* The labels and annotations of some metadata: their keys, the values of labels, the size of all
 * annotations together (check.c). */
void check_maps(struct check *c, const json_t *metadata);

/* One step down; returns what check_leave needs to come back. */
size_t check_enter(struct check *c, const char *key);
size_t check_enter_index(struct check *c, size_t index);
void check_leave(struct check *c, size_t mark);

/* Adds a problem at the present path; `below` (may be NULL) is one more key. */
void check_say(struct check *c, enum job_severity severity, const char *below, const char *hint,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* What clients of the API know the problem by that was said last: static text. */
void check_reason(struct check *check, const char *reason);
/* An error: there must be something. */
void check_required(struct check *check, const char *below, const char *hint, const char *message);

/* Holds an object against the schema: unknown and missing fields, types, forms, nulls, what this
 * machine does with them. */
void check_walk(struct check *c, const json_t *object, enum schema_type type);

/* What the schema cannot say about a job (check_job.c) and a pod template (check_pod.c). */
void check_job_spec(struct check *c, const json_t *object);
void check_pod_template(struct check *c, const json_t *replica_spec);
void check_pod(struct check *c, const json_t *object);          /* of no job; check_pod.c */
void check_resources(struct check *c, const json_t *container); /* check_resources.c */

/* How long a job's name may be for its pods' names to fit, and what its longest pod name appends
 * ("-worker-1"). */
size_t check_job_name_max(const json_t *job, char *ret_suffix, size_t suffix_bytes);

/* The same for the other kinds (check_other.c). */
void check_config_map(struct check *c, const json_t *object);
void check_secret(struct check *c, const json_t *object);
void check_claim(struct check *c, const json_t *object);

/* Says so when it is not. */
void check_choice(struct check *c, const char *word, const char *words);
