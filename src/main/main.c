/* muster: one binary. What users type is cli_main; the hidden verbs are the background controller
 * and the supervisor of each job's processes. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
