/* Which muster a program was compiled with (the macros), and which one it runs with (the
 * functions).
 *
 * Before 1.0 the library's minor number changes with its ABI; from 1.0 on the major number does.
 */
#pragma once

#include <muster/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_VERSION_MAJOR 0
#define MUSTER_VERSION_MINOR 1
#define MUSTER_VERSION_PATCH 0
#define MUSTER_VERSION_STRING "0.1.0"

/* Comparable: 1.2.3 is 10203. */
#define MUSTER_VERSION_NUMBER                                                                      \
    (MUSTER_VERSION_MAJOR * 10000 + MUSTER_VERSION_MINOR * 100 + MUSTER_VERSION_PATCH)

/* MUSTER_VERSION_NUMBER and MUSTER_VERSION_STRING of the library. */
MUSTER_API int muster_version(void);
MUSTER_API const char *muster_version_string(void);

#ifdef __cplusplus
}
#endif
