/* The command line as one function. Layer: cli. */
#pragma once

/* The whole program but for its hidden verbs. argv as main has it; an exit status. */
int cli_main(int argc, char **argv);
