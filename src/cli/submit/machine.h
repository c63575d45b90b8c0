/* Checks what the objects of a file need of this machine: hostPath volumes that exist, and, for
 * lint, folders and GPUs.
 *
 * Layer: cli; looks at the file system and at the GPUs.
 */
#pragma once

#include "job/file/file.h"

/* Adds an error, with its line, for each hostPath of a job that its pods could not mount. */
void machine_check(const struct job_file *file, struct job_problems *problems);

/* The same as a warning, as a file may be for another machine; and one for a working directory that
 * does not exist and for more GPUs than there are. */
void machine_lint(const struct job_file *file, struct job_problems *problems);
