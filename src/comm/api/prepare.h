/* Checks a public call, once. Layer: comm; see prepare.c. */
#pragma once

#include "comm/state/state.h"

int prepare_call(const struct muster_comm *comm, const struct muster_call *call,
                 struct prepared *ret, struct muster_err *err);
