/* See error_text.h. */
#include "base/system/error_text.h"

#include <errno.h>
#include <string.h>

const char *error_text(int number)
{
    return number == EMFILE ? "too many open files: raise the limit (ulimit -n)" : strerror(number);
}

const char *error_text_start(int number)
{
    return number == EAGAIN
               ? "no more processes may be started: raise the limit (ulimit -u; or that of the "
                 "container)"
               : error_text(number);
}
