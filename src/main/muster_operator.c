/* muster-operator: `muster operator` alone, for a container image: no SQLite, no libmuster. */
#include "main/start.h"
#include "operator/operator.h"

#include <stdbool.h>
#include <string.h>

int main(int argc, char **argv)
{
    start_process();
    if (start_asks_for_help(argc, argv, 1)) {
        operator_help(argv[0]);
        return 0;
    }
    bool named = argc > 1 && strcmp(argv[1], "operator") == 0; /* with the verb, as for muster */
    return operator_main(argc - named, argv + named);
}
