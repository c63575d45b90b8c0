/* Limits what one run keeps of its logs to its share of the bytes, and removes secrets.
 *
 * Layer: program (daemon); does I/O. Thread: any.
 */
#pragma once

#include <muster/err.h>
#include <stdint.h>

struct history_size {
    int64_t bytes;   /* bytes that are left */
    int64_t dropped; /* bytes of logs that were removed */
};

/* Removes each file that is neither a log nor a record of an end, since the specifications contain
 * the environment. Then removes the oldest parts of logs, until the folder of logs has at most
 * `bytes_max`. A missing folder counts as empty. */
int history_trim(const char *logs, int64_t bytes_max, struct history_size *ret,
                 struct muster_err *err);
