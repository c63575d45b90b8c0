/* muster keep -- COMMAND: a program that a signal kills starts again at once, in the same
 * container.
 *
 * A kubelet restarts a container at once only the first time, then after 10 s and more; the
 * coordinator of an elastic job is missed sooner. An exit, whatever its code, is the end; so is the
 * signal that somebody sent to this program, which hands it on.
 *
 * All of its lives have one MUSTER_KEPT_AS, which no other program has (our process, and a number):
 * one begins when the one before has ended, so that a lease of that one is its own.
 *
 * Layer: program.
 */
#pragma once

/* Returns the exit status of the program, or 128 and the signal that ended it. */
int keep_main(int argc, char **argv);
