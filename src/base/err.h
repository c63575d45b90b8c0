/* The errors of all layers. Layer: base; see include/muster/err.h. */
#pragma once

#include <muster/err.h>

static inline int err_no_memory(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOMEM, "out of memory");
}
