/* muster keep -- COMMAND: a program that a signal kills starts again at once, in the same
 * container.
 *
 * A kubelet restarts a container at once only the first time, then after 10 s and more; an elastic
 * job needs its coordinator sooner. The program is not started again if it exits, with any code, or
 * if this program gets a signal, which it hands on.
 *
 * All runs of the program have the same MUSTER_KEPT_AS, which no other program has (our process,
 * and a number): a run begins when the run before has ended, so that it may take over the lease of
 * that run.
 *
 * Layer: program.
 */
#pragma once

/* Returns the exit status of the program, or 128 and the signal that ended it. */
int keep_main(int argc, char **argv);
