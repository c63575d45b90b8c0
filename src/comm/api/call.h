/* A public call becomes a task: checked, numbered, recorded, its algorithm chosen. Layer: comm. */
#pragma once

#include "comm/state/state.h"
#include "schedule/choose.h"

int call_check(const struct muster_comm *comm, const struct muster_call *call,
               struct muster_err *err);
int call_prepare(struct muster_comm *comm, const struct muster_call *call, struct task *ret,
                 struct muster_err *err);
/* Of an all-reduce. */
struct schedule_choice call_choose(const struct muster_comm *comm, size_t bytes,
                                   bool shared_memory);
/* An all-reduce through staging, whatever the buffers are. */
void call_go_private(struct muster_comm *comm, struct task *task);
