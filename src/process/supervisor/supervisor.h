/* `muster supervisor`: the program that keeps one job's processes, and outlives the controller.
 *
 *     muster supervisor --dir JOB [--connected] [--runner IDENTITY] [--private-network]
 *                       [--cgroup-root FOLDER] [--isolation auto|subreaper]
 *
 * --connected: descriptor 3 is a controller's connection. It goes into the background at once.
 * Messages: docs/processes.md.
 *
 * Layer: services (a program of its own). Thread: one.
 */
#pragma once

/* Returns the exit code of the process. */
int supervisor_main(int argc, char **argv);
