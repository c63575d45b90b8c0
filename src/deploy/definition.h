/* The CustomResourceDefinition of PyTorchJobs, for a cluster's API server.
 *
 * v1 is what upstream's training-operator v1.9.4 serves: names, printer columns, status and scale.
 * What its webhook refuses, and much of what `muster lint` does, is refused by the schema already,
 * so that a job with a mistake is refused where no webhook runs, too.
 *
 * Layer: pure. Ownership: results are new references; NULL only when out of memory. Thread: any.
 */
#pragma once

#include <jansson.h>

json_t *definition_new(void);
