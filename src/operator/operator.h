/* `muster operator`: the controller of PyTorchJobs on a Kubernetes cluster.
 *
 * It is the driver of src/controller over an API server (src/kube/cluster). Nothing is kept but in
 * the cluster: it may be killed at any time, and another one goes on from what it finds.
 *
 * Layer: program. Thread: one, the loop's. Files: options.h reads the flags, operator.c is its
 * life, kube/leader says which of several works.
 */
#pragma once

/* argv[0] is the program's name. Returns the exit status: 0 after SIGTERM or SIGINT. */
int operator_main(int argc, char **argv);

/* Prints the text of --help. */
void operator_help(const char *program);
