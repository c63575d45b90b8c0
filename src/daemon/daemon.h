/* The controller program: one per MUSTER_HOME, started by the first verb that finds none.
 *
 * Layer: program.
 */
#pragma once

/* `muster daemon`: serves until no client and no job is left. Returns the exit code, which is also
 * 0 when another controller runs. */
int daemon_main(int argc, char **argv);
