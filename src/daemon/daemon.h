/* The controller program: one per MUSTER_HOME, started by the first verb that finds none.
 *
 * Layer: program.
 */
#pragma once

/* `muster daemon`: serves until no client and no job is left. Returns the exit code; 0 as well when
 * another one runs. */
int daemon_main(int argc, char **argv);
