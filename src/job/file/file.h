/* A job file: its documents read, old layouts turned into v1, checked.
 *
 * Layer: pure (the text comes in; reading the file is the caller's). Ownership: job_file_done frees
 * all.
 */
#pragma once

#include "base/yaml/yaml.h"
#include "job/problem.h"

struct job_file {
    struct yaml_stream stream;
    json_t **objects; /* in file order, as v1 objects; without empty documents; Lists are opened */
    size_t object_count;
    struct yaml_document *sources; /* documents of the objects, for their places */
};

/* Reads a file and fills `problems`; the objects are usable if problems->errors is 0. Negative only
 * for limits and memory. */
int job_file_read(const char *text, size_t bytes, struct job_file *ret,
                  struct job_problems *problems, struct muster_err *err);
void job_file_done(struct job_file *file);
