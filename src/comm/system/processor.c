/* Finds the row of the table of tunings for this processor. Layer: comm; see processor.h. */
#include "comm/system/processor.h"

#include <stdlib.h>

static enum schedule_processor ask(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") ? SCHEDULE_INTEL
           : __builtin_cpu_is("amd") ? SCHEDULE_AMD
                                     : SCHEDULE_GENERIC;
#else
    return SCHEDULE_GENERIC;
#endif
}

int processor_find(enum schedule_processor *ret, struct muster_err *err)
{
    const char *name = getenv("MUSTER_TUNING");
    int forced = name ? schedule_processor_find(name) : (int)ask();
    if (forced < 0) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "MUSTER_TUNING=%s: there is no such row; without the variable, "
                           "`muster perf tune` lists them",
                           name);
    }
    *ret = (enum schedule_processor)forced;
    return 0;
}
