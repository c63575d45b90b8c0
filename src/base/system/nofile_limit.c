/* See nofile_limit.h. Without success everything stays as it is, which is right for few ranks. */
#include "base/system/nofile_limit.h"

#include <sys/resource.h>

enum { ENOUGH = 65536 };

static unsigned long of_user;

void nofile_limit_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return;
    }
    of_user = limit.rlim_cur;
    rlim_t wanted = limit.rlim_max < ENOUGH ? limit.rlim_max : ENOUGH;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

unsigned long nofile_limit_of_user(void)
{
    return of_user;
}

void nofile_limit_set_user(unsigned long limit)
{
    of_user = limit;
}

void nofile_limit_restore(void)
{
    struct rlimit limit;
    if (of_user && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = of_user < limit.rlim_max ? of_user : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
