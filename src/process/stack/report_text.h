/* What a report (process/stack/stacks.h) says of one process, for people. Layer: services; pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Puts lines that begin with `prefix`: the process, its stacks, and its native frames if there are
 * any. */
void report_put_process(struct buf *out, const char *prefix, const json_t *process);
/* Puts one phrase: "sleeping in all_reduce at train.py:42 in main", "stopped (SIGSTOP)", "running
 * (./a.out)". `attempt` has at least one process. */
void report_put_state(struct buf *out, const json_t *attempt);
