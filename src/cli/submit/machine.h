/* Checks what the objects of a file need of this machine: hostPath volumes that exist, and, for
 * lint, folders and GPUs.
 *
 * Layer: cli; looks at the file system and at the GPUs.
 */
#pragma once

#include "job/file/file.h"

/* Adds an error, with its line, for each hostPath of a job that its pods could not mount. */
void machine_check(const struct job_file *file, struct job_problems *problems);

/* Adds the same as warnings, because a file may be for another machine; also warns of a working
 * directory that does not exist, and of more GPUs than the machine has. */
void machine_lint(const struct job_file *file, struct job_problems *problems);
