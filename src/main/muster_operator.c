/* muster-operator: `muster operator` alone, for a container image: no SQLite, no libmuster. */
#include "base/nofile_limit.h"
#include "operator/operator.h"

#include <stdbool.h>
#include <string.h>

int main(int argc, char **argv)
{
    nofile_limit_raise();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            operator_help(argv[0]);
            return 0;
        }
    }
    bool named = argc > 1 && strcmp(argv[1], "operator") == 0; /* as muster has it */
    return operator_main(argc - named, argv + named);
}
