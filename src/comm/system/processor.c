/* Whose processor this is. Layer: comm; see processor.h. */
#include "comm/system/processor.h"

bool processor_is_intel(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}
