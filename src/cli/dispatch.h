/* The command line as one function. Layer: cli. */
#pragma once

/* Runs the whole program, except its hidden verbs. argv is that of main; returns an exit status. */
int cli_main(int argc, char **argv);
