/* Limits what one run keeps of its logs to its share of the bytes, and removes secrets.
 *
 * Layer: program (daemon); does I/O. Thread: any.
 */
#pragma once

#include <muster/err.h>
#include <stdint.h>

struct history_size {
    int64_t bytes;   /* that are left */
    int64_t dropped; /* bytes of logs that were removed */
};

/* What is no log and no record of an end goes (the specifications hold the environment); then,
 * until the folder of logs has at most `bytes_max`, the oldest parts of logs. A missing folder is
 * empty. */
int history_trim(const char *logs, int64_t bytes_max, struct history_size *ret,
                 struct muster_err *err);
