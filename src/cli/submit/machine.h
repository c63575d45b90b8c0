/* What the objects of a file need of this machine: hostPath volumes that are there. Lint does not
 * ask for it: a file may be for another machine.
 *
 * Layer: cli; looks at the file system.
 */
#pragma once

#include "job/file/file.h"

/* Adds an error, with its line, for each hostPath of a job that its pods could not mount. */
void machine_check(const struct job_file *file, struct job_problems *problems);
