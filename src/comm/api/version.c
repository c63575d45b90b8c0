/* The version of this libmuster. Layer: comm. */
#include <muster/version.h>

int muster_version(void)
{
    return MUSTER_VERSION_NUMBER;
}

const char *muster_version_string(void)
{
    return MUSTER_VERSION_STRING;
}
