/* Finds fields that stand in the wrong column of a job file, and says where they belong.
 *
 * A job pasted out of a web page often has lost part of its indentation: `name` stands beside
 * `metadata`, `pytorchReplicaSpecs` beside `spec`. What YAML makes of it is a syntax error far
 * below, or an object of nulls. Here the text is read line by line, with the schema as the guide.
 *
 * Layer: pure.
 */
#pragma once

#include "job/problem.h"

/* Adds an error for each such field, with its line. Adds nothing for files that are in order. */
void job_indent_check(const char *text, size_t bytes, struct job_problems *problems);
